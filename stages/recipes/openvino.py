"""OpenVINO, Intel's runtime for its CPUs, GPUs and NPUs."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through


@etgraph.recipe("openvino_fp32", backends=("OpenvinoBackend",))
def openvino_fp32() -> etgraph.Recipe:
    """OpenVINO on the CPU, in fp32; its runtime computes in bfloat16 where the processor can."""
    return _on_openvino("openvino_fp32", {}, ())


@etgraph.recipe("openvino_int8", backends=("OpenvinoBackend",))
def openvino_int8() -> etgraph.Recipe:
    """OpenVINO on the CPU in int8, static, by NNCF's quantizer; needs calibration inputs."""
    return _on_openvino(
        "openvino_int8",
        {
            "prepare": {"quantizers": Deferred(_quantizers), "qat": False},
            "calibrate": {"static": ("OpenVINOQuantizer",)},
            # OpenVINO finds int8 weights by the quantize operators that act on them.
            "convert": {"fold_quantize": False},
        },
        (Through("quantized", "quantizes to int8", instead="openvino_fp32"),),
    )


def _on_openvino(name: str, stages: dict[str, dict[str, Any]], through: tuple[Through, ...]) -> etgraph.Recipe:
    lowering = {"compile_config": Deferred(_compile_config), "partitioners": Deferred(_partitioners)}
    return etgraph.Recipe(
        name=name,
        stages={
            **stages,
            "to_edge": lowering,
            "to_backend": {"partitioners": Deferred(_partitioners)},
            "to_edge_transform_and_lower": lowering,
        },
        through=(*through, Through("lowered", "delegates to OpenVINO", instead="portable")),
        backends=("OpenvinoBackend",),
    )


def _partitioners() -> list[Any]:
    from executorch.backends.openvino.partitioner import OpenvinoPartitioner
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    return [OpenvinoPartitioner([CompileSpec("device", b"CPU")])]


def _compile_config() -> Any:
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(_check_ir_validity=False)


def _quantizers() -> list[Any]:
    from executorch.backends.openvino.quantizer import OpenVINOQuantizer

    return [OpenVINOQuantizer()]
