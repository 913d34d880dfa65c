"""One file for an artifact: a small JSON document and the blobs that it names, each distinct blob once.

Layout, all integers little-endian:

    0     header, 256 bytes: magic, format version, kind, file size, where the index and the document lie and
          their digests, and last the digest of all that stands before it
    256   index: for each blob its digest (32 bytes), offset and size (8 bytes each)
    ...   document: UTF-8 JSON
    ...   blobs, aligned to 64 bytes, from 64 KiB on to 4096; zeros between

Every byte is covered: header, index, document and blobs by blake3 digests, padding by being zero. Sizes and
digests are checked before anything is parsed. A file is written beside its place and renamed, so it is whole
or absent. Offsets are 64 bits wide. Nothing here knows what a document means.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from blake3 import blake3

from etgraph.blobs import Blob, blob_pieces, blob_size, digest_of_file, file_pieces, map_file, read_whole
from etgraph.errors import ArtifactFileError
from etgraph.files import replace_file, write_pieces

__all__ = ["FORMAT_VERSION", "MAGIC", "Container", "Header", "is_container", "peek", "read", "write"]

#: As in PNG: the first byte is not ASCII, and CR LF and LF follow, so a transfer in text mode is noticed.
MAGIC = b"\x89ETG\r\n\x1a\n"
FORMAT_VERSION = 1

_HEADER = struct.Struct("<8sII32sQQQQQ32s32s")
_HEADER_SIZE = 256
_ENTRY = struct.Struct("<32sQQ")
_LARGE = 64 << 10


@dataclass(frozen=True)
class Header:
    """What a file says about itself in its first 256 bytes. `size` is that of the whole file, in bytes."""

    kind: str
    format_version: int
    size: int


class Container:
    """A file that was opened with `read`: its document, and its blobs mapped from the file."""

    def __init__(
        self, path: Path, header: Header, document: dict[str, Any], index: dict[str, tuple[int, int]], fd: int
    ) -> None:
        self.path = path
        self.header = header
        self.document = document
        self._index = index
        self._fd = fd
        self._shared: memoryview | None = None

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._fd)

    def __contains__(self, digest: object) -> bool:
        return digest in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def view(self, digest: str) -> memoryview:
        """Give the blob to read, straight from the mapped file."""
        offset, size = self._place(digest)
        if self._shared is None:
            self._shared = map_file(self._fd, 0, self.header.size)
        return self._shared[offset : offset + size]

    def private(self, digest: str) -> memoryview:
        """Map the blob copy-on-write: writing to it reaches neither the file nor another mapping."""
        return map_file(self._fd, *self._place(digest), private=True)

    def copy(self, digest: str) -> bytes:
        """Read the blob into `bytes`; a copy from the map would leave its pages resident too."""
        offset, size = self._place(digest)
        data = read_whole(self._fd, size, offset)
        if len(data) != size:
            raise _damaged(self.path, "it became shorter while it was open")
        return data

    def _place(self, digest: str) -> tuple[int, int]:
        try:
            return self._index[digest]
        except KeyError:
            raise _damaged(self.path, f"its document names a blob {digest[:16]} that it does not hold") from None


def write(path: str | os.PathLike[str], document: Mapping[str, Any], blobs: Mapping[str, Blob]) -> None:
    """Write a container: whole, or not at all.

    Args:
        path: the file; its folder must exist. What was there is replaced only by a complete file.
        document: JSON-able, with the kind under `kind`.
        blobs: blake3 digest (hex) to content.

    Raises:
        ArtifactFileError: the folder is missing or read-only, the disk is full, or the system refused.
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    entries, places, end = [], {}, _HEADER_SIZE + _ENTRY.size * len(blobs) + len(text)
    for digest, blob in blobs.items():
        size = blob_size(blob)
        places[digest] = offset = _aligned(end, size)
        entries.append(_ENTRY.pack(bytes.fromhex(digest), offset, size))
        end = offset + size
    index = b"".join(entries)
    header = _pack_header(document["kind"], end, index, text)

    def fill(file: IO[bytes]) -> None:
        write_pieces(file, (header, index, text))
        position = _HEADER_SIZE + len(index) + len(text)
        for digest, blob in blobs.items():
            file.write(bytes(places[digest] - position))
            write_pieces(file, blob_pieces(blob))
            position = places[digest] + blob_size(blob)

    replace_file(path, fill)


