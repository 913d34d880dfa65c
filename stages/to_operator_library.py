"""Rewrite an edge program into the operators of a backend that is a library of kernels, not a delegate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Edge, Lowered
from etgraph.errors import StageError


@etgraph.stage(
    way="split",
    on_request=True,
    cost=8.0,
    note="rewrites operators in the edge program; the combined call knows only delegates",
)
def to_operator_library(program: Edge, *, rewrite: Callable[[str, Any], Any], library: str) -> Lowered:
    """Rewrite each method's edge program into the operators of a library, such as `cortex_m` or `cadence`.

    Args:
        rewrite: a function `(method name, edge ExportedProgram) -> ExportedProgram`. It gets a copy of the graph.
        library: the namespace of the operators that it gives.

    Raises:
        StageError: what `rewrite` returned is no program.
    """
    from torch.export import ExportedProgram

    from stages.support.programs import all_nodes, copy_for_rewriting, namespace_of

    programs = {}
    for method, current in program.methods.items():
        with etgraph.at(method):
            changed = rewrite(method, copy_for_rewriting(current))
        if not isinstance(changed, ExportedProgram):
            raise StageError(
                f"{rewrite!r} returned {type(changed).__name__}",
                stage="to_operator_library",
                method=method,
                hint="It takes (method name, ExportedProgram) and returns an ExportedProgram.",
            )
        _make_values_fake(changed)
        programs[method] = changed
        if not any(namespace_of(node.target) == library for node in all_nodes(changed)):
            etgraph.warn(
                f"method {method!r}: no operator could be rewritten into the library {library}; the whole method runs "
                "on portable kernels"
            )
    return program.become(
        Lowered,
        methods=programs,
        # The operators of a library are no edge operators, so that they would not pass as such.
        compile_config=replace(program.compile_config, check_ir_validity=False),
    )


def _make_values_fake(program: Any) -> None:
    """Give nodes whose value is a plain tensor without memory a fake one, as all other nodes have.

    Upstream's passes leave such values at the scratch memory that they allocate, and they cannot be kept in a file.
    """
    import torch
    from torch._subclasses import FakeTensor

    values = [node.meta.get("val") for node in program.graph.nodes]
    mode = next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)
    for node, value in zip(program.graph.nodes, values, strict=True):
        if mode is not None and type(value) is torch.Tensor and value.device.type == "meta":
            with mode:
                node.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
