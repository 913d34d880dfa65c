"""`DelegationCheck` in words, for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from etgraph.delegation import (
    REASONS,
    BackendCheck,
    DelegationCheck,
    MethodCheck,
    Operator,
    Untaken,
    counted_operators,
)
from etgraph.words import WIDTH, counted, wrapped

__all__ = ["explain"]

#: So many source lines of one operator are shown under a reason; the rest is counted.
_LINES = 3


def explain(check: DelegationCheck) -> str:
    """Return what each backend takes of each method, and why not the rest, as lines of text."""
    whole = sum(method.operators for method in check.methods.values())
    taken = sum(method.taken for method in check.methods.values())
    share = f" ({100 * check.share:.0f}%)" if whole else ""
    lines = wrapped(f"{check.recipe} takes {taken} of {counted(whole, 'operator')}{share}; nothing was compiled")
    for note in check.notes:
        lines += wrapped(f"note: {note}", 0, 2)
    for method in check.methods.values():
        lines += ["", f"method {method.method}", *_method(method)]
    return "\n".join(lines)


def _method(method: MethodCheck) -> Iterator[str]:
    if not method.operators:
        yield "  there is no operator in it"
        return
    for backend, count in method.taken_before.items():
        yield from wrapped(f"{backend} has {counted(count, 'operator')} in delegates already", 2)
    for position, one in enumerate(method.backends):
        yield from _backend(one, first=position == 0)
    if method.left:
        yield from wrapped(
            f"left to portable kernels: {len(method.left)} of {method.operators}: {_list(method.left)}", 2, 4
        )
    else:
        yield "  nothing is left to portable kernels"
    if method.without_kernel:
        yield from wrapped(
            "no kernel: this host's runtime has none for these, and a .pte with them does not load where they are "
            f"missing: {_list(method.without_kernel)}",
            2,
            4,
        )
        for place in _places(method.without_kernel):
            yield place[6:]


def _backend(one: BackendCheck, *, first: bool) -> Iterator[str]:
    title = f"{one.backend} ({one.partitioner})"
    if not one.offered:
        yield f"  {title} is offered nothing"
        return
    rest = "" if first else "of what is left "
    where = f", in {counted(one.delegates, 'delegate')}" if one.delegates else ""
    yield from wrapped(f"{title}: {rest}it takes {len(one.taken)} of {one.offered}{where}", 2, 4)
    if one.rewritten:
        into = ", ".join(_times(name, count) for name, count in one.rewritten.items())
        yield from wrapped(f"rewritten: {_list(one.taken)}", 4, 6)
        yield from wrapped(f"into: {into}", 4, 6)
    elif one.taken:
        yield from wrapped(f"takes: {_list(one.taken)}", 4, 6)
    for group in one.untaken:
        yield from _untaken(group)


def _untaken(group: Untaken) -> Iterator[str]:
    said = f'"{group.reason}"' if group.quoted else group.reason
    meaning = f" ({REASONS[group.code]})" if group.quoted and group.code in REASONS else ""
    yield from wrapped(f"{len(group.operators)} not taken: {said}{meaning}", 4, 6)
    by_operator: dict[str, list[Operator]] = {}
    for one in group.operators:
        by_operator.setdefault(one.operator, []).append(one)
    for name, calls in sorted(by_operator.items(), key=lambda item: -len(item[1])):
        yield from wrapped(_times(name, len(calls)), 8)
        yield from _places(calls)
    for help_ in group.helps:
        yield from wrapped(f"helps: {help_}", 6, 8)


def _places(calls: Sequence[Operator]) -> Iterator[str]:
    """Return a line for each line of the model; where none is known, the nodes."""
    known = {one.source_line: one for one in calls if one.source_line}
    lines = [_short(line) for line in known]
    if not lines:
        lines = [f"{one.node}  {one.value}" for one in calls]
    for line in lines[:_LINES]:
        yield f"          {_cut(line)}"
    if len(lines) > _LINES:
        yield f"          and {len(lines) - _LINES} more"


def _short(source_line: str) -> str:
    """Leave out the folder of a source line."""
    place, space, rest = source_line.partition(" in ")
    return f"{PurePath(place).name}{space}{rest}"


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH - 10 else f"{line[: WIDTH - 13]}..."


def _list(operators: Sequence[Operator]) -> str:
    counts: Mapping[str, int] = counted_operators(operators)
    return ", ".join(_times(name, count) for name, count in counts.items())


def _times(name: str, count: int) -> str:
    return f"{name} x{count}" if count > 1 else name
