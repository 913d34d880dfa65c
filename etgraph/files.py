"""Writing files so that they are whole or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from etgraph.errors import ArtifactFileError, UsageError

__all__ = ["check_writable", "holds", "replace_file", "write_pieces"]

#: Larger ones come from memory that the system has to clear first each time, which takes longer than all the rest;
#: and for a file that is written in one go it gathers large runs of memory, eight times as slow (Linux 6, ext4).
_CHUNK = 1 << 16


def replace_file(path: str | os.PathLike[str], fill: Callable[[IO[bytes]], None]) -> None:
    """Give a file new content, atomically: `fill(file)` writes beside it, then it is synced and renamed.

    Raises:
        ArtifactFileError: the system refused; what was there is untouched and nothing else is left behind.
    """
    path = Path(path)
    temporary: Path | None = None
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        beside = path.with_name(f".{path.name[:64]}.{uuid.uuid4().hex}.tmp")
        with open(beside, "xb", buffering=1 << 20) as file:
            temporary = beside
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as e:
        raise _refused(path, e) from e
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_pieces(file: IO[bytes], pieces: Iterable[bytes | bytearray | memoryview]) -> None:
    """Write pieces one after the other, in chunks of a size that systems are quick with."""
    for chunk in _chunks(pieces):
        file.write(chunk)


def _chunks(pieces: Iterable[bytes | bytearray | memoryview]) -> Iterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for at in range(0, len(view), _CHUNK):
            yield view[at : at + _CHUNK]


def check_writable(path: Path, what: str) -> None:
    """Refuse, before any work, a file that cannot be written; `what` is how messages name it.

    Raises:
        UsageError: it is a folder, or its own folder is not there or does not permit writing.
    """
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{what} is a folder", hint="Name a file in it.")
    if not folder.exists():
        raise UsageError(f"{what} cannot be written: the folder {folder} does not exist", hint=f"mkdir -p {folder}")
    if not folder.is_dir():
        raise UsageError(f"{what} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{what} cannot be written: the folder {folder} does not permit it")


def holds(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> bool:
    """Whether a file is there that has exactly these bytes; one that cannot be read has not."""
    views = [memoryview(piece).cast("B") for piece in pieces]
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != sum(map(len, views)):
                return False
            # A bytearray compares as memory does; comparing memoryviews goes element by element, nine times as slow.
            read = bytearray(_CHUNK)
            for chunk in _chunks(views):
                if len(read) != len(chunk):
                    read = bytearray(len(chunk))
                if file.readinto(read) != len(chunk) or read != chunk:
                    return False
            return True
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _refused(path: Path, error: OSError) -> ArtifactFileError:
    reasons = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EFBIG: "the file would be larger than is allowed here",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "the folder does not permit it",
        errno.EPERM: "the folder does not permit it",
        errno.ENOENT: f"the folder {path.parent} does not exist",
        errno.ENOTDIR: f"{path.parent} is not a folder",
        errno.EISDIR: "a folder has that name",
    }
    reason = reasons.get(error.errno or 0, error.strerror or str(error))
    return ArtifactFileError(
        f"{path} cannot be written: {reason}", hint="Nothing was changed. Give another path or make room."
    )
