"""What is different between two programs, as a value; `etgraph.diff` gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["TOPICS", "Difference", "ProgramChange", "Side"]

#: What a change can be about, in the order in which it is told.
TOPICS: Mapping[str, str] = {
    "kind": "the kind",
    "methods": "methods",
    "inputs": "inputs",
    "outputs": "outputs",
    "operators": "operators, by how often they are called",
    "arguments": "arguments of operators",
    "values": "what operators give",
    "delegation": "delegation",
    "weights": "weights",
    "code": "the code of the model",
    "options": "options",
    "sizes": "sizes, in bytes",
    "memory": "planned memory",
    "versions": "versions",
    "bytes": "bytes",
}


@dataclass(frozen=True)
class Side:
    """One of the two programs.

    Args:
        name: what the caller called it.
        kind: its kind.
        fingerprint: empty where it has none.
        why_no_fingerprint: why.
    """

    name: str
    kind: str
    fingerprint: str
    why_no_fingerprint: str = ""


@dataclass(frozen=True)
class ProgramChange:
    """One thing that is different.

    Args:
        topic: one of `TOPICS`.
        method: the method; empty where it is about all of them.
        what: what is different, such as an operator, a weight or a section.
        before: what it is in the first program; None where it is not there.
        after: what it is in the second program; None where it is not there.
        detail: more about it, such as the model's source line.
    """

    topic: str
    method: str
    what: str
    before: str | int | None
    after: str | int | None
    detail: str = ""


@dataclass(frozen=True)
class Difference:
    """What is different between two programs.

    Args:
        a: the first.
        b: the second.
        changes: in the order of `TOPICS`.
        notes: what could not be compared, and why.
    """

    a: Side
    b: Side
    changes: tuple[ProgramChange, ...]
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the two are the same program."""
        return not self.changes

    def about(self, topic: str) -> tuple[ProgramChange, ...]:
        """Return the changes of one topic."""
        return tuple(change for change in self.changes if change.topic == topic)

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        return {
            "same": self.same,
            "a": _side(self.a),
            "b": _side(self.b),
            "changes": [
                {
                    "topic": change.topic,
                    "method": change.method,
                    "what": change.what,
                    "before": change.before,
                    "after": change.after,
                    "detail": change.detail,
                }
                for change in self.changes
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from etgraph.difference_text import explain

        return explain(self)


def _side(side: Side) -> dict[str, str | None]:
    return {"name": side.name, "kind": side.kind, "fingerprint": side.fingerprint or None}
