"""What would get operators taken: the same program in other dtypes, of static shapes, decomposed, or elsewhere.

Nothing here is guessed: a partitioner is asked about a copy of the program in which that one thing is so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from executorch.exir.backend.partitioner import Partitioner
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.fx.node import map_arg

from stages.support.partitioning import ask, named_nodes, without_weights

__all__ = ["other_takers", "takers_of_variants"]

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def takers_of_variants(partitioner: Partitioner, program: ExportedProgram) -> dict[str, frozenset[str]]:
    """Ask a partitioner about variants of a program; say for each, in words, which operators it then takes."""
    taken = {}
    for words, make in _variants(program):
        try:
            taken[words] = frozenset(ask(partitioner, make(program)).tags)
        except Exception:
            # A variant is a question: one that the partitioner cannot answer helps nobody.
            continue
    return taken


def _variants(program: ExportedProgram) -> list[tuple[str, Callable[[ExportedProgram], ExportedProgram]]]:
    values = [v for _, node in named_nodes(program) for v in _flat(node.meta.get("val"))]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    other_floats = {value.dtype for value in tensors if value.dtype.is_floating_point} - {torch.float32}
    symbolic = any(isinstance(value, _SYMBOLIC) for value in values) or any(
        isinstance(size, torch.SymInt) for value in tensors for size in value.shape
    )
    found: list[tuple[str, Callable[[ExportedProgram], ExportedProgram]]] = []
    if other_floats:
        names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in other_floats))
        found.append((f"float32 in the place of {names}", _in_float32))
    if symbolic:
        found.append(("static shapes", _with_static_shapes))
    return found


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _in_float32(program: ExportedProgram) -> ExportedProgram:
    changed = without_weights(program)

    def cast(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        return value.to(torch.float32) if floating else value

    _rewrite_values(changed, cast)
    return changed


def _with_static_shapes(program: ExportedProgram) -> ExportedProgram:
    """Put the sizes that the program was exported with in the place of symbols."""
    changed = without_weights(program)

    def fix(value: Any) -> Any:
        if isinstance(value, _SYMBOLIC):
            return value.node.hint
        if isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape):
            sizes = [size.node.hint if isinstance(size, torch.SymInt) else size for size in value.shape]
            return torch.empty(sizes, dtype=value.dtype, device=value.device)
        return value

    _rewrite_values(changed, fix)
    for _, node in named_nodes(changed):
        if node.op != "output":
            node.args, node.kwargs = map_arg(node.args, _number_or_node), map_arg(node.kwargs, _number_or_node)
    return changed


def _number_or_node(node: torch.fx.Node) -> Any:
    value = node.meta.get("val")
    return value if isinstance(value, int | float | bool) else node


def _rewrite_values(program: ExportedProgram, change: Callable[[Any], Any]) -> None:
    mode = detect_fake_mode([n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"])
    if mode is None:
        raise ValueError("the program has no fake values")
    with mode:
        for _, node in named_nodes(program):
            value = node.meta.get("val")
            if isinstance(value, list | tuple):
                node.meta["val"] = type(value)(change(one) for one in value)
            elif value is not None:
                node.meta["val"] = change(value)


def other_takers(
    program: ExportedProgram, names: set[str], others: Mapping[str, Sequence[Partitioner]]
) -> dict[str, tuple[str, ...]]:
    """Ask other partitioners about a program; say for each of some operators who takes it.

    Args:
        names: the operators, by their names in the program.
        others: what to call them in words, to partitioners of which the first is asked.
    """
    takers: dict[str, list[str]] = {name: [] for name in names}
    for words, partitioners in others.items():
        try:
            taken = ask(partitioners[0], without_weights(program)).tags
        except Exception:
            continue
        for name in names.intersection(taken):
            takers[name].append(words)
    return {name: tuple(words) for name, words in takers.items() if words}
