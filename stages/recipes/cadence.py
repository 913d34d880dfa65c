"""Cadence's Xtensa DSPs: no delegate, but operators of a library, which quantized patterns are fused into."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through


@etgraph.recipe("cadence_int8", backends=("cadence",))
def cadence_int8() -> etgraph.Recipe:
    """Cadence DSPs in int8 by their operator library; needs calibration inputs, and Python 3.12."""
    return etgraph.Recipe(
        name="cadence_int8",
        stages={
            "prepare": {"quantizers": Deferred(_quantizers), "qat": False, "pre_prepare_passes": [_name_sources]},
            "calibrate": {"static": ("CadenceDefaultQuantizer",)},
            "aten_passes": {"passes": [_fuse]},
            "to_edge": {"compile_config": Deferred(_compile_config)},
            "to_operator_library": {"rewrite": _into_cadence, "library": "cadence"},
            "to_executorch": {"backend_config": Deferred(_backend_config)},
        },
        through=(
            Through("quantized", "quantizes to int8", instead="portable"),
            Through("lowered", "rewrites into the operators of Cadence", instead="portable"),
        ),
        way="split",
        way_reason="Cadence is a library of operators, into which the edge program is rewritten; it has no delegate",
        backends=("cadence",),
    )


def _quantizers() -> list[Any]:
    from executorch.backends.cadence.aot.quantizer.quantizer import CadenceDefaultQuantizer

    return [CadenceDefaultQuantizer()]


def _name_sources(module: Any) -> Any:
    """Note at each node where it came from, as TorchDynamo does: the quantizer overlooks nodes without."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.meta.setdefault("source_fn_stack", [(node.name, node.target)])
    return module


def _fuse(method: str, program: Any) -> Any:
    """Fuse dequantize, operator and quantize into one quantized operator, as upstream's compiler.py does."""
    from executorch.backends.cadence.aot.compiler import apply_pre_edge_transform_passes

    _name_sources(program.graph_module)
    return apply_pre_edge_transform_passes(program, _quantizers()[0])


def _compile_config() -> Any:
    from executorch.backends.cadence.aot.compiler import TO_EDGE_OP_EXCEPTION_LIST, TO_EDGE_PRESERVE_OPS
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(
        _skip_dim_order=True,
        _core_aten_ops_exception_list=list(TO_EDGE_OP_EXCEPTION_LIST),
        preserve_ops=list(TO_EDGE_PRESERVE_OPS),
    )


def _into_cadence(method: str, program: Any) -> Any:
    from executorch.backends.cadence.aot.pass_utils import CompileMode
    from executorch.backends.cadence.aot.passes import apply_exir_ops_passes
    from executorch.exir import EdgeProgramManager

    manager = EdgeProgramManager(program, None, _compile_config())
    return apply_exir_ops_passes(CompileMode.DEFAULT, manager).exported_program()


def _backend_config() -> Any:
    from executorch.backends.cadence.aot.memory_planning import CadenceMemoryPlanning
    from executorch.backends.cadence.aot.pass_utils import CompileMode
    from executorch.backends.cadence.aot.utils import get_default_memory_config
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import ToOutVarPass
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

    return ExecutorchBackendConfig(
        memory_planning_pass=CadenceMemoryPlanning(get_default_memory_config(), mode=CompileMode.DEFAULT, mem_algo=0),
        to_out_var_pass=ToOutVarPass(),
        extract_delegate_segments=False,
        sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass(),
    )
