"""Reading and removing files that may be anything: damaged, missing, of another type, or not ours."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

__all__ = ["Damaged", "is_shortage", "open_regular", "read_exactly", "reason", "remove", "tree_size"]

#: This process or machine is short of something; the file itself may be good.
_SHORTAGE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN}


class Damaged(Exception):
    """A file of the cache is not what was written; the message says in what way."""


def is_shortage(error: BaseException) -> bool:
    """The error is about this process (open files, memory), not about the file."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGE)


def open_regular(path: str | Path) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; never waits on a pipe and never follows a link.

    Raises:
        FileNotFoundError: there is none.
        Damaged: something else lies there.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise Damaged("it is not a regular file") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Damaged("it is not a regular file")
    return descriptor, status


def read_exactly(descriptor: int, offset: int, size: int) -> bytearray:
    """Read `size` bytes at `offset`.

    Raises:
        Damaged: the file ends before.
    """
    data = bytearray(size)
    view, done = memoryview(data), 0
    os.lseek(descriptor, offset, os.SEEK_SET)
    with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
        while done < size:
            count = file.readinto(view[done:])
            if not count:
                raise Damaged(f"it ends at {offset + done} bytes, and {offset + size} were wanted")
            done += count
    return data


def reason(error: BaseException) -> str:
    """What the error says, without path and number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def remove(path: Path) -> None:
    """Remove a file or a whole folder; nothing there is fine.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass


def tree_size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what cannot be read counts as nothing."""
    try:
        if not path.is_dir() or path.is_symlink():
            return os.lstat(path).st_size
    except OSError:
        return 0
    return sum(tree_size(Path(folder) / name) for folder, _, names in os.walk(path) for name in names)
