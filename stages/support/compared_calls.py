"""Two lists of calls compared: operators added and gone, moved between places, called with other constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from etgraph.difference import ProgramChange
from stages.support.calls import Call

__all__ = ["added_and_gone", "changed_calls", "moved", "rewired"]


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


def rewired(
    method: str, a: Sequence[Call], b: Sequence[Call], a_outputs: Sequence[str], b_outputs: Sequence[str]
) -> Iterator[ProgramChange]:
    """Compare where the same calls in the same order take their tensors from, and what of them is given out."""
    if [call.operator for call in a] != [call.operator for call in b]:
        return
    first, second = _numbered(a), _numbered(b)
    for one, other in zip(a, b, strict=True):
        before, after = first(one.inputs), second(other.inputs)
        if before != after:
            where = ", ".join(filter(None, (other.node, other.source_line)))
            yield ProgramChange(
                "arguments", method, f"{one.operator} takes", ", ".join(before), ", ".join(after), where
            )
    for position, (was, now) in enumerate(zip(first(a_outputs), second(b_outputs), strict=False)):
        if was != now:
            yield ProgramChange("outputs", method, f"output {position} comes from", was, now)


def _numbered(calls: Sequence[Call]) -> Callable[[Sequence[str]], list[str]]:
    """Return a function that calls nodes by operator and number, as their names depend on what else there is."""
    numbers = {call.node: f"{call.operator} #{number}" for number, call in enumerate(calls)}

    def named(origins: Sequence[str]) -> list[str]:
        found = []
        for origin in origins:
            node, bracket, position = origin.partition("[")
            found.append(f"{numbers.get(node, node)}{bracket}{position}")
        return found

    return named


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