def read(path: str | os.PathLike[str], *, verify: bool = True) -> Container:
    """Open a container, check it, and map it.

    Header, index and document are always checked before they are parsed. With `verify`, every blob and the
    padding are read once too, in pieces, which leaves nothing of them in memory.

    Raises:
        ArtifactFileError: not a container, of another format version, cut, or changed at any byte.
    """
    path = Path(path)
    fd = _open(path)
    try:
        header, index, text, begin = _read_front(path, fd)
        if verify:
            _verify_blobs(path, fd, index, begin, header.size)
        try:
            document = json.loads(text)
        except ValueError as e:
            raise _damaged(path, f"its document is not JSON ({e})") from e
        if not isinstance(document, dict) or document.get("kind") != header.kind:
            raise _damaged(path, "its document does not belong to its header")
        return Container(path, header, document, index, fd)
    except BaseException:
        os.close(fd)
        raise


def peek(path: str | os.PathLike[str]) -> Header:
    """Read kind, format version and size from the first 256 bytes.

    Raises:
        ArtifactFileError: the file is no container, its header is damaged, or its size is another.
    """
    path = Path(path)
    fd = _open(path)
    try:
        return _read_header(path, fd)[0]
    finally:
        os.close(fd)


def is_container(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file begins as a container does; nothing else is checked."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _pack_header(kind: str, size: int, index: bytes, text: bytes) -> bytes:
    name = kind.encode()
    if not 0 < len(name) <= 32:
        raise ValueError(f"the name of a kind has 1 to 32 bytes, not {len(name)}: {kind!r}")
    document_at = _HEADER_SIZE + len(index)
    head = _HEADER.pack(
        MAGIC,
        FORMAT_VERSION,
        0,
        name,
        size,
        _HEADER_SIZE,
        len(index),
        document_at,
        len(text),
        blake3(index).digest(),
        blake3(text).digest(),
    )
    head = head.ljust(_HEADER_SIZE - 32, b"\0")
    return head + blake3(head).digest()


def _read_header(path: Path, fd: int) -> tuple[Header, tuple[Any, ...]]:
    raw = b"".join(file_pieces(fd, 0, _HEADER_SIZE))
    if raw[: len(MAGIC)] != MAGIC:
        raise ArtifactFileError(
            f"{path} is not an etgraph file",
            hint="`etgraph inspect` names what else it knows about a file.",
        )
    if len(raw) < _HEADER_SIZE:
        raise _damaged(path, f"it ends after {len(raw)} bytes, inside its header")
    version = int.from_bytes(raw[8:12], "little")
    if blake3(raw[:-32]).digest() != raw[-32:]:
        raise _damaged(path, "its header does not match its digest")
    if version != FORMAT_VERSION:
        raise ArtifactFileError(
            f"{path} has format version {version}, and this etgraph reads version {FORMAT_VERSION}",
            hint="Save it again with this version of etgraph, or install the one that wrote it.",
        )
    fields = _HEADER.unpack(raw[: _HEADER.size])
    size, found = fields[4], os.fstat(fd).st_size
    if size != found:
        raise _damaged(path, f"it should have {size:,} bytes and has {found:,}")
    return Header(fields[3].rstrip(b"\0").decode(), version, size), fields


def _read_front(path: Path, fd: int) -> tuple[Header, dict[str, tuple[int, int]], bytes, int]:
    header, fields = _read_header(path, fd)
    index_at, index_size, text_at, text_size, index_digest, text_digest = fields[5:11]
    index = b"".join(file_pieces(fd, index_at, index_size))
    text = b"".join(file_pieces(fd, text_at, text_size))
    for name, part, digest in (("index", index, index_digest), ("document", text, text_digest)):
        if blake3(part).digest() != digest:
            raise _damaged(path, f"its {name} does not match its digest")
    places = {digest.hex(): (offset, size) for digest, offset, size in _ENTRY.iter_unpack(index)}
    return header, places, text, text_at + text_size


def _verify_blobs(path: Path, fd: int, index: dict[str, tuple[int, int]], begin: int, end: int) -> None:
    position = begin
    for digest, (offset, size) in index.items():
        if any(any(piece) for piece in file_pieces(fd, position, offset - position)):
            raise _damaged(path, f"the padding before byte {offset:,} is not zero")
        if digest_of_file(fd, offset, size) != digest:
            raise _damaged(path, f"the {size:,} bytes from {offset:,} on do not match their digest")
        position = offset + size
    if position != end:
        raise _damaged(path, f"{end - position:,} bytes at its end belong to nothing")


def _aligned(position: int, size: int) -> int:
    step = mmap.PAGESIZE if size >= _LARGE else 64
    return -(-position // step) * step


def _open(path: Path) -> int:
    try:
        if path.is_dir():
            raise ArtifactFileError(f"{path} is a folder, and a file is wanted", hint="Name the file inside it.")
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as e:
        raise ArtifactFileError(f"{path} cannot be read: {e.strerror or e}") from e


def _damaged(path: Path, what: str) -> ArtifactFileError:
    return ArtifactFileError(
        f"{path} is damaged: {what}", hint="Make it again, or fetch it again if it was copied from elsewhere."
    )
