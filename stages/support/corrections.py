"""Faults of upstream's partitioners that would give a wrong program without a word, and how they are avoided.

Each names what is wrong, for which versions it was seen, and what is done. A program that is not touched by a fault
is lowered exactly as upstream lowers it.
"""

from __future__ import annotations

import copy
import functools
import sys
from typing import Any

import torch
from executorch.exir.backend.partitioner import Partitioner, PartitionResult
from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram

__all__ = ["corrected"]

_REFUSED_LATER = ("convolution.default", "clone.default", "_clone_dim_order.default")


def corrected(partitioner: Partitioner) -> Partitioner:
    """Return a partitioner that avoids the known faults of its class; others are returned as they are.

    The partitioner that is given is not changed.
    """
    module = sys.modules.get("executorch.backends.apple.coreml.partition.coreml_partitioner")
    if module is not None and isinstance(partitioner, module.CoreMLPartitioner):
        own = copy.copy(partitioner)
        own.partition = functools.partial(_partitioned_with_bounds, own)
        return own
    module = sys.modules.get("executorch.backends.xnnpack.partition.xnnpack_partitioner")
    if module is None or not isinstance(partitioner, module.XnnpackPartitioner):
        return partitioner
    own = copy.copy(partitioner)
    configs = partitioner.target_partitioner_configs
    sound = {
        "_softmax.default": _with_sound_softmax,
        "addmm.default": _with_sound_weights,
        "mm.default": _with_sound_weights,
    }
    own.target_partitioner_configs = {
        name: sound[name](config) if name in sound else config for name, config in configs.items()
    }
    own.partition = functools.partial(_partitioned_apart, own)
    return own


def _partitioned_with_bounds(partitioner: Partitioner, program: ExportedProgram) -> PartitionResult:
    """Partition a program with the bounds of `hardtanh` and `clamp` written out as floats; it is changed.

    coremltools 9.0 makes int32 constants of whole numbers and refuses to clip float values by them, and it wants both
    bounds of a hardtanh, also where they are the defaults.
    """
    for node in program.graph.nodes:
        name = getattr(getattr(node.target, "_schema", None), "name", "")
        value = node.meta.get("val")
        if name not in ("aten::hardtanh", "aten::clamp") or not isinstance(value, torch.Tensor):
            continue
        if name == "aten::hardtanh":
            low, high = (*node.args[1:], *(-1.0, 1.0)[len(node.args) - 1 :])
            low, high = node.kwargs.get("min_val", low), node.kwargs.get("max_val", high)
            node.args, node.kwargs = (node.args[0], low, high), {}
        if value.dtype.is_floating_point:
            node.args = (node.args[0], *(float(one) if type(one) is int else one for one in node.args[1:]))
    result: PartitionResult = type(partitioner).partition(partitioner, program)
    return result


def _partitioned_apart(partitioner: Partitioner, program: ExportedProgram) -> PartitionResult:
    """Partition a program in which no two operators share a dequantize; it is changed, as upstream gives a copy.

    What is known to go wrong only where the borders of the delegates are known is refused then, and asked again.

    XNNPACK takes a dequantize into the quantized operator that reads it, and then has no float value for its other
    readers: an output comes back as zeros of another shape. And where one reader wants an image as (N, C, H, W), its
    pass for memory layouts turns the value for all of them: sigmoid(y) beside y has the numbers of other pixels. Seen
    with executorch 1.5.1. `convert_pt2e` gives most readers a dequantize of their own, but not those without an
    annotation, and programs from elsewhere may share any.
    """
    from stages.support.repeated_outputs import repeating_copies
    from stages.support.turned_layouts import forget_partitions, turning_convolutions

    for node in list(program.graph.nodes):
        if node.target == ops.edge.quantized_decomposed.dequantize_per_tensor.default and len(node.users) > 1:
            _split(node)
    program.graph_module.recompile()
    refused: set[str] = set()
    configs = partitioner.target_partitioner_configs
    asked = {name: _unless(config, refused) for name, config in configs.items() if name in _REFUSED_LATER}
    partitioner = copy.copy(partitioner)
    partitioner.target_partitioner_configs = {**configs, **asked}
    while True:
        result: PartitionResult = type(partitioner).partition(partitioner, program)
        turning = turning_convolutions(program)
        wrong = turning | repeating_copies(program)
        if turning and turning <= refused:
            raise RuntimeError(
                f"XNNPACK takes {', '.join(sorted(turning))} although it was refused, and would change what others read"
            )
        # A copy that cannot be refused, upstream refuses itself.
        if wrong <= refused:
            return result
        # These stay with portable kernels.
        refused |= wrong
        forget_partitions(program)


