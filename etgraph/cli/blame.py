"""A user's traceback without our frames: where in their code it went wrong."""

from __future__ import annotations

import os
import traceback
from types import CodeType

__all__ = ["user_traceback"]

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def user_traceback(error: BaseException) -> str:
    """Return the lines of a traceback that begin in the user's code; the import system's and ours are left out."""
    told = traceback.TracebackException.from_exception(error)
    _strip(told)
    lines = "".join(told.format()).rstrip().splitlines()
    return "\n  ".join(lines)


def _strip(told: traceback.TracebackException) -> None:
    told.stack[:] = [frame for frame in told.stack if not _is_ours(frame.filename)]
    for chained in (told.__cause__, told.__context__):
        if chained is not None:
            _strip(chained)


def _is_ours(filename: str) -> bool:
    if filename.startswith("<frozen importlib"):
        return True
    return os.path.abspath(filename).startswith(os.path.join(_OURS, "cli") + os.sep) or filename == _import_helper()


def _import_helper() -> str:
    import importlib

    code: CodeType = importlib.import_module.__code__
    return code.co_filename
