"""A program offered to partitioners one after the other, each getting what those before it left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.exir.backend.partitioner import Partitioner
from torch.export import ExportedProgram

from etgraph.artifact import Artifact
from etgraph.delegation import BackendCheck, MethodCheck, Operator
from stages.support.decomposed import taken_decomposed
from stages.support.delegation import backend_of, delegation_of
from stages.support.kernels import without_kernel
from stages.support.partition_order import leaving_delegates
from stages.support.partitioning import (
    Asked,
    ask,
    gives_size,
    is_operator,
    named_nodes,
    operator_of,
    with_delegates,
    without_weights,
)
from stages.support.programs import OPERATOR_LIBRARIES, namespace_of
from stages.support.untaken import Why, grouped, untaken_by
from stages.support.what_if import other_takers, takers_of_variants

__all__ = ["offered_in_turn"]


Others = Callable[[], Mapping[str, Sequence[Partitioner]]]


@dataclass
class _Answer:
    """What one partitioner answered, and what would change its mind."""

    partitioner: Partitioner
    asked: Asked
    untaken: dict[str, tuple[Operator, Why]]
    variants: dict[str, frozenset[str]] = field(default_factory=dict)
    decomposed: dict[str, str] = field(default_factory=dict)


def offered_in_turn(
    method: str,
    program: ExportedProgram,
    partitioners: Sequence[Partitioner],
    others: Others,
    before: Callable[[], Artifact] | None = None,
) -> tuple[MethodCheck, list[str]]:
    """Ask partitioners in order about a method's program; return what becomes of it, and notes.

    Args:
        others: gives what to call them in words, to partitioners that are asked about what is left.
        before: gives the exported program that it was made from, where that is at hand.
    """
    answers: list[_Answer] = []
    notes: list[str] = []
    current = program
    for position, asking in enumerate(leaving_delegates(partitioners)):
        name = type(partitioners[position]).__name__
        offered = current
        try:
            asked = ask(asking, without_weights(offered))
            current = with_delegates(current, asked) if position + 1 < len(partitioners) else current
        except Exception as error:
            notes.append(
                f"method {method!r}: {name} failed while it partitioned, as it would in a run: "
                f"{type(error).__name__}: {error}".strip()
            )
            break
        answers.append(_answer(partitioners[position], asked, offered, lambda: before and before().methods.get(method)))
    return _method(method, program, answers, others), notes


def _answer(partitioner: Partitioner, asked: Asked, offered: ExportedProgram, before: Callable[[], Any]) -> _Answer:
    untaken = untaken_by(partitioner, asked, before)
    if not untaken:
        return _Answer(partitioner, asked, untaken)
    nodes = [(name, node) for name, node in named_nodes(offered) if name in untaken]
    variants, decomposed = takers_of_variants(partitioner, offered), taken_decomposed(partitioner, nodes)
    return _Answer(partitioner, asked, untaken, variants, decomposed)


def _method(method: str, program: ExportedProgram, answers: Sequence[_Answer], others: Others) -> MethodCheck:
    nodes = {name: node for name, node in named_nodes(program) if is_operator(node) and not _of_library(node)}
    taken = {name for answer in answers for name in answer.asked.tags}
    left = {name for name in nodes if name not in taken}
    lacking = without_kernel(nodes[name] for name in left)
    asked_for = {name for name in left if not gives_size(nodes[name])}
    elsewhere = other_takers(program, asked_for, others()) if asked_for else {}
    before = {one["name"]: one["nodes"] for one in delegation_of(program)["backends"]}
    return MethodCheck(
        method=method,
        backends=tuple(_backend(answer, answers[position + 1 :], elsewhere) for position, answer in enumerate(answers)),
        left=tuple(operator_of(name, node) for name, node in nodes.items() if name in left),
        without_kernel=tuple(operator_of(name, node) for name, node in nodes.items() if node in lacking),
        taken_before=before,
    )


def _of_library(node: torch.fx.Node) -> bool:
    return namespace_of(node.target) in OPERATOR_LIBRARIES


def _backend(answer: _Answer, later: Sequence[_Answer], elsewhere: Mapping[str, Sequence[str]]) -> BackendCheck:
    partitioner, asked = answer.partitioner, answer.asked
    found = [
        (operator, why, _helps(name, answer, later, elsewhere)) for name, (operator, why) in answer.untaken.items()
    ]
    ids = dict.fromkeys(asked.backends.values())
    return BackendCheck(
        backend=next(iter(ids), None) or backend_of(partitioner) or type(partitioner).__name__,
        partitioner=type(partitioner).__name__,
        taken=tuple(operator_of(name, node) for name, node in named_nodes(asked.program) if name in asked.tags),
        delegates=len(asked.backends),
        untaken=grouped(found),
    )


def _helps(
    name: str, answer: _Answer, later: Sequence[_Answer], elsewhere: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Say what was found to get an operator taken."""
    taken_by = next((type(one.partitioner).__name__ for one in later if name in one.asked.tags), None)
    if taken_by is not None:
        return (f"nothing is needed: {taken_by}, which is asked next, takes it",)
    helps = [f"{words}: it is then taken" for words, taken in answer.variants.items() if name in taken]
    if name in answer.decomposed:
        helps.append(f"decomposed into {answer.decomposed[name]}: tried by itself, it is then taken")
    if name in elsewhere and not later:
        helps.append(f"another target: {', '.join(elsewhere[name])}")
    return tuple(helps)
