"""Blobs: bytes known by their blake3 digest, wherever they lie; how they are read, hashed and mapped."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from etgraph.hashing import hasher

__all__ = [
    "Blob",
    "BlobSource",
    "Buffer",
    "MemoryBlobs",
    "blob_pieces",
    "blob_size",
    "digest_of",
    "digest_of_file",
    "file_pieces",
    "map_file",
    "read_whole",
]

Buffer: TypeAlias = bytes | bytearray | memoryview
#: Bytes in one piece, or in several that follow one another.
Blob: TypeAlias = Buffer | Sequence[Buffer]

_PIECE = 4 << 20
_seeking = threading.Lock()


class BlobSource(Protocol):
    """Where the blobs of a document come from: a container, a store of single blobs, or memory."""

    def view(self, digest: str) -> memoryview:
        """Give the blob to read."""

    def private(self, digest: str) -> memoryview:
        """Give a writable copy of the blob; writing to it reaches neither the source nor another copy."""

    def copy(self, digest: str) -> bytes:
        """Give the blob as `bytes` of its own."""


@dataclass(frozen=True)
class MemoryBlobs:
    """Blobs that are held in memory, as an encoder gives them."""

    blobs: Mapping[str, Blob]

    def view(self, digest: str) -> memoryview:
        """Give the blob to read; joined when it is held in several pieces."""
        pieces = list(blob_pieces(self.blobs[digest]))
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))

    def private(self, digest: str) -> memoryview:
        """Give a writable copy of the blob."""
        return memoryview(bytearray().join(blob_pieces(self.blobs[digest])))

    def copy(self, digest: str) -> bytes:
        """Give the blob as `bytes` of its own."""
        return b"".join(blob_pieces(self.blobs[digest]))


def blob_size(blob: Blob) -> int:
    """Count the bytes of a blob."""
    return sum(piece.nbytes for piece in blob_pieces(blob))


def digest_of(blob: Blob) -> str:
    """Hash a blob with blake3 (hex), large pieces on all cores, without a copy."""
    hashing = hasher()
    for piece in blob_pieces(blob):
        hashing.update(piece)
    return str(hashing.hexdigest())


def digest_of_file(fd: int, offset: int, size: int) -> str:
    """Hash a part of an open file with blake3 (hex), in pieces; a part that ends early has another digest."""
    hashing = hasher()
    for piece in file_pieces(fd, offset, size):
        hashing.update(piece)
    return str(hashing.hexdigest())


def map_file(fd: int, offset: int, size: int, *, private: bool = False) -> memoryview:
    """Map a part of an open file; with `private` writable, where writing changes memory only.

    The mapping outlives the descriptor and lives as long as the memoryview and what was made of it.
    """
    if size == 0:
        return memoryview(bytearray() if private else b"")
    begin = offset - offset % mmap.ALLOCATIONGRANULARITY
    access = mmap.ACCESS_COPY if private else mmap.ACCESS_READ
    mapped = mmap.mmap(fd, offset - begin + size, access=access, offset=begin)
    return memoryview(mapped)[offset - begin :]


def blob_pieces(blob: Blob) -> Iterator[memoryview]:
    """Give the pieces of a blob as flat views of bytes."""
    parts: Iterable[Buffer] = [blob] if isinstance(blob, (bytes, bytearray, memoryview)) else blob
    for part in parts:
        view = memoryview(part)
        yield view if view.format == "B" and view.ndim == 1 else view.cast("B")


def file_pieces(fd: int, offset: int, size: int) -> Iterator[memoryview]:
    """Read a part of an open file in pieces of at most 4 MiB; fewer when the file ends."""
    while size > 0:
        piece = _read_at(fd, min(size, _PIECE), offset)
        if not piece:
            return
        yield memoryview(piece)
        offset, size = offset + len(piece), size - len(piece)


def read_whole(fd: int, size: int, offset: int) -> bytes:
    """Read `size` bytes, or what there is; one call of the system gives at most 2 GiB."""
    parts = [_read_at(fd, size, offset)]
    have = len(parts[0])
    while have < size and parts[-1]:
        parts.append(_read_at(fd, size - have, offset + have))
        have += len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_at(fd: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    with _seeking:  # Windows moves the one position of the descriptor
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)
