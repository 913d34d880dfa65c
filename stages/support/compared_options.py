"""What two artifacts were made with, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from etgraph.artifact import Artifact, Edge, Executorch, Lowered, Module
from etgraph.difference import ProgramChange
from stages.support.compared import same

__all__ = ["compared_options"]


def compared_options(a: Artifact, b: Artifact) -> Iterator[ProgramChange]:
    """Compare compile configs, constant methods, dynamic shapes, and the options of the steps that led here."""
    if isinstance(a, Edge | Lowered) and isinstance(b, Edge | Lowered):
        yield from _fields("EdgeCompileConfig ", asdict(a.compile_config), asdict(b.compile_config))
    if not isinstance(a, Executorch) and not isinstance(b, Executorch):
        yield from _fields("constant method ", a.constant_methods, b.constant_methods)
    if isinstance(a, Module) and isinstance(b, Module):
        yield from _fields("dynamic shapes of ", _shown(a.dynamic_shapes), _shown(b.dynamic_shapes))
    if a.kind == b.kind and a.provenance and b.provenance:
        yield from _fields("options of ", _steps(a), _steps(b))


def _steps(artifact: Artifact) -> dict[str, str]:
    """Return each step that led to an artifact, with those of its options that are plain enough to be known."""
    return {step.stage: ", ".join(f"{k}={v}" for k, v in step.options) or "none shown" for step in artifact.provenance}


def _shown(shapes: Mapping[str, Any]) -> dict[str, str]:
    return {method: str(value) for method, value in shapes.items() if value}


def _fields(prefix: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[ProgramChange]:
    for name in dict.fromkeys([*a, *b]):
        sides = [_text(one[name]) if name in one else None for one in (a, b)]
        if sides[0] != sides[1]:
            yield ProgramChange("options", "", f"{prefix}{name}", sides[0], sides[1])
        elif name in a and name in b and not same(a[name], b[name]):
            yield ProgramChange("options", "", f"{prefix}{name}", sides[0], sides[1], "with other numbers")


def _text(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
