"""Cortex-M: no delegate, but operators of a library on Arm's CMSIS-NN, planned for one CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import etgraph
from etgraph.errors import UsageError
from etgraph.recipes import Deferred, Through, closest

#: executorch 1.5, `backends/cortex_m/target_config.py`.
CPUS = tuple(f"cortex-m{one}" for one in ("0", "0plus", "3", "4", "7", "23", "33", "35p", "55", "85"))


@etgraph.recipe("cortex_m_int8", backends=("cortex_m",))
def cortex_m_int8(cpu: str = "cortex-m55") -> etgraph.Recipe:
    """Cortex-M in int8 by the operators of CMSIS-NN (cpu: which, default cortex-m55); needs calibration inputs."""
    if cpu not in CPUS:
        raise UsageError(f"there is no cpu {cpu!r}{closest(cpu, CPUS)}", hint=f"CPUs: {', '.join(CPUS)}.")
    return etgraph.Recipe(
        name="cortex_m_int8",
        stages={
            "prepare": {"quantizers": Deferred(_quantizers), "qat": False},
            "calibrate": {"static": ("CortexMQuantizer",)},
            "to_edge": {"compile_config": Deferred(_compile_config)},
            "to_operator_library": {"rewrite": IntoCortexM(cpu), "library": "cortex_m"},
        },
        through=(
            Through("quantized", "quantizes to int8", instead="portable"),
            Through("lowered", "rewrites into the operators of Cortex-M", instead="portable"),
        ),
        way="split",
        way_reason="Cortex-M is a library of operators, into which the edge program is rewritten; it has no delegate",
        backends=("cortex_m",),
    )


@dataclass(frozen=True)
class IntoCortexM:
    """Runs upstream's passes that put operators of the library in the place of edge operators.

    Args:
        cpu: the CPU that scratch buffers are planned for.
    """

    cpu: str

    def __call__(self, method: str, program: Any) -> Any:
        """Rewrite one method."""
        import executorch.backends.cortex_m.ops.operators  # noqa: F401  registers the library
        from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
        from executorch.backends.cortex_m.target_config import CortexMTargetConfig

        config = CortexMTargetConfig.from_target_string(self.cpu)
        return CortexMPassManager(program, target_config=config, use_explicit_layout=EXPLICIT_LAYOUT).transform()


#: Layouts are permuted in the graph, so that the model need not be in channels-last. Upstream's other way quantizes
#: only convolutions whose inputs are.
EXPLICIT_LAYOUT = True


def _quantizers() -> list[Any]:
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer

    return [CortexMQuantizer(use_explicit_layout=EXPLICIT_LAYOUT)]


def _compile_config() -> Any:
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config

    return cortex_m_edge_compile_config()
