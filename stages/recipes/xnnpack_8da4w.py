"""XNNPACK with 4-bit or 8-bit weights and activations quantized to int8 as they come, for language models."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.recipes import Through
from stages.recipes.xnnpack import xnnpack_fp32


@etgraph.recipe("xnnpack_8da4w", backends=("XnnpackBackend",))
def xnnpack_8da4w(group_size: int | None = 32) -> etgraph.Recipe:
    """XNNPACK with 4-bit weights in groups (group_size, default 32) and int8 activations; linear layers only."""
    return _on_xnnpack("xnnpack_8da4w", {"weight_bits": 4, "group_size": group_size, "activations": "int8_dynamic"})


@etgraph.recipe("xnnpack_8da8w", backends=("XnnpackBackend",))
def xnnpack_8da8w() -> etgraph.Recipe:
    """XNNPACK with 8-bit weights per channel and int8 activations; linear layers only."""
    return _on_xnnpack("xnnpack_8da8w", {"weight_bits": 8, "activations": "int8_dynamic"})


def _on_xnnpack(name: str, config: dict[str, Any]) -> etgraph.Recipe:
    lowering = xnnpack_fp32()
    does = "quantizes the weights of the eager module"
    return etgraph.Recipe(
        name=name,
        stages={"quantize_weights": {"config": config}, **lowering.stages},
        through=(Through("quantized", does, instead="xnnpack_int8_dynamic", at="module"), *lowering.through),
        backends=lowering.backends,
    )
