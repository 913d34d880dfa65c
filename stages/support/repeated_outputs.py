"""Copies that XNNPACK would remove inside a delegate, so that one value would come out of it twice.

Upstream's preprocessing (executorch 1.5.1, `RemoveCloneOpsTransform`) removes copies, and then refuses to give out one
value twice: a layer's output beside the same after a dropout, which is a copy in evaluation mode, cannot be lowered.
"""

from __future__ import annotations

from typing import Any

import torch
from executorch.backends.transforms.remove_clone_ops import RemoveCloneOpsTransform
from torch.export import ExportedProgram
from torch.fx import Node

__all__ = ["repeating_copies"]


def repeating_copies(program: ExportedProgram) -> set[str]:
    """Return the names of copies of a partitioned program that leave their delegate beside what they copy."""
    seen: set[Node] = set()
    repeating = set()
    for node in program.graph.nodes:
        tag = _tag(node)
        if tag and any(_tag(reader) != tag for reader in node.users):
            origin = _origin(node, tag)
            if origin in seen:
                repeating.add(node.name)
            seen.add(origin)
    return repeating


def _origin(node: Node, tag: Any) -> Node:
    """Follow copies back to what they copy, inside of a delegate."""
    while _is_copy(node) and _tag(node.args[0]) == tag:
        node = node.args[0]
    return node


def _is_copy(node: Node) -> bool:
    if node.target not in RemoveCloneOpsTransform.clone_ops:
        return False
    value, copied = node.meta.get("val"), node.args[0].meta.get("val")
    if not isinstance(value, torch.Tensor) or not isinstance(copied, torch.Tensor):
        return False
    return bool(value.dim_order() == copied.dim_order())


def _tag(node: Node) -> Any:
    return node.meta.get("delegation_tag")
