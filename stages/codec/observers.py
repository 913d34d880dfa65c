"""Observers and fake-quantize modules of a prepared graph."""

from __future__ import annotations

from typing import Any

from stages.codec.context import Reader, Writer, malformed

__all__ = ["is_known", "read_observer", "write_observer"]


def is_known(module: Any) -> bool:
    """Tell whether a module is an observer that can be kept."""
    return False


def write_observer(writer: Writer, module: Any) -> Any:
    raise NotImplementedError


def read_observer(reader: Reader, encoded: Any) -> Any:
    raise malformed("an observer", encoded)
