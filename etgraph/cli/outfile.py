"""Where results go: names, suffixes, and whether a file can be written there, all known before any work."""

from __future__ import annotations

import os
from pathlib import Path

from etgraph.cli.source import Reference, program_stem
from etgraph.errors import UsageError
from etgraph.files import check_writable

__all__ = ["file_name", "made_folder", "output_path"]

_FINAL = (".pte", ".ptd", ".bpte")
_INTERMEDIATE = (".etg", ".pt2")
#: What a kind may be written under; every other one as `.etg` alone.
_SUFFIXES = {"executorch": (".pte",), "exported": (".etg", ".pt2"), "quantized": (".etg", ".pt2")}


def file_name(stem: str, kind: str) -> str:
    """Return the name of a file that holds a kind: `model.pte`, or `model.edge.etg` for an intermediate."""
    return f"{stem}.pte" if kind == "executorch" else f"{stem}.{kind}.etg"


def output_path(given: str | None, reference: Reference, kind: str) -> Path:
    """Return the file that a run will write.

    Args:
        given: `-o`; a file, or a folder that exists, into which a file of the default name goes.
        kind: what it will hold.

    Raises:
        UsageError: the suffix belongs to another kind, or the file cannot be written there.
    """
    if kind == "module":
        raise UsageError(
            "a program at module is Python code, which cannot be written to a file",
            hint="Stop at a later kind: --to exported.",
        )
    path = Path(file_name(reference.stem, kind)) if given is None else Path(given)
    if given is not None and path.is_dir():
        path = path / file_name(reference.stem, kind)
    elif given is not None and given.endswith(("/", os.sep)):
        raise UsageError(f"-o {given} is a folder that does not exist", hint=f"Make it first: mkdir -p {given}")
    _check_suffix(path, kind)
    check_writable(path, f"-o {path}")
    if reference.path is not None and path.exists() and path.samefile(reference.path):
        if given is None:
            raise UsageError(f"the result would be named {path}, and that is SOURCE", hint="Name it with -o.")
        raise UsageError(f"-o {path} is SOURCE itself", hint="Give another name for the result.")
    return path


def _check_suffix(path: Path, kind: str) -> None:
    allowed = _SUFFIXES.get(kind, (".etg",))
    if path.suffix in allowed:
        return
    suffix = path.suffix.lower()
    if kind == "executorch":
        why = "is the suffix of intermediate programs" if suffix in _INTERMEDIATE else "is not .pte"
        good = path.with_name(f"{program_stem(path)}.pte")
        hint = f"Name it {good}, or stop earlier with --to."
    else:
        why = "is the suffix of the final product" if suffix in _FINAL else f"is not {' or '.join(allowed)}"
        good = path.with_name(file_name(program_stem(path), kind))
        hint = f"Name it {good}, or go on with --to executorch."
    made = "a .pte" if kind == "executorch" else "an intermediate"
    raise UsageError(f"-o {path}: {path.suffix or 'no suffix'} {why}, and --to {kind} makes {made}", hint=hint)


def made_folder(given: str | os.PathLike[str], flag: str) -> Path:
    """Return a folder to write into, made when it is not there.

    Raises:
        UsageError: it cannot be made, or does not permit writing.
    """
    path = Path(given)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{flag} {path}: the folder cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {path}: the folder does not permit writing")
    return path
