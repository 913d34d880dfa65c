"""Lines of the user's model in stack traces, told from those of libraries. Imports no torch."""

from __future__ import annotations

import re
import sysconfig

__all__ = ["is_library", "line_of"]

_FILE_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)(?:\n\s+(?P<code>.+))?')
_PYTHON = tuple({sysconfig.get_path(key) for key in ("stdlib", "platstdlib")})
_INSTALLED = tuple({sysconfig.get_path(key) for key in ("purelib", "platlib")})
#: What is installed and holds no models.
_TOOLCHAIN = tuple(
    f"{folder}/{name}/" for folder in _INSTALLED for name in ("torch", "executorch", "torchao", "coremltools")
)


def line_of(stack_trace: str) -> str:
    """Return the innermost line of user code in a formatted stack, as `model.py:12 in forward: x = f(x)`.

    Where there is none, that of a library that is not of the toolchain: models come from libraries too.
    """
    lines = list(_FILE_LINE.finditer(stack_trace))
    own = [m for m in lines if not is_library(m["file"])]
    models = [m for m in lines if m["file"].startswith(_INSTALLED) and not m["file"].startswith(_TOOLCHAIN)]
    if not own and not models:
        return ""
    last = (own or models)[-1]
    code = f": {last['code'].strip()}" if last["code"] else ""
    return f"{last['file']}:{last['line']} in {last['function']}{code}"


def is_library(path: str) -> bool:
    """Whether a file belongs to Python or to what is installed, or is no file at all."""
    # torch writes relative paths for the sizes that it inserts.
    return path.startswith((*_PYTHON, *_INSTALLED, "<", "torch/fx/"))