def _unless(config: Any, refused: set[str]) -> Any:
    """Return a config that takes nothing of these names."""
    checked = copy.copy(config)
    original = config.check_constraints
    checked.check_constraints = lambda node, ep: node.name not in refused and bool(original(node, ep))
    return checked


def _split(node: torch.fx.Node) -> None:
    """Copy a node for each reader but one; the output, which the signature knows by name, keeps the original."""
    readers = sorted(node.users, key=lambda reader: reader.op != "output")
    for reader in readers[1:]:
        with node.graph.inserting_after(node):
            own = node.graph.node_copy(node)
        reader.replace_input_with(node, own)


def _with_sound_softmax(config: Any) -> Any:
    """Refuse a softmax over the width of an image that XNNPACK keeps channels-last.

    XNNPACK's pass for memory layouts keeps the output of a convolution (and of pooling and the like) channels-last
    through every operator that it takes for indifferent to layout. Softmax is not: it runs over what lies innermost
    in memory, which is then the channels. Seen with executorch 1.5.1: softmax(conv(x), -1) is off by 0.26.
    """
    checked = copy.copy(config)
    original = config.check_constraints

    def check(node: torch.fx.Node, ep: ExportedProgram) -> bool:
        return bool(original(node, ep)) and not _may_be_channels_last(node.all_input_nodes[0])

    checked.check_constraints = check
    return checked


def _with_sound_weights(config: Any) -> Any:
    """Refuse a decomposed linear layer of which only the weight is quantized.

    XNNPACK then takes the dequantize into the delegate, drops it there, and multiplies with the stored integers. Seen
    with executorch 1.5.1: off by a factor of thousands.
    """
    checked = copy.copy(config)
    original = config.check_constraints

    def check(node: torch.fx.Node, ep: ExportedProgram) -> bool:
        weight, activation = node.args[checked.weight_idx], node.args[checked.act_idx]
        if _is_dequantized(weight) and not _is_dequantized(activation):
            return False
        return bool(original(node, ep))

    checked.check_constraints = check
    return checked


def _is_dequantized(node: Any) -> bool:
    """Whether a value is made of stored integers by a dequantize or a conversion, transposed or viewed perhaps."""
    follow = ("permute_copy", "view_copy", "t_copy", "transpose_copy", "unsqueeze_copy", "squeeze_copy", "_to_")
    while isinstance(node, torch.fx.Node):
        name, value = str(node.target), node.meta.get("val")
        if "dequantize" in name or (isinstance(value, torch.Tensor) and not value.dtype.is_floating_point):
            return True
        if node.op != "call_function" or not any(part in name for part in follow):
            return False
        node = node.args[0]
    return False


@functools.lru_cache(maxsize=1)
def _layout_pass() -> Any:
    from executorch.backends.xnnpack._passes.channels_last_tagged_reshape_pass import ChannelsLastTaggedReshapePass

    return ChannelsLastTaggedReshapePass


def _may_be_channels_last(node: torch.fx.Node) -> bool:
    """Whether a 4-d value comes, through operators that keep its rank, from one that XNNPACK keeps channels-last."""
    seen: set[torch.fx.Node] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        value = current.meta.get("val")
        if current in seen or current.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        seen.add(current)
        if value.dim() != 4 or current.target in _layout_pass().memory_sensitive_ops_nchw:
            continue
        if current.target in _layout_pass().memory_sensitive_ops_nhwc:
            return True
        waiting.extend(current.all_input_nodes)
    return False
