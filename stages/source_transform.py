"""Change the eager module before it is exported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Module


@etgraph.stage(reads_inputs=False)
def source_transform(
    model: Module, *, transforms: Sequence[Callable[[Any], Any]] = (), in_place: bool = False
) -> Module:
    """Apply functions from module to module to each method's module.

    Args:
        model: the eager modules.
        transforms: called in order; each returns the module to go on with, or None when it changed it in place.
        in_place: work on the caller's own modules, for models of which a second copy does not fit in memory.
            Otherwise the transforms get a copy, and what the caller holds stays as it was.
    """
    import copy

    # One deepcopy over all methods, so that modules and weights that they share stay shared.
    modules = dict(model.methods) if in_place else copy.deepcopy(dict(model.methods))
    for method, module in modules.items():
        with etgraph.at(method):
            for transform in transforms:
                changed = transform(module)
                module = module if changed is None else changed
        modules[method] = module
    return replace(model, methods=modules)
