"""What backends took of a program, and why one took nothing."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import etgraph
from etgraph.artifact import Lowered
from stages.support.programs import (
    OPERATOR_LIBRARIES,
    all_nodes,
    delegates_of,
    namespace_of,
)
from stages.support.untaken import reasons_in_words


def delegation_of(program: Any) -> dict[str, Any]:
    """Count what of an edge or lowered program is whose.

    Returns:
        `backends`: for each backend its `name`, how many `delegates` it has, and how many operators (`nodes`) are in
        them; an operator library counts as a backend without delegates. `others`: how many operators are left.
    """
    backends: dict[str, dict[str, Any]] = {}
    for delegate in delegates_of(program):
        original = getattr(delegate, "_original_exported_program", None)
        entry = _entry(backends, delegate.backend_id)
        entry["delegates"] += 1
        entry["nodes"] += sum(1 for node in all_nodes(original) if namespace_of(node.target)) if original else 0
    others = 0
    for node in all_nodes(program):
        if node.op != "call_function" or node.target is operator.getitem or not namespace_of(node.target):
            continue
        if namespace_of(node.target) in OPERATOR_LIBRARIES:
            _entry(backends, namespace_of(node.target))["nodes"] += 1
        else:
            others += 1
    return {"backends": list(backends.values()), "others": others}


def _entry(backends: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    return backends.setdefault(name, {"name": name, "delegates": 0, "nodes": 0})


def warn_of_nothing_taken(lowered: Lowered, partitioners: Mapping[str, Sequence[Any]]) -> None:
    """Say which partitioners took no node of a method though they were asked first, or alone, with their reasons.

    One that comes after others and finds nothing left is as it should be.
    """
    for method, chosen in partitioners.items():
        if not chosen:
            continue
        taken = {delegate.backend_id for delegate in delegates_of(lowered.methods[method])}
        first = backend_of(chosen[0])
        if taken and (first is None or first in taken):
            continue
        asked = chosen if not taken else chosen[:1]
        names = ", ".join(type(partitioner).__name__ for partitioner in asked)
        rest = "the whole method runs on portable kernels" if not taken else f"{', '.join(sorted(taken))} took parts"
        why = "; ".join(reasons_in_words(lowered.methods[method], asked)) or "there is no operator to take"
        etgraph.warn(
            f"method {method!r}: {names} took no node; {rest}. The reason: {why}. "
            "`etgraph check` shows every operator with its reason and what would help"
        )


def backend_of(partitioner: Any) -> str | None:
    """Return the id of the backend that a partitioner is for, where it says so before it is asked."""
    spec = getattr(partitioner, "delegation_spec", None)
    return getattr(spec, "backend_id", None)
