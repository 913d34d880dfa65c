"""Files that others wrote: what a file is, without torch, and how it becomes an artifact."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etgraph import container
from etgraph.artifact import Artifact
from etgraph.errors import ArtifactFileError, UsageError

__all__ = ["FileDescription", "load_file", "recognise_file"]

_FLATBUFFERS = {b"ET": "pte", b"BP": "bpte", b"FT": "ptd"}
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True)
class FileDescription:
    """What a file is.

    Args:
        form: `etgraph`, `pt2`, `exir`, `etrecord`, `pte` or `bpte`.
        kind: the kind of the artifact that `load_file` gives by default.
        words: the same for people.
        choices: of an `etrecord`, the kinds that can be asked for.
    """

    form: str
    kind: str
    words: str
    choices: tuple[str, ...] = ()


def recognise_file(path: str | os.PathLike[str]) -> FileDescription:
    """Say what a file is, from its beginning and its table of contents; torch is not imported.

    Raises:
        ArtifactFileError: nothing that holds a program; says what it is instead.
    """
    path = _path(path)
    head, size = _head(path)
    if head.startswith(container.MAGIC):
        kind = container.peek(path).kind
        return FileDescription("etgraph", kind, f"an etgraph file of kind {kind}")
    if head.startswith(b"PK"):
        return _recognise_archive(path)
    form = _FLATBUFFERS.get(head[4:6]) if size >= 8 and head[6:8].isdigit() else None
    if form == "pte":
        _check_length(path, head, size)
        return FileDescription("pte", "executorch", "an ExecuTorch program")
    if form == "bpte":
        return FileDescription("bpte", "executorch", "an ExecuTorch program bundled with test inputs")
    raise _not_a_program(path, head, size, form)


def load_file(
    path: str | os.PathLike[str], *, trust: bool = False, kind: str | None = None, verify: bool = True
) -> Artifact:
    """Make an artifact from a file of any form that `recognise_file` knows.

    Args:
        path: the file.
        trust: permit what could run code that is inside a foreign file. An etgraph file never needs it.
        kind: which program of an `.etrecord`, `edge` (the default) or `exported`; for another form, what it must be.
        verify: check the digests of an etgraph file; the cache, which has checked them, need not.

    Raises:
        ArtifactFileError: damaged, of another version, or not a program.
        UntrustedFileError: loading it could run code that is inside it, and `trust` is False.
        UsageError: an operator library is missing, or the file holds another kind.
    """
    path = _path(path)
    described = recognise_file(path)
    if described.form == "etrecord":
        from stages.codec.foreign_exir import load_etrecord

        wanted = kind or described.kind
        if wanted not in described.choices:
            raise UsageError(
                f"{path} holds a program at {' and at '.join(described.choices)}, and {wanted!r} was asked for"
            )
        return load_etrecord(path, wanted, trust=trust)
    artifact = _load(path, described, trust=trust, verify=verify)
    if kind is not None and artifact.kind != kind:
        raise UsageError(f"{path} holds a program at {artifact.kind}, and {kind!r} was asked for")
    return artifact


def _load(path: Path, described: FileDescription, *, trust: bool, verify: bool) -> Artifact:
    if described.form == "etgraph":
        from etgraph.encoding import decode

        opened = container.read(path, verify=verify)
        try:
            return decode(opened.document, opened)
        except ArtifactFileError as e:
            raise ArtifactFileError(f"{path}: {e.problem}", hint=e.hint) from e
    if described.form == "pt2":
        from stages.codec.foreign_pt2 import load_pt2

        return load_pt2(path, trust=trust)
    if described.form == "exir":
        from stages.codec.foreign_exir import load_exir

        return load_exir(path, trust=trust)
    from stages.codec.foreign_pte import load_pte

    return load_pte(path, bundled=described.form == "bpte")


def _path(given: Any) -> Path:
    if isinstance(given, str | os.PathLike) and os.fspath(given):
        return Path(given)
    shown = "an empty path" if given == "" else f"a {type(given).__name__}"
    raise UsageError(f"{shown} is not a path to a file", hint="Give the path as text or as a pathlib.Path.")


def _head(path: Path) -> tuple[bytes, int]:
    try:
        if path.is_dir():
            raise ArtifactFileError(f"{path} is a folder, and a file is wanted", hint="Name the file inside it.")
        with open(path, "rb") as file:
            return file.read(64), os.fstat(file.fileno()).st_size
    except OSError as e:
        raise ArtifactFileError(f"{path} cannot be read: {e.strerror or e}") from e


def _recognise_archive(path: Path) -> FileDescription:
    try:
        with zipfile.ZipFile(path) as archive:
            return _recognise_members(path, archive)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as e:
        raise ArtifactFileError(
            f"{path} begins as an archive and is not a whole one ({e})",
            hint="Fetch it again or make it again.",
        ) from e


def _recognise_members(path: Path, archive: zipfile.ZipFile) -> FileDescription:
    names = archive.namelist()
    inner = {name.partition("/")[2] for name in names}
    if any(name.startswith("models/") and name.endswith(".json") for name in inner):
        program = next(n for n in names if "/models/" in n and n.endswith(".json"))
        return _describe("pt2", archive.read(program), "torch.export.save")
    if any(name.startswith("data/aotinductor/") for name in inner):
        raise _wrong(path, "compiled by AOTInductor", "Give the exported program that was compiled.")
    if "serialized_exported_program.json" in names:
        text = archive.read("serialized_exported_program.json")
        major = _schema_major(text)
        if major >= 8:
            raise _wrong(path, "written by torch.export.save of torch 2.7 or older", "Load and save it with torch 2.8.")
        return _describe("exir", text, "executorch.exir.serde")
    if "ETRECORD_V0" in names:
        inside = [
            kind
            for kind, prefix in (("edge", "edge_dialect_exported_program"), ("exported", "exported_program"))
            if any(name.partition("/")[0] == prefix for name in names)
        ]
        if not inside:
            raise _wrong(path, "an ETRecord without a program", "Make it with generate_etrecord=True.")
        return FileDescription(
            "etrecord", inside[0], f"an ETRecord with a program at {' and at '.join(inside)}", tuple(inside)
        )
    if "constants.pkl" in inner or any(name.startswith("code/") for name in inner):
        raise _wrong(path, "a TorchScript file", "Load the eager model and give it, or export it with torch.export.")
    if "data.pkl" in inner:
        raise _wrong(
            path,
            "written by torch.save: a state dict or a pickled module, which is not a program",
            "Build the model, load the state dict into it, and give the model.",
        )
    raise _wrong(path, "an archive of something else", "Give a .etg, .pt2, .etrecord or .pte file.")


def _describe(form: str, text: bytes, writer: str) -> FileDescription:
    """Tell the kind from the text of a serialized program; loading it tells it from the program."""
    if b"executorch_call_delegate" in text:
        kind = "lowered"
    elif b"executorch.exir.dialects.edge" in text:
        kind = "edge"
    else:
        kind = "quantized" if b"torch.ops.quantized_decomposed." in text else "exported"
    return FileDescription(form, kind, f"a program at {kind}, written by {writer}")


def _schema_major(text: bytes) -> int:
    try:
        return int(json.loads(text)["schema_version"]["major"])
    except (ValueError, KeyError, TypeError) as e:
        raise ValueError(f"its program is not what it should be: {type(e).__name__}") from e


def _check_length(path: Path, head: bytes, size: int) -> None:
    """Check the size of a `.pte` against its extended header (exir/_serialize/_program.py, executorch 1.5.1)."""
    if head[8:12] != b"eh00":
        return
    length, program, base, segments = (
        int.from_bytes(head[12:16], "little"),
        *(int.from_bytes(head[i : i + 8], "little") for i in (16, 24, 32)),
    )
    wanted = max(program, base + (segments if length >= 32 else 0))
    if size < wanted:
        raise ArtifactFileError(
            f"{path} is an ExecuTorch program of {wanted:,} bytes, cut to {size:,}",
            hint="Fetch or make it again.",
        )


def _not_a_program(path: Path, head: bytes, size: int, form: str | None) -> ArtifactFileError:
    if size == 0:
        return ArtifactFileError(f"{path} is empty", hint="Fetch it again or make it again.")
    if form == "ptd":
        return _wrong(path, "an ExecuTorch data file (.ptd)", "Give the .pte that it belongs to.")
    if head.startswith(_PICKLES):
        return _wrong(path, "a pickle", "Give the object itself, or a .etg, .pt2, .etrecord or .pte file.")
    if head[8:9] == b"{" or path.suffix == ".safetensors":
        return _wrong(path, "safetensors: weights, and no program", "Build the model and load the weights into it.")
    text = not any(byte < 9 or 13 < byte < 32 for byte in head)
    what = "a text file" if text else "nothing that is known here"
    return _wrong(path, what, "Give a .etg, .pt2, .etrecord or .pte file, or file.py:name for a model.")


def _wrong(path: Path, what: str, hint: str) -> ArtifactFileError:
    return ArtifactFileError(f"{path} is {what}, and a program is wanted", hint=hint)


def wrap(path: Path, error: Exception, wrote: str) -> ArtifactFileError:
    """Make one clear line of what a deserializer of torch or executorch raised."""
    reason: Any = str(error).strip().splitlines()
    return ArtifactFileError(
        f"{path}, written by {wrote}, cannot be loaded: {type(error).__name__}: {reason[0] if reason else ''}",
        hint="It is damaged, or of a version that the installed torch and executorch do not read.",
    )
