"""Lines of the user's model in stack traces, told from those of libraries. Imports no torch."""

from __future__ import annotations

import re
import sysconfig

__all__ = ["is_library", "line_of"]

_FILE_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)(?:\n\s+(?P<code>.+))?')
_LIBRARIES = tuple({sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")})


def line_of(stack_trace: str) -> str:
    """Return the innermost line of user code in a formatted stack, as `model.py:12 in forward: x = f(x)`."""
    lines = [m for m in _FILE_LINE.finditer(stack_trace) if not is_library(m["file"])]
    if not lines:
        return ""
    last = lines[-1]
    code = f": {last['code'].strip()}" if last["code"] else ""
    return f"{last['file']}:{last['line']} in {last['function']}{code}"


def is_library(path: str) -> bool:
    """Whether a file belongs to Python or to what is installed, or is no file at all."""
    # torch writes relative paths for the sizes that it inserts.
    return path.startswith((*_LIBRARIES, "<", "torch/fx/"))
