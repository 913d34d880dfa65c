"""Change an edge program before anything is delegated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Edge


@etgraph.stage
def edge_passes(program: Edge, *, passes: Any = ()) -> Edge:
    """Apply passes to the edge program, method by method.

    Args:
        passes: a list of passes, or of functions `(method name, ExportedProgram) -> list of passes or PassManager`
            as in upstream's `LoweringRecipe.edge_transform_passes`; or a mapping from method to list of passes; or
            a PassManager.
    """
    from executorch.exir.program._program import lift_constant_tensor_pass

    from stages.support.lowering import resolve_passes
    from stages.support.programs import copy_for_rewriting, edge_config_of, manager_of, programs_of

    resolved = resolve_passes(passes, program.methods)
    if resolved is None:
        return program
    manager = manager_of(program, {m: copy_for_rewriting(p) for m, p in program.methods.items()})
    manager = manager.transform(resolved)
    programs = programs_of(manager, program.methods)
    for changed in programs.values():
        lift_constant_tensor_pass(changed)
    return replace(program, methods=programs, compile_config=edge_config_of(manager.compile_config))
