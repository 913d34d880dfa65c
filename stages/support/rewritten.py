"""What of an edge program was rewritten into the operators of a library, and what was not."""

from __future__ import annotations

from collections import Counter

import torch
from torch.export import ExportedProgram

from etgraph.delegation import Operator, Untaken
from stages.support.graph_text import target_name
from stages.support.partitioning import is_operator, named_nodes, operator_of
from stages.support.programs import namespace_of
from stages.support.untaken import Why, grouped

__all__ = ["rewritten"]


def rewritten(
    edge: ExportedProgram, lowered: ExportedProgram, library: str
) -> tuple[dict[str, int], tuple[Operator, ...], tuple[Untaken, ...]]:
    """Compare a program before and after.

    Rewriting joins several operators in one, and names the results anew. So the first operators of a kind that come
    from the same line of the model count as left, as many as there still are.

    Returns:
        how often each of the library's operators is used; the operators that were rewritten; those left, by reason.
    """
    after = [node for _, node in named_nodes(lowered) if is_operator(node)]
    into = Counter(target_name(node.target) for node in after if namespace_of(node.target) == library)
    remaining = Counter(_mark(node) for node in after if namespace_of(node.target) != library)
    taken: list[Operator] = []
    left: list[tuple[Operator, Why, tuple[str, ...]]] = []
    for name, node in named_nodes(edge):
        if not is_operator(node):
            continue
        operator = operator_of(name, node)
        if remaining[_mark(node)]:
            remaining[_mark(node)] -= 1
            left.append((operator, _why(node, library), ()))
        else:
            taken.append(operator)
    return dict(into.most_common()), tuple(taken), grouped(left)


def _mark(node: torch.fx.Node) -> tuple[str, str]:
    return target_name(node.target), str(node.meta.get("stack_trace") or "")


def _why(node: torch.fx.Node, library: str) -> Why:
    value = node.meta.get("val")
    floating = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    if floating and namespace_of(node.target) == "aten":
        dtype = str(value.dtype).removeprefix("torch.")
        return Why("dtype", f"it computes in {dtype}, as it was not quantized, and {library} is for int8")
    return Why("unknown_operator", f"{library} has nothing to put in its place")
