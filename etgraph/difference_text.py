"""`Difference` in words, for terminals of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from etgraph.difference import TOPICS, Difference, ProgramChange, Side
from etgraph.words import wrapped

__all__ = ["explain"]

#: The folder of a source line, which is left out.
_FOLDER = re.compile(r"/(?:[^/\s:]+/)+(?=[^/\s:]+:\d+ in )")
#: So many changes of one topic are shown; `to_json` has all of them.
_MOST = 20


def explain(found: Difference) -> str:
    """Return what is different, topic by topic, as lines of text."""
    if found.same:
        lines = [f"{found.a.name} and {found.b.name} are equal{_how(found)}"]
    else:
        lines = [f"--- {found.a.name}  ({found.a.kind})", f"+++ {found.b.name}  ({found.b.kind})"]
    lines = [line for one in lines for line in wrapped(one, 0, 4)]
    for topic, title in TOPICS.items():
        changes = found.about(topic)
        if changes:
            lines += ["", title, *_topic(changes)]
    for note in found.notes:
        lines += wrapped(f"note: {note}", 0, 2)
    return "\n".join(lines)


def _how(found: Difference) -> str:
    if _proven(found.a, found.b):
        return f": {found.a.kind}, fingerprint {found.a.fingerprint}"
    return f" as far as can be told: {found.a.kind}, and without a fingerprint of both"


def _proven(a: Side, b: Side) -> bool:
    return bool(a.fingerprint) and a.fingerprint == b.fingerprint


def _topic(changes: Sequence[ProgramChange]) -> Iterator[str]:
    for change in changes[:_MOST]:
        yield from wrapped(_line(change), 2, 6)
    if len(changes) > _MOST:
        yield f"  and {len(changes) - _MOST} more (all with --json)"


def _line(change: ProgramChange) -> str:
    where = f"{change.method}: " if change.method else ""
    detail = f"  ({_FOLDER.sub('', change.detail)})" if change.detail else ""
    if change.before is None:
        return f"+ {where}{change.what}{_value(change.after)}{detail}"
    if change.after is None:
        return f"- {where}{change.what}{_value(change.before)}{detail}"
    if change.before == change.after:
        return f"~ {where}{change.what} {_shown(change.after)}{detail}"
    delta = ""
    if isinstance(change.before, int) and isinstance(change.after, int):
        delta = f" ({change.after - change.before:+,})"
    label = f"{where}{change.what}: " if change.what else where
    return f"~ {label}{_shown(change.before)} -> {_shown(change.after)}{delta}{detail}"


def _value(value: str | int | None) -> str:
    return f" {_shown(value)}" if value not in (None, "") else ""


def _shown(value: str | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
