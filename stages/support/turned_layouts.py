"""Convolutions for which XNNPACK would turn the memory layout of values that others read too.

A convolution wants its image channels-last. Where the activation is quantized as it comes, upstream's pass for memory
layouts (executorch 1.5.1, `ChannelsLastTaggedReshapePass.input_to_nhwc`) does not convert what the convolution reads:
it follows first arguments back to where they begin inside the delegate, converts there, and gives the converted value
to every reader. What had been arranged as (N, C, H, W) before then reads other pixels, or comes out in another shape.
"""

from __future__ import annotations

from typing import Any

import torch
from executorch.backends.xnnpack._passes.channels_last_tagged_reshape_pass import (
    ChannelsLastTaggedReshapePass as Layouts,
)
from executorch.backends.xnnpack.utils.quant_utils import is_dequant, is_dynamic_qdq, is_qparam, is_quant
from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram
from torch.fx import Node

__all__ = ["forget_partitions", "turning_convolutions"]


def turning_convolutions(program: ExportedProgram) -> set[str]:
    """Return the names of convolutions of a partitioned program that would turn what others read."""
    return {
        node.name
        for node in program.graph.nodes
        if node.target == ops.edge.aten.convolution.default
        and _tag(node)
        and is_dynamic_qdq(node.args[0])
        and not _turns_only_its_own(node)
    }


def forget_partitions(program: ExportedProgram) -> None:
    """Take away what a partitioner noted at nodes, so that it can be asked again."""
    for node in program.graph.nodes:
        for note in ("delegation_tag", "xnn_partitioner_config", "IS_IMPLICIT_Q_DQ_TAG"):
            node.meta.pop(note, None)


def _turns_only_its_own(convolution: Node) -> bool:
    tag = _tag(convolution)
    value = convolution.args[0].args[0].args[0]
    if _is_channels_last(value, tag):
        return True
    # Follow first arguments back as upstream does; nothing else may read what is passed.
    allowed = {reader for reader in value.users if _leads_to_convolutions(reader)}
    while True:
        inside = _tag(value) == tag
        readers = set(value.users) if inside else {reader for reader in value.users if _tag(reader) == tag}
        if not readers <= allowed or _rank(value) != 4:
            return False
        if not inside or not isinstance(value.args[0], Node):
            return True
        if len(value.all_input_nodes) != 1:
            return False
        allowed, value = {value}, value.args[0]


def _leads_to_convolutions(reader: Node) -> bool:
    """Whether a reader belongs to a dynamic quantization whose result goes to channels-last operators only."""
    if is_qparam(reader):
        return True
    return is_quant(reader) and all(
        is_dequant(user) and all(one.target in Layouts.memory_sensitive_ops_nhwc for one in user.users)
        for user in reader.users
    )


def _is_channels_last(value: Node, tag: Any) -> bool:
    """Whether a value of a delegate has been arranged channels-last for certain when it is read."""
    if _tag(value) != tag or not tag or _rank(value) != 4:
        return False
    if value.target in Layouts.memory_sensitive_ops_nhwc:
        return True
    fixed = value.target in Layouts.memory_sensitive_ops_nchw or value.target == ops.edge.aten.view_copy.default
    return not fixed and all(_is_channels_last(one, tag) for one in value.all_input_nodes)


def _tag(node: Node) -> Any:
    return node.meta.get("delegation_tag")


def _rank(node: Node) -> int:
    value = node.meta.get("val")
    return value.dim() if isinstance(value, torch.Tensor) else -1
