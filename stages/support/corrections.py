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
from executorch.exir.backend.partitioner import Partitioner
from torch.export import ExportedProgram

__all__ = ["corrected"]


def corrected(partitioner: Partitioner) -> Partitioner:
    """Return a partitioner that avoids the known faults of its class; others are returned as they are.

    The partitioner that is given is not changed.
    """
    module = sys.modules.get("executorch.backends.xnnpack.partition.xnnpack_partitioner")
    if module is None or not isinstance(partitioner, module.XnnpackPartitioner):
        return partitioner
    configs = partitioner.target_partitioner_configs
    softmax = configs.get("_softmax.default")
    if softmax is None:
        return partitioner
    own = copy.copy(partitioner)
    own.target_partitioner_configs = {**configs, "_softmax.default": _with_sound_softmax(softmax)}
    return own


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
