"""Graphs in words: operator counts, and a line per node with its shape and source line."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload

from stages.support.source_lines import line_of


def target_name(target: Any) -> str:
    """Return what an operator is called, as `aten.add.Tensor`, with edge operators under the name that they wrap."""
    if isinstance(target, str):
        return target
    if isinstance(target, EdgeOpOverload):
        return str(target._op)
    return str(target) if hasattr(target, "_schema") else getattr(target, "__name__", str(target))


def operator_counts(nodes: Iterable[torch.fx.Node]) -> dict[str, int]:
    """Count calls by operator, the most frequent first; picking one of several outputs is not counted."""
    names = (target_name(n.target) for n in nodes if n.op == "call_function" and n.target is not operator.getitem)
    counts = Counter(names)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def tensor_text(value: Any) -> str:
    """Show a node's value by dtype and shape, symbols by their names."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(tensor_text, value))})"
    return str(value) if isinstance(value, torch.SymInt | int | float | bool | str) else type(value).__name__


def graph_lines(module: torch.fx.GraphModule, indent: str = "") -> list[str]:
    """Return a line per node: name, operator and arguments, dtype and shape, source line of the model."""
    lines = []
    for node in module.graph.nodes:
        arguments = ", ".join([*map(str, node.args), *(f"{key}={value}" for key, value in node.kwargs.items())])
        called = (
            f"{target_name(node.target)}({arguments})" if node.op.startswith("call") else f"{node.op} {node.target}"
        )
        text = called if node.op != "output" else f"return {', '.join(map(str, node.args))}"
        shape = f": {tensor_text(node.meta['val'])}" if node.meta.get("val") is not None else ""
        where = line_of(node.meta.get("stack_trace") or "")
        lines.append(f"{indent}{node.name}{shape} = {text}" + (f"  # {where}" if where else ""))
    for name, child in module.named_children():
        if isinstance(child, torch.fx.GraphModule):
            lines.append(f"{indent}{name}:")
            lines.extend(graph_lines(child, indent + "    "))
    return lines
