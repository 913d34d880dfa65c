"""The names of ExecuTorch's own recipes, read from its source files: importing them would take seconds."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import etgraph

#: Where executorch 1.5 keeps its RecipeType enumerations.
_PLACES = ("backends/*/recipes/*.py", "backends/*/*/recipes/*.py")


@etgraph.service("foreign_recipes")
def foreign_recipes() -> list[dict[str, str]]:
    """Return each recipe of executorch's: its name, the class that lists it, and the backend's folder in executorch.

    Nothing of executorch is imported, so nothing of it can start a download.
    """
    found = []
    for file in sorted(_files()):
        source = file.read_text(encoding="utf-8", errors="replace")
        if "RecipeType" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and _lists_recipes(node):
                backend = "/".join(file.parts[file.parts.index("backends") + 1 : file.parts.index("recipes")])
                found.extend({"name": name, "owner": node.name, "backend": backend} for name in _values(node))
    return found


def _files() -> Iterator[Path]:
    # The spec of a top-level package is found without importing it.
    spec = importlib.util.find_spec("executorch")
    for root in (spec.submodule_search_locations if spec else None) or ():
        for place in _PLACES:
            yield from (file for file in Path(root).glob(place) if "test" not in file.parts)


def _lists_recipes(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "RecipeType" for base in node.bases)


def _values(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            value = statement.value.value
            if isinstance(value, str):
                yield value
