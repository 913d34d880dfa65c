"""From exported program to lowered in upstream's one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Exported, Lowered, Quantized


def _has_passes(options: Mapping[str, Any]) -> bool:
    return bool((options.get("edge_passes") or {}).get("passes"))  # passes are handed programs with their inputs


@etgraph.stage(
    way="combined",
    on_request=True,
    covers=("edge_passes",),
    cost=19.0,
    reads_inputs=_has_passes,
    note="upstream's one call, which keeps operators whole for the partitioners and shows no edge program",
)
def to_edge_transform_and_lower(
    program: Exported | Quantized,
    *,
    partitioners: Sequence[Any] | Mapping[str, Sequence[Any]],
    compile_config: Any = None,
    preserve_ops: Sequence[Any] = (),
    edge_passes: Mapping[str, Any] | None = None,
) -> Lowered:
    """Convert to edge, keeping operators whole for the partitioners, apply edge passes, and delegate.

    Args:
        partitioners: a list for every method, or a mapping from method to list.
        compile_config: an `executorch.exir.EdgeCompileConfig`; a copy of it is used.
        preserve_ops: operators to keep whole besides those of the config, as operators or as names.
        edge_passes: the options of the stage `edge_passes`, whose work this stage does.
    """
    from executorch.exir import to_edge_transform_and_lower as upstream
    from executorch.exir.backend.backend_api import validation_disabled

    from stages.support.compiler_log import compilers_heard
    from stages.support.delegation import warn_of_nothing_taken
    from stages.support.lowering import (
        fit_to_branches,
        own_config,
        partitioners_by_method,
        resolve_passes,
    )
    from stages.support.partition_order import leaving_delegates
    from stages.support.programs import edge_config_of, operator_named, programs_of

    config = own_config(compile_config)
    wanted = [operator_named(op) if isinstance(op, str) else op for op in preserve_ops]
    config.preserve_ops = [*config.preserve_ops, *(op for op in wanted if op not in config.preserve_ops)]
    chosen = partitioners_by_method(partitioners, program.methods)
    passes = resolve_passes((edge_passes or {}).get("passes", ()), program.methods)
    ordered = {method: leaving_delegates(one) for method, one in fit_to_branches(chosen, program.methods).items()}
    with validation_disabled(), compilers_heard():
        manager = upstream(
            dict(program.methods),
            transform_passes=passes,
            partitioner=ordered,
            constant_methods=dict(program.constant_methods) or None,
            compile_config=config,
        )
    lowered = program.become(
        Lowered,
        methods=programs_of(manager, program.methods),
        compile_config=replace(edge_config_of(config), check_ir_validity=False),
    )
    warn_of_nothing_taken(lowered, chosen)
    return lowered
