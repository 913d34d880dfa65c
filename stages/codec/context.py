"""The tables that one encoding or decoding fills, and the errors that both raise.

A document has two halves. `meaning` holds what a program is and what can change what becomes of it; the fingerprint
is the digest of this half. `debug` holds what only people and tools read (stack traces, where nodes came from,
counters): it is kept in files and is no part of the fingerprint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etgraph.errors import ArtifactFileError, UsageError

if TYPE_CHECKING:
    from etgraph.blobs import Blob, BlobSource

__all__ = ["Reader", "Table", "Writer", "malformed", "refuse", "words"]


def words(text: str) -> tuple[str, ...]:
    """Split a table of names; hundreds of quoted names are hard to read."""
    return tuple(text.split())


def refuse(where: str, what: str, hint: str) -> UsageError:
    """Make the error for something that cannot be kept in a file, at an address inside the artifact."""
    return UsageError(f"{where}: {what} cannot be kept in a file", hint=hint)


def malformed(what: str, given: object) -> ArtifactFileError:
    """Make the error for a document that its digest vouches for and that still makes no sense."""
    shown = repr(given)
    return ArtifactFileError(
        f"the document says {shown[:120]}{'...' if len(shown) > 120 else ''} where {what} is wanted",
        hint="It was made by another version of etgraph or by another program.",
    )


#: Made once: `json.dumps` with separators makes an encoder at each call.
_KEYS = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


@dataclass
class Table:
    """Encoded values, each once, known by their position."""

    rows: list[Any] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)

    def add(self, encoded: Any) -> int:
        """Give the position of a value; a new one is appended."""
        key = _KEYS.encode(encoded)
        position = self._positions.setdefault(key, len(self.rows))
        if position == len(self.rows):
            self.rows.append(encoded)
        return position


@dataclass
class Writer:
    """What an encoding has gathered so far.

    `where` is the address that errors name. Objects are told apart by identity, so `alive` keeps them from being
    collected, and their ids from being given to others, until the encoding is done.
    """

    where: str = "the artifact"
    blobs: dict[str, Blob] = field(default_factory=dict)
    meta: Table = field(default_factory=Table)
    debug: Table = field(default_factory=Table)
    storages: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    modes: list[Any] = field(default_factory=list)
    environments: list[Any] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)
    graph_debug: list[Any] = field(default_factory=list)
    programs: list[Any] = field(default_factory=list)
    program_debug: list[Any] = field(default_factory=list)
    used_symbols: dict[int, dict[Any, int]] = field(default_factory=dict)
    graph_ids: dict[int, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    seen: dict[tuple[str, int], int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)
    nodes: dict[Any, int] = field(default_factory=dict)

    def number(self, group: str, value: object, rows: list[Any]) -> tuple[int, bool]:
        """Give an object its position in a table by identity, and tell whether it is new there."""
        key = (group, id(value))
        if key in self.seen:
            return self.seen[key], False
        self.seen[key] = len(rows)
        self.alive.append(value)
        rows.append(None)
        return len(rows) - 1, True

    def drop(self, what: str) -> None:
        """Record that something was left out of the document."""
        self.dropped[what] = self.dropped.get(what, 0) + 1


@dataclass
class Reader:
    """The halves of a document that is being decoded, and what has been made of them so far."""

    meaning: dict[str, Any]
    debug: dict[str, Any]
    blobs: BlobSource
    storages: dict[int, Any] = field(default_factory=dict)
    tensors: dict[int, Any] = field(default_factory=dict)
    modes: dict[int, Any] = field(default_factory=dict)
    environments: dict[int, Any] = field(default_factory=dict)
    graphs: dict[int, Any] = field(default_factory=dict)
    programs: dict[int, Any] = field(default_factory=dict)
    shared: dict[tuple[str, int], Any] = field(default_factory=dict)
    operators: dict[str, Any] = field(default_factory=dict)
    expressions: dict[tuple[int, str], Any] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
