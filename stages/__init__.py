"""What ExecuTorch is, for etgraph: stages, recognition of kinds, recipes, targets, checks.

Every module of this package, of `stages.recipes` and of `stages.targets` is imported when the plugin is loaded and
registers itself by its decorators: a new stage, recipe or target is a new file here and no other edit.
`stages.support` and `stages.codec` hold what several of them share; they are imported only when needed, because they
need torch.
"""

from __future__ import annotations

import importlib
import pkgutil

_DISCOVERED = ("stages", "stages.recipes", "stages.targets")


def _load() -> None:
    for package in _DISCOVERED:
        path = importlib.import_module(package).__path__
        for found in pkgutil.iter_modules(path):
            if not found.ispkg:
                importlib.import_module(f"{package}.{found.name}")


_load()
