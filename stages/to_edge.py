"""From exported program to the edge dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import etgraph
from etgraph.artifact import Edge, Exported, Quantized
from etgraph.recipes import Deferred


def _what_edge_depends_on(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the partitioners, only what decides which operators stay whole: the rest changes no edge program."""
    if not options.get("partitioners") or isinstance(options["partitioners"], Deferred):
        return options
    from stages.support.lowering import what_stays_whole

    return {**options, "partitioners": what_stays_whole(options["partitioners"])}


@etgraph.stage(cost=5.0, key_options=_what_edge_depends_on, reads_inputs=False)
def to_edge(
    program: Exported | Quantized,
    *,
    compile_config: Any = None,
    preserve_ops: Sequence[Any] = (),
    partitioners: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
) -> Edge:
    """Decompose to Core ATen and convert to the edge dialect.

    Args:
        compile_config: an `executorch.exir.EdgeCompileConfig`; a copy of it is used.
        preserve_ops: operators to keep whole besides those of the config, as operators or as names.
        partitioners: keep whole what these will want whole, by what `to_edge_transform_and_lower` does inside, so
            that `to_backend` with the same partitioners gives the combined call's program. Nothing is delegated.
    """
    from executorch.exir import to_edge as upstream_to_edge

    from stages.support.lowering import (
        edge_for_partitioners,
        fit_to_branches,
        own_config,
        partitioners_by_method,
    )
    from stages.support.programs import edge_config_of, operator_named, programs_of

    config = own_config(compile_config)
    wanted = [operator_named(op) if isinstance(op, str) else op for op in preserve_ops]
    config.preserve_ops = [*config.preserve_ops, *(op for op in wanted if op not in config.preserve_ops)]
    if partitioners:
        chosen = partitioners_by_method(partitioners, program.methods)
        chosen = fit_to_branches(chosen, program.methods)
        manager = edge_for_partitioners(program.methods, chosen, program.constant_methods, config)
    else:
        manager = upstream_to_edge(dict(program.methods), dict(program.constant_methods) or None, compile_config=config)
    return program.become(
        Edge,
        methods=programs_of(manager, program.methods),
        compile_config=edge_config_of(manager.compile_config),
    )
