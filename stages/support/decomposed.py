"""Whether an operator that was kept whole would be taken decomposed: tried on the one operator by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch.fx.node import map_arg

from stages.support.graph_text import operator_counts
from stages.support.partitioning import ask, is_operator, named_nodes, without_weights

__all__ = ["taken_decomposed"]

#: So many different operators are tried at most: each is exported, which takes a fraction of a second.
MOST = 6


def taken_decomposed(partitioner: Partitioner, nodes: Iterable[tuple[str, torch.fx.Node]]) -> dict[str, str]:
    """Return, by a node's name, into what it can be decomposed so that a partitioner takes all of it, in words."""
    # Those of `run_decompositions`. torch has more, for operators of Core ATen too; they are slow ways to compute.
    table = torch.export.default_decompositions()
    answers: dict[Any, str] = {}
    found = {}
    for name, node in nodes:
        operator = node.target._op if isinstance(node.target, EdgeOpOverload) else node.target
        if operator not in table or (operator not in answers and len(answers) >= MOST):
            continue
        if operator not in answers:
            try:
                answers[operator] = _tried(partitioner, operator, table[operator], node)
            except Exception:
                # It cannot be traced by itself, or the partitioner stumbles over it.
                answers[operator] = ""
        if answers[operator]:
            found[name] = answers[operator]
    return found


def _tried(partitioner: Partitioner, operator: Any, decomposition: Any, node: torch.fx.Node) -> str:
    tensors: list[torch.Tensor] = []
    places: dict[torch.fx.Node, int] = {}

    def placed(one: torch.fx.Node) -> Any:
        value = one.meta["val"]
        if not isinstance(value, torch.Tensor):
            return value.node.hint if hasattr(value, "node") else value
        if one not in places:
            places[one] = len(tensors)
            sizes = [size.node.hint if isinstance(size, torch.SymInt) else size for size in value.shape]
            tensors.append(torch.zeros(sizes, dtype=value.dtype))
        return _Input(places[one])

    args, kwargs = map_arg(node.args, placed), map_arg(node.kwargs, placed)
    exported = torch.export.export(_Once(operator, args, dict(kwargs)), tuple(tensors))
    apart = exported.run_decompositions({operator: decomposition})
    edge = to_edge(apart, compile_config=EdgeCompileConfig(_check_ir_validity=False)).exported_program()
    operators = {name: one for name, one in named_nodes(edge) if is_operator(one)}
    taken = ask(partitioner, without_weights(edge)).tags
    counts = operator_counts(operators.values())
    if not operators or set(operators) - set(taken) or str(operator) in counts:
        return ""
    return ", ".join(counts)


class _Input:
    """Stands for the n-th input in the arguments of an operator."""

    def __init__(self, position: int) -> None:
        self.position = position


class _Once(torch.nn.Module):
    """Calls one operator."""

    def __init__(self, operator: Any, args: Any, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.operator = operator
        self.arguments = (args, kwargs)

    def forward(self, *inputs: torch.Tensor) -> Any:
        def filled(value: Any) -> Any:
            if isinstance(value, _Input):
                return inputs[value.position]
            return type(value)(filled(one) for one in value) if isinstance(value, list | tuple) else value

        args, kwargs = self.arguments
        return self.operator(*filled(tuple(args)), **{name: filled(value) for name, value in kwargs.items()})
