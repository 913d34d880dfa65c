"""The secret of a cache: what makes its files authentic.

It keeps out files that were edited, moved to another name, or planted by whoever can write to the directory
but not read this file. A lost secret costs the entries, never a wrong one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from etgraph.store.files import Damaged, is_shortage, open_regular, read_exactly, reason

if TYPE_CHECKING:
    from etgraph.store.directory import StoreDirectory

__all__ = ["make_secret", "read_secret"]

_SIZE = 32


def read_secret(directory: StoreDirectory) -> bytes | None:
    """The secret on disk; None where there is none, or where it is damaged and was set aside.

    Raises:
        OSError: this process is short of files or memory.
    """
    path = directory.path / "secret"
    try:
        descriptor, status = open_regular(path)
        try:
            if status.st_size != _SIZE:
                raise Damaged(f"it has {status.st_size} bytes instead of {_SIZE}")
            return bytes(read_exactly(descriptor, 0, _SIZE))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except (OSError, Damaged) as error:
        if is_shortage(error):
            raise
        directory.quarantine(path)
        directory.problem(
            f"the cache's secret {path} is damaged ({reason(error)}); "
            "where no running process has it, a new one is made and older entries count as damaged"
        )
        return None


def make_secret(directory: StoreDirectory, known: bytes | None) -> bytes:
    """Write a secret and return the one that is there now, of this process or of another that was faster.

    Args:
        directory: whose secret it is.
        known: the secret that was there before and was lost; None for a new one.

    Raises:
        OSError: it cannot be written.
        Damaged: it was written and cannot be read.
    """
    path = directory.path / "secret"
    temporary = directory.write_temporary([known or secrets.token_bytes(_SIZE)], sync=True)
    try:
        # A link fails where the name exists, so that of two processes one wins and both read the same.
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    made = read_secret(directory)
    if made is None:
        raise Damaged("its secret cannot be kept")
    return made
