"""Large blobs: raw bytes under their BLAKE3 digest, each stored once however many entries refer to it."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from etgraph.blobs import digest_of
from etgraph.errors import UsageError
from etgraph.store.directory import StoreDirectory
from etgraph.store.files import Damaged, is_shortage, open_regular, read_exactly, reason

__all__ = ["SMALL", "BlobDamaged", "Blobs", "Buffer", "byte_pieces", "check_digest"]

#: Anything that gives its bytes through the buffer protocol; numpy arrays do too.
Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap

#: Below this many bytes a blob is packed into the file of its entry: a file of its own takes a block and an
#: inode.
SMALL = 16 * 1024
#: Below this many bytes a blob is read, from there on it is mapped: a mapping costs an open file in CPython <
#: 3.13.
MAPPED = 1024**2

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def byte_pieces(content: Buffer | Sequence[Buffer]) -> list[memoryview]:
    """The bytes of a blob, in pieces, without a copy.

    Raises:
        UsageError: a piece does not give its bytes, or not in one run.
    """
    given: Any = [content] if _is_buffer(content) else content
    try:
        views = [memoryview(piece) for piece in given]
        return [view.cast("B") for view in views if view.nbytes]
    except TypeError as error:
        raise UsageError(
            f"Cache.store: a blob is a {type(content).__name__} that does not give its bytes ({error})",
            hint="Give bytes, a contiguous memoryview, or a sequence of those.",
        ) from error


def _is_buffer(content: object) -> bool:
    try:
        memoryview(content).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def check_digest(digest: object) -> str:
    """Refuse what is not an address; it becomes a file name.

    Raises:
        UsageError: it is not 64 lower-case hex digits.
    """
    if isinstance(digest, str) and _DIGEST.fullmatch(digest):
        return digest
    raise UsageError(f"Cache.store: a blob is named {digest!r}, and a BLAKE3 digest (64 hex digits) was wanted")


class BlobDamaged(Damaged):
    """A blob was not what its name says, and has been set aside; the entries that refer to it may be good."""


class Blobs:
    """The blobs of one cache directory."""

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory

    def path(self, digest: str) -> Path:
        """Where a blob lies."""
        return self._directory.path / "blobs" / digest[:2] / digest[2:]

    def has(self, digest: str, size: int) -> bool:
        """A file of that size is there; its content was not looked at."""
        try:
            status = os.lstat(self.path(digest))
        except OSError:
            return False
        return status.st_size == size and os.path.isfile(self.path(digest))

    def ensure(self, digest: str, pieces: Sequence[memoryview]) -> int:
        """Have the blob on disk; returns how many bytes were written, 0 when a good one is there.

        A blob that is there is checked first: an entry must not be built on a damaged one.

        Raises:
            OSError: it cannot be written.
        """
        size = sum(map(len, pieces))
        try:
            self.load(digest, size)
        except (FileNotFoundError, BlobDamaged):
            return self._directory.write(f"blobs/{digest[:2]}/{digest[2:]}", pieces)
        with contextlib.suppress(OSError):
            os.utime(self.path(digest))
        return 0

    def load(self, digest: str, size: int) -> memoryview:
        """The verified bytes of a blob, private to the caller: writing to them changes no file.

        A bad one is set aside, so that the next one who stores it writes it anew.

        Raises:
            FileNotFoundError: it is not there.
            BlobDamaged: it is not what its name and size say.
            OSError: this process is short of files or memory.
        """
        try:
            return self._read(digest, size)
        except FileNotFoundError:
            raise
        except (Damaged, OSError) as error:
            if is_shortage(error):
                raise
            self._directory.problem(f"cached blob {digest[:12]} is damaged ({reason(error)}) and is set aside")
            self._directory.quarantine(self.path(digest))
            raise BlobDamaged(f"blob {digest[:12]}: {reason(error)}") from error

    def _read(self, digest: str, size: int) -> memoryview:
        descriptor, status = open_regular(self.path(digest))
        try:
            if status.st_size != size:
                raise Damaged(f"it has {status.st_size} bytes instead of {size}")
            view = _mapped(descriptor, size) if size >= MAPPED else memoryview(read_exactly(descriptor, 0, size))
        finally:
            os.close(descriptor)
        if digest_of([view]) != digest:
            raise Damaged("its content has another digest than its name")
        return view


def _mapped(descriptor: int, size: int) -> memoryview:
    try:
        return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY))
    except OSError as error:
        if not is_shortage(error):
            raise
        # Out of open files: the bytes themselves still fit where the mapping did not.
        return memoryview(read_exactly(descriptor, 0, size))
