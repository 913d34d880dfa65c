"""The code of etgraph itself, as one part of every key."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import psutil

from etgraph.errors import Undescribable
from etgraph.fingerprint import Description
from etgraph.hashing import hasher

__all__ = ["PACKAGES", "describe_own_code"]

#: The import packages of this distribution.
PACKAGES = ("etgraph", "stages")


@functools.lru_cache(maxsize=1)
def describe_own_code() -> Description:
    """Describe every source file of this distribution by its content, read once in a process.

    A version would not do: in a checkout the code changes under the same version.

    Raises:
        Undescribable: a file was written after this process began, so that what runs may be another.
    """
    began = psutil.Process().create_time()
    hashing = hasher()
    count = 0
    for package in PACKAGES:
        root = Path(sys.modules[package].__path__[0])
        for path in sorted(root.rglob("*.py")):
            if os.stat(path).st_mtime > began:
                raise Undescribable(
                    f"{path.name} was edited after this process began",
                    path="etgraph's own code",
                    type_name="file",
                    hint="Start a new process.",
                )
            content = path.read_bytes()
            name = str(path.relative_to(root.parent)).encode()
            hashing.update(len(name).to_bytes(8, "little") + name + len(content).to_bytes(8, "little") + content)
            count += 1
    digest = str(hashing.hexdigest())
    return Description("files", digest, shown=f"{count} files of etgraph {digest[:12]}")
