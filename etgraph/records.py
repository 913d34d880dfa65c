"""What accompanies a `.pte` for ExecuTorch's developer tools: ETRecords and bundled programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etgraph.artifact import Artifact
from etgraph.errors import UsageError
from etgraph.files import check_writable
from etgraph.probe import chosen_inputs
from etgraph.recipes import evaluated
from etgraph.registry import registry
from etgraph.runner import own_copies

if TYPE_CHECKING:
    from etgraph.result import Result

__all__ = ["check_path", "programs_before_lowering", "save_bundled", "save_etrecord"]

#: The stage that goes to lowered in one, and shows no edge program; what it is given is what `to_edge` takes.
_COMBINED = "to_edge_transform_and_lower"

#: Suffixes under which nothing but a program is ever written.
_PROGRAMS = (".pte", ".etg", ".pt2", ".ptd")


def check_path(flag: str, path: Any, to: str = "executorch") -> Path | None:
    """Refuse, before any work, a file that cannot be written, or a run that makes nothing to go with it."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise UsageError(f"{flag} is {path!r}", hint="Give the path of the file to write.")
    if to != "executorch":
        raise UsageError(
            f"{flag} goes with a .pte, and a run to {to} stops before there is one",
            hint=f"Leave {flag} out, or go on to executorch.",
        )
    found = Path(path)
    if found.suffix in _PROGRAMS:
        raise UsageError(f"{flag} {found}: the suffix is that of a program", hint="Name it FILE.etrecord or FILE.bpte.")
    check_writable(found, f"{flag} {found}")
    return found


def save_etrecord(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write the ETRecord of a run, whole or not at all: its programs before lowering, and the maps of debug handles.

    Stages whose results were released, or served from the cache, are asked for again.

    Raises:
        UsageError: the run made no `.pte`, or began with one.
        ArtifactFileError: it cannot be written.
    """
    target = check_path("etrecord", path, str(result.artifact.kind))
    if result.held.kind == "executorch":
        raise UsageError(
            "the run began with a .pte, which keeps no graphs, so there is nothing to make an ETRecord of",
            hint="Run from the module or from an exported, edge or lowered program.",
        )
    programs = programs_before_lowering(result)
    written: Path = registry.service("write_etrecord")(target, program=result.artifact, **programs)
    return written


def programs_before_lowering(result: Result) -> dict[str, Artifact | None]:
    """Return what the program was before it was lowered: `exported`, `edge`, and `transformed` after edge passes."""
    kinds = {str(result.held.kind), *map(str, result.plan.kinds)}
    captured = next((kind for kind in ("quantized", "exported") if kind in kinds), None)
    exported = result[captured] if captured is not None else None
    combined = next((step for step in result.plan.steps if step.stage == _COMBINED), None)
    if combined is None or exported is None:
        at = "edge" if "edge" in kinds else "lowered"
        return {"exported": exported, "edge": result[at], "transformed": None}
    options = own_copies(evaluated(combined.options))
    given = {name: options[name] for name in ("compile_config", "preserve_ops", "partitioners") if name in options}
    edge = registry.stage("to_edge")(exported, **given)
    passes: Mapping[str, Any] = options.get("edge_passes") or {}
    transformed = registry.stage("edge_passes")(edge, **passes) if passes.get("passes") else None
    return {"exported": exported, "edge": edge, "transformed": transformed}


def save_bundled(result: Result, path: str | os.PathLike[str], inputs: Any = None) -> Path:
    """Write the `.pte` with inputs, and what the source computes for them, as a bundled program (`.bpte`).

    Where the run trained the program, what is expected is what the trained one computes.

    Args:
        inputs: as `example_inputs` of `etgraph.run`; the example inputs when not given.

    Raises:
        UsageError: the run made no `.pte`; or something among inputs and outputs cannot be bundled.
        ArtifactFileError: it cannot be written.
    """
    target = check_path("bundled", path, str(result.artifact.kind))
    reference, _ = result.reference
    probe = chosen_inputs([result.source, result.artifact], inputs)
    written: Path = registry.service("write_bundled")(
        target, result.artifact, reference, probe.samples, trained=result.redefining is not None
    )
    return written
