"""Qualcomm's NPUs: upstream's recipe, made only once the SDK is known to be there, because making it fetches one."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through
from stages.recipes.xnnpack import xnnpack_fp32

#: Snapdragon 8 Gen 3, the default of upstream's `get_android_recipe` (executorch 1.5).
SOC = "SM8650"


def qnn_fp16_then_xnnpack() -> etgraph.Recipe:
    """Return HTP in fp16 with XNNPACK after it; it can be planned, and run up to exported, without the SDK."""
    lowering = {"compile_config": Deferred(_compile_config), "partitioners": Deferred(_partitioners)}
    return etgraph.Recipe(
        name="qnn-fp16",
        stages={
            "aten_passes": {"passes": [_aten_pass]},
            "edge_passes": {"passes": [_edge_passes]},
            "to_edge": lowering,
            "to_backend": {"partitioners": Deferred(_partitioners)},
            "to_edge_transform_and_lower": lowering,
            "to_executorch": dict(xnnpack_fp32().stages["to_executorch"]),
        },
        through=(Through("lowered", "delegates to QNN, then to XNNPACK", instead="xnnpack_fp32"),),
        backends=("QnnBackend", "XnnpackBackend"),
    )


def _upstream() -> Any:
    from stages.support.upstream_types import made, type_named

    return made(type_named("qnn_fp16"), {"soc_model": SOC})


def _combined() -> etgraph.Recipe:
    return etgraph.get_recipe([_upstream(), xnnpack_fp32()])


def _partitioners() -> Any:
    return _combined().stages["to_backend"]["partitioners"]


def _compile_config() -> Any:
    return _combined().stages["to_edge"]["compile_config"]


def _aten_pass(method: str, program: Any) -> Any:
    for one in _upstream().aten_transform_passes:
        program = one(method, program)
    return program


def _edge_passes(method: str, program: Any) -> Any:
    (one,) = _upstream().lowering_recipe.edge_transform_passes
    return one(method, program)
