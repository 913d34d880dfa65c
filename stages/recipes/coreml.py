"""Core ML with XNNPACK for what it leaves: upstream's recipes, and a cure for what coremltools stumbles over."""

from __future__ import annotations

from typing import Any

import etgraph
from stages.recipes.xnnpack import xnnpack_fp32

COREML = ("CoreMLBackend", "XnnpackBackend")


def coreml_then_xnnpack(name: str, upstream: str, **options: Any) -> etgraph.Recipe:
    """Return upstream's recipe of that name with XNNPACK after it, under a name of its own."""
    from dataclasses import replace

    first = etgraph.get_recipe(upstream, **options)
    first = first.with_options("edge_passes", passes=[_float_bounds])
    return replace(etgraph.get_recipe([first, xnnpack_fp32()]), name=name, backends=COREML)


def _float_bounds(graph_module: Any) -> Any:
    """Write whole bounds of float `hardtanh` and `clamp` as floats: ReLU6 has 0 and 6.

    coremltools 9.0 makes int32 constants of whole numbers and then refuses to clip float values by them.
    """
    import torch
    from torch.fx.passes.infra.pass_base import PassResult

    changed = False
    for node in graph_module.graph.nodes:
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        value = node.meta.get("val")
        if name not in ("aten::hardtanh", "aten::clamp") or not isinstance(value, torch.Tensor):
            continue
        if value.dtype.is_floating_point and any(type(one) is int for one in node.args[1:]):
            node.args = (node.args[0], *(float(one) if type(one) is int else one for one in node.args[1:]))
            changed = True
    return PassResult(graph_module, changed)
