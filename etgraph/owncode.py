"""The code of etgraph itself, as one part of every key."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from pathlib import Path

import etgraph
from etgraph.errors import Undescribable
from etgraph.hashing import hasher
from etgraph.identity import Description

__all__ = ["PACKAGES", "describe_own_code"]

#: Seconds by which the clock of a file system may be behind that of the process.
_COARSE = 0.02

#: The import packages of this distribution.
PACKAGES = ("etgraph", "stages")


def describe_own_code() -> Description:
    """Describe every source file of this distribution by its content, read once in a process.

    A version would not do: in a checkout the code changes under the same version.

    Raises:
        Undescribable: a module that is loaded was edited meanwhile, so that what runs is not what was read.
    """
    description, written = _own_code()
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] not in PACKAGES or path not in written:
            continue
        if os.stat(path).st_mtime_ns != written[path] or written[path] > (etgraph._imported_at - _COARSE) * 1e9:
            raise Undescribable(
                f"{name} was edited after this process began",
                path="etgraph's own code",
                type_name="module",
                hint="Start a new process.",
            )
    return description


@functools.lru_cache(maxsize=1)
def _own_code() -> tuple[Description, dict[str, int]]:
    """Return the description, and when each file was written (in ns)."""
    hashing = hasher()
    written: dict[str, int] = {}
    for package in PACKAGES:
        root = Path(importlib.import_module(package).__path__[0])
        for path in sorted(root.rglob("*.py")):
            written[str(path)] = os.stat(path).st_mtime_ns
            content = path.read_bytes()
            name = str(path.relative_to(root.parent)).encode()
            hashing.update(len(name).to_bytes(8, "little") + name + len(content).to_bytes(8, "little") + content)
    digest = str(hashing.hexdigest())
    shown = f"{len(written)} files of etgraph {digest[:12]}"
    return Description("files", digest, shown=shown), written
