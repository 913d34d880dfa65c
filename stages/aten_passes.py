"""Change an exported program before it goes to edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import etgraph
from etgraph.artifact import Exported, Quantized

P = TypeVar("P", Exported, Quantized)


@etgraph.stage
def aten_passes(program: P, *, passes: Sequence[Callable[[str, Any], Any]] = ()) -> P:
    """Apply functions `(method name, ExportedProgram) -> ExportedProgram`, in order, to each method.

    The functions get a copy of the graph (weights are shared), so that one that works in place changes nothing
    that was handed out before. Upstream: `ExportRecipe.aten_transform_passes`.
    """
    from torch.export import ExportedProgram

    from stages.support.programs import copy_for_rewriting

    programs = {}
    for method, current in program.methods.items():
        with etgraph.at(method):
            changed = copy_for_rewriting(current)
            for apply in passes:
                changed = apply(method, changed)
                if not isinstance(changed, ExportedProgram):
                    raise etgraph.UsageError(
                        f"the ATen pass {apply!r} returned {type(changed).__name__} for method {method!r}",
                        hint="A pass takes (method name, ExportedProgram) and returns an ExportedProgram.",
                    )
        programs[method] = changed
    return replace(program, methods=programs)
