"""BLAKE3 with as many threads as are safe: the one hash of addresses, digests and keys.

blake3's threads live in a pool that a forked child does not inherit, and a child that hashes with several
threads waits for them without end (seen with blake3 1.0.11 under `os.fork`). So a forked child hashes with
one.
"""

from __future__ import annotations

import os
from typing import Any

from blake3 import blake3

__all__ = ["hasher"]

_threads: int = blake3.AUTO


def hasher() -> Any:
    """A new `blake3.blake3` for large data."""
    return blake3(max_threads=_threads)


def _in_child() -> None:
    global _threads
    _threads = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
