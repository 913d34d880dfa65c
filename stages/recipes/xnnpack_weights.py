"""XNNPACK with 4-bit or 8-bit weights of linear layers, activations quantized to int8 as they come or left in float."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.errors import UsageError
from etgraph.recipes import Deferred, Through
from stages.recipes.xnnpack import xnnpack_fp32

# XNNPACK refuses 4-bit weights in groups of another size, and one scale per output channel is one group.
_GROUP = 32


@etgraph.recipe("xnnpack_8da4w", backends=("XnnpackBackend",))
def xnnpack_8da4w(group_size: int | None = 32) -> etgraph.Recipe:
    """XNNPACK with 4-bit weights in groups (group_size, default 32) and int8 activations; linear layers only."""
    if isinstance(group_size, int) and group_size % _GROUP:
        raise UsageError(
            f"recipe xnnpack_8da4w is given group_size={group_size}, and XNNPACK takes multiples of {_GROUP}",
            hint="Give 32, 64, 128 ..., or None for one scale per output channel.",
        )
    config = {"weight_bits": 4, "group_size": group_size, "activations": "int8_dynamic", "multiple_of": _GROUP}
    return _on_xnnpack("xnnpack_8da4w", config)


@etgraph.recipe("xnnpack_8da8w", backends=("XnnpackBackend",))
def xnnpack_8da8w() -> etgraph.Recipe:
    """XNNPACK with 8-bit weights per channel and int8 activations; linear layers only."""
    return _on_xnnpack("xnnpack_8da8w", {"weight_bits": 8, "activations": "int8_dynamic"})


@etgraph.recipe("xnnpack_int8_weight_only", backends=("XnnpackBackend",))
def xnnpack_int8_weight_only(group_size: int | None = None) -> etgraph.Recipe:
    """XNNPACK in fp32 with 8-bit weights, per channel or in groups (group_size); linear layers only."""
    config = {"weight_bits": 8, "group_size": group_size}
    return _on_xnnpack("xnnpack_int8_weight_only", config, lowering=_float_with_made_weights())


@etgraph.recipe("xnnpack_int4_weight_only", backends=("XnnpackBackend",))
def xnnpack_int4_weight_only(group_size: int | None = 32) -> etgraph.Recipe:
    """XNNPACK in fp32 with weights of 4 bits (a byte each in the file), in groups (group_size, default 32)."""
    config = {"weight_bits": 4, "group_size": group_size}
    return _on_xnnpack("xnnpack_int4_weight_only", config, lowering=_float_with_made_weights())


def _on_xnnpack(name: str, config: dict[str, Any], *, lowering: etgraph.Recipe | None = None) -> etgraph.Recipe:
    lowering = lowering or xnnpack_fp32()
    does = "quantizes the weights of the eager module"
    return etgraph.Recipe(
        name=name,
        stages={"quantize_weights": {"config": config}, **lowering.stages},
        through=(Through("quantized", does, instead="xnnpack_int8_dynamic", at="module"), *lowering.through),
        backends=lowering.backends,
    )


def _float_with_made_weights() -> etgraph.Recipe:
    """Return the fp32 recipe with a partitioner that takes linear layers whose weight is made when they run."""
    partitioners = {"partitioners": Deferred(_float_only)}
    recipe = xnnpack_fp32()
    for stage in ("to_edge", "to_backend", "to_edge_transform_and_lower"):
        recipe = recipe.with_options(stage, **partitioners)
    return recipe


def _float_only() -> list[Any]:
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [XnnpackPartitioner(config_precisions=ConfigPrecisionType.FP32)]
