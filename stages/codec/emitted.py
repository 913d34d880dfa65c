"""The bytes of an ExecuTorch program in pieces, its data files, and its debug maps as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etgraph.artifact import Executorch
from etgraph.blobs import Buffer, blob_pieces, digest_of
from stages.codec.context import Reader, Writer
from stages.codec.values import Unkept, read_value, write_value

__all__ = ["read_emitted", "write_emitted"]

#: Pieces below this size are kept together, larger ones alone, so that a weight is shared with other artifacts.
_SMALL = 4096


def write_emitted(writer: Writer, artifact: Executorch) -> tuple[dict[str, Any], dict[str, Any]]:
    """Encode the program in two halves: the bytes as wholes are meaning, how they lie in pieces is not."""
    files = {"": artifact.pieces, **artifact.data_pieces}
    meaning = {"digests": [[name, digest_of(list(pieces))] for name, pieces in files.items()]}
    debug: dict[str, Any] = {"pieces": [[name, _write_pieces(writer, pieces)] for name, pieces in files.items()]}
    debug["maps"] = []
    for name, value in artifact.debug.items():
        try:
            debug["maps"].append([name, write_value(writer, value)])
        except Unkept as e:
            writer.drop(f"debug map {name!r} ({e.args[0]})")
    return meaning, debug


def _write_pieces(writer: Writer, pieces: Sequence[Buffer]) -> list[str]:
    digests: list[str] = []
    small: list[Buffer] = []

    def keep(blob: list[Buffer]) -> None:
        digest = digest_of(blob)
        writer.blobs.setdefault(digest, blob)
        digests.append(digest)

    for piece in blob_pieces(list(pieces)):
        if piece.nbytes < _SMALL:
            small.append(piece)
            continue
        if small:
            keep(small)
            small = []
        keep([piece])
    if small or not digests:
        keep(small)
    return digests


def read_emitted(reader: Reader) -> dict[str, Any]:
    """Give the fields of an `Executorch` artifact; its pieces are views of the mapped file."""
    files = {name: [reader.blobs.view(d) for d in digests] for name, digests in reader.debug["emitted"]["pieces"]}
    return {
        "pieces": files.pop(""),
        "data_pieces": files,
        "debug": {name: read_value(reader, value) for name, value in reader.debug["emitted"]["maps"]},
    }
