"""Delegate parts of an edge program to backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Edge, Lowered


@etgraph.stage(
    way="split",
    on_request=True,
    cost=16.0,
    reads_inputs=False,
    note="goes on from the edge program, which the combined call never shows",
)
def to_backend(program: Edge, *, partitioners: Sequence[Any] | Mapping[str, Sequence[Any]]) -> Lowered:
    """Delegate what the partitioners take, in order.

    Args:
        partitioners: a list for every method, or a mapping from method to list. Each sees what those before it left.
    """
    from executorch.exir.backend.backend_api import validation_disabled

    from stages.support.compiler_log import compilers_heard
    from stages.support.delegation import warn_of_nothing_taken
    from stages.support.lowering import delegate, partitioners_by_method
    from stages.support.programs import manager_of, programs_of

    chosen = partitioners_by_method(partitioners, program.methods)
    with validation_disabled(), compilers_heard():
        manager = delegate(manager_of(program), chosen)
    lowered = program.become(
        Lowered,
        methods=programs_of(manager, program.methods),
        # As upstream: what a backend left behind is not verified again.
        compile_config=replace(program.compile_config, check_ir_validity=False),
    )
    warn_of_nothing_taken(lowered, chosen)
    return lowered
