"""Passes that are made for a whole EdgeProgramManager, at edge or after lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import etgraph
from etgraph.artifact import Edge, Lowered

A = TypeVar("A", Edge, Lowered)


@etgraph.stage
def edge_manager_passes(program: Edge, *, passes: Sequence[Callable[[Any], Any]] = ()) -> Edge:
    """Apply functions `EdgeProgramManager -> passes` at edge, one after the other.

    Upstream: `LoweringRecipe.edge_manager_transform_passes` in a pipeline that has `to_edge`.
    """
    return _apply(program, passes)


@etgraph.stage
def lowered_manager_passes(program: Lowered, *, passes: Sequence[Callable[[Any], Any]] = ()) -> Lowered:
    """Apply functions `EdgeProgramManager -> passes` to a lowered program, one after the other.

    Upstream: `LoweringRecipe.edge_manager_transform_passes` in the default pipeline, which runs them after the
    combined call.
    """
    return _apply(program, passes)


def _apply(program: A, passes: Sequence[Callable[[Any], Any]]) -> A:
    from stages.support.programs import copy_for_rewriting, edge_config_of, manager_of, programs_of

    manager = manager_of(program, {m: copy_for_rewriting(p) for m, p in program.methods.items()})
    for make in passes:
        made = make(manager)
        if made:
            manager = manager.transform(made)
    return replace(
        program,
        methods=programs_of(manager, program.methods),
        compile_config=edge_config_of(manager.compile_config),
    )
