"""Two lists of calls compared: operators added and gone, moved between places, called with other constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from etgraph.difference import ProgramChange
from stages.support.calls import Call

__all__ = ["added_and_gone", "changed_calls", "moved"]


def added_and_gone(method: str, a: Sequence[Call], b: Sequence[Call]) -> Iterator[ProgramChange]:
    """Compare how often each operator is called, wherever that is."""
    before, after = Counter(call.operator for call in a), Counter(call.operator for call in b)
    for name in sorted(before | after):
        if before[name] != after[name]:
            where = _lines([call for call in (b if after[name] > before[name] else a) if call.operator == name])
            yield ProgramChange("operators", method, name, before[name] or None, after[name] or None, where)


def _lines(calls: Sequence[Call], most: int = 2) -> str:
    lines = list(dict.fromkeys(call.source_line for call in calls if call.source_line))
    return "; ".join(lines[:most]) + (f"; and {len(lines) - most} more lines" if len(lines) > most else "")


def moved(method: str, a: Sequence[Call], b: Sequence[Call]) -> Iterator[ProgramChange]:
    """Compare where operators are: by a backend, or on portable kernels. Only those that both have can have moved."""
    for name in sorted({call.operator for call in a} & {call.operator for call in b}):
        before = Counter(call.place for call in a if call.operator == name)
        after = Counter(call.place for call in b if call.operator == name)
        out, into = before - after, after - before
        if out and into:
            there = {call.node for call in a if call.operator == name and call.place in out}
            calls = [call for call in b if call.operator == name and call.place in into]
            same = [call for call in calls if call.node in there] or calls
            yield ProgramChange("delegation", method, name, _places(before), _places(after), _lines(same))


def _places(places: Counter[str]) -> str:
    return ", ".join(f"{count} in {place}" for place, count in sorted(places.items()))


def changed_calls(method: str, a: Sequence[Call], b: Sequence[Call]) -> Iterator[ProgramChange]:
    """Pair calls of the same operators in order, and compare their constants, and what they give."""
    values: Counter[tuple[str, str, str]] = Counter()
    for one, other in _pairs(a, b):
        where = ", ".join(filter(None, (other.node, other.source_line)))
        before, after = dict(one.arguments), dict(other.arguments)
        for name in dict.fromkeys([*before, *after]):
            if before.get(name) != after.get(name):
                what = f"{one.operator} {name}"
                yield ProgramChange("arguments", method, what, _given(before, name), _given(after, name), where)
        if one.value != other.value:
            values[one.operator, one.value, other.value] += 1
    for (operator, before_value, after_value), count in values.items():
        detail = f"{count} calls" if count > 1 else ""
        yield ProgramChange("values", method, operator, before_value, after_value, detail)


def _given(arguments: dict[str, str], name: str) -> str:
    return arguments.get(name, "its default")


def _pairs(a: Sequence[Call], b: Sequence[Call]) -> Iterator[tuple[Call, Call]]:
    first, second = [call.operator for call in a], [call.operator for call in b]
    if first == second:
        # By far the most frequent; matching sequences takes quadratic time.
        yield from zip(a, b, strict=True)
        return
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        yield from zip(a[block.a : block.a + block.size], b[block.b : block.b + block.size], strict=True)
