"""The first node that goes wrong, found by walking back from wrong outputs through what is wrong, or not comparable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from stages.support.interpreting import Flow


@dataclass(frozen=True)
class Found:
    """Where a walk ended.

    Args:
        key: the first bad step; None where there is none.
        compared: whether it is known to be bad; otherwise it has no counterpart, and lies between good and bad.
        swapped: numbers of outputs whose step is right, and is another one than before.
    """

    key: str | None = None
    compared: bool = True
    swapped: tuple[int, ...] = ()


def first_bad(
    flow: Flow,
    right: Mapping[str, bool],
    groups: Mapping[str, str],
    outputs: Collection[int],
) -> Found:
    """Find the first bad step.

    Args:
        right: key to whether its value is within tolerance, for those that could be compared.
        groups: key to what it was made from.
        outputs: the numbers of the wrong outputs.
    """
    swapped, seen = [], set()
    waiting: list[str] = []
    for number in outputs:
        key = flow.outputs[number] if number < len(flow.outputs) else None
        if key is None:
            continue
        if right.get(key) is True:
            swapped.append(number)
        else:
            waiting.append(key)
    while waiting:
        key = waiting.pop()
        if key not in seen and key in flow.steps:
            seen.add(key)
            waiting.extend(one for one in flow.steps[key].inputs if right.get(one) is not True)
    order = {key: i for i, key in enumerate(flow.steps)}
    # A constant without counterpart explains nothing; who uses it does.
    seen = {key for key in seen if key in right or flow.steps[key].inputs}
    ends = sorted(
        (key for key in seen if not any(one in seen for one in flow.steps[key].inputs)), key=order.__getitem__
    )
    found = []
    for key in ends:
        if key in right:
            found.append((order[key], key, True))
            continue
        # What lies inside of a decomposition is judged by the value that this ends in.
        bad = [one for one in seen if one in right and groups.get(one) == groups.get(key) is not None]
        last = min(bad, key=order.__getitem__, default=None)
        found.append((order[last or key], last or key, last is not None))
    if not found:
        return Found(None, swapped=tuple(swapped))
    _, key, compared = min(found, key=lambda one: (not one[2], one[0]))
    return Found(key, compared, tuple(swapped))


def first_off_inside(flow: Flow, right: Mapping[str, bool]) -> str | None:
    """Find the first step that is off though the outputs are right: what it takes is right, and who uses it is off too.

    One that is off alone may be a step of another decomposition, and no fault.
    """
    inputs = {key: _nearest(key, lambda one: flow.steps[one].inputs, flow, right) for key in flow.steps}
    users: dict[str, list[str]] = {key: [] for key in flow.steps}
    for key in right:
        for one in inputs[key]:
            users[one].append(key)
    for key in flow.steps:
        if right.get(key) is False and all(right[one] for one in inputs[key]):
            after = users[key]
            if after and not all(right[one] for one in after):
                return key
    return None


def _nearest(key: str, ahead: Callable[[str], Iterable[str]], flow: Flow, right: Mapping[str, bool]) -> set[str]:
    """Return the nearest steps that could be compared."""
    found, seen, waiting = set(), set(), list(ahead(key))
    while waiting:
        one = waiting.pop()
        if one in seen or one not in flow.steps:
            continue
        seen.add(one)
        if one in right:
            found.add(one)
        else:
            waiting.extend(ahead(one))
    return found
