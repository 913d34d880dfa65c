"""Which distributions are installed, and in which version."""

from __future__ import annotations

import functools
import importlib.metadata

__all__ = ["installed_version"]


@functools.cache
def installed_version(name: str) -> str | None:
    """Return the version of a distribution, None where it is not installed.

    Looked up once in a process; installing under a running one is not seen.
    """
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
