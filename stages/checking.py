"""What a recipe's backends would take of an edge program, and why not the rest: for `etgraph.check`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import etgraph
from etgraph.artifact import Artifact, Edge, Lowered

if TYPE_CHECKING:
    from etgraph.delegation import MethodCheck


@etgraph.service("check_partitioners")
def check_partitioners(
    program: Edge | Lowered,
    partitioners: Any,
    others: Callable[[], Mapping[str, Sequence[Any]]],
    before: Callable[[], Artifact] | None = None,
) -> tuple[dict[str, MethodCheck], tuple[str, ...]]:
    """Ask partitioners in order; nothing is compiled for a backend.

    Args:
        partitioners: a list for every method, or a mapping from method to list.
        others: gives what to call them in words, to partitioners of other backends that are asked about what is left.
        before: gives the exported or quantized program that it was made from, where that is at hand.

    Returns:
        what becomes of each method, and notes.
    """
    from stages.support.lowering import partitioners_by_method
    from stages.support.offers import offered_in_turn

    others = functools.cache(others)
    chosen = partitioners_by_method(partitioners, program.methods)
    methods, notes = {}, []
    for method, one in program.methods.items():
        with etgraph.at(method):
            methods[method], said = offered_in_turn(method, one, chosen.get(method, ()), others, before)
        notes += said
    return methods, tuple(notes)


@etgraph.service("check_library")
def check_library(edge: Edge, lowered: Lowered, library: str, stage: str) -> dict[str, MethodCheck]:
    """Say what of an edge program was rewritten into a library's operators, and what was left as it was."""
    from etgraph.delegation import BackendCheck, MethodCheck
    from stages.support.rewritten import rewritten

    methods = {}
    for method, program in edge.methods.items():
        into, taken, untaken = rewritten(program, lowered.methods[method], library)
        left = tuple(operator for group in untaken for operator in group.operators)
        check = BackendCheck(library, stage, taken, 0, untaken, into)
        methods[method] = MethodCheck(method, (check,), left)
    return methods
