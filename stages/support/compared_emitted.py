"""Two `.pte` compared down to their bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from etgraph.artifact import Executorch
from etgraph.difference import ProgramChange
from stages.support.emitted_program import EmittedBlob, EmittedMethod, EmittedProgram

__all__ = ["changed_bytes", "changed_delegates", "changed_emitted"]


def changed_emitted(a: EmittedProgram, b: EmittedProgram) -> Iterator[ProgramChange]:
    """Compare what two programs have in the methods that both have, and their data."""
    for name in (name for name in a.methods if name in b.methods):
        one, other = a.methods[name], b.methods[name]
        yield from _delegates(name, one.delegates, other.delegates)
        yield from _constants(name, one.constants, other.constants)
        yield from _plan(name, one, other)
    yield from _data(a.named_data, b.named_data)


def _delegates(method: str, a: Sequence[EmittedBlob], b: Sequence[EmittedBlob]) -> Iterator[ProgramChange]:
    before, after = Counter(one.name for one in a), Counter(one.name for one in b)
    for name in sorted(before | after):
        if before[name] != after[name]:
            what = f"delegates of {name}"
            yield ProgramChange("delegation", method, what, before[name] or None, after[name] or None)
    yield from changed_delegates(method, a, b)


def changed_delegates(method: str, a: Sequence[EmittedBlob], b: Sequence[EmittedBlob]) -> Iterator[ProgramChange]:
    """Compare what delegates were told and what is in them, where there are the same ones in the same order."""
    if [one.name for one in a] != [one.name for one in b]:
        return
    for number, (one, other) in enumerate(zip(a, b, strict=True)):
        what = f"delegate {number} of {one.name}"
        if one.options != other.options:
            yield ProgramChange("options", method, f"compile specs of {what}", str(one.options), str(other.options))
        if one.digest != other.digest:
            detail = f"what is inside of it is the backend's own; {one.bytes:,} and {other.bytes:,} bytes"
            yield ProgramChange("delegation", method, what, one.digest[:16], other.digest[:16], detail)


def _constants(method: str, a: Sequence[EmittedBlob], b: Sequence[EmittedBlob]) -> Iterator[ProgramChange]:
    """Compare constants without names: in order where their dtypes and shapes are the same, else as a set."""
    if [one.name for one in a] == [one.name for one in b]:
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            if one.digest != other.digest:
                what = f"constant {number}, {one.name}"
                yield ProgramChange("weights", method, what, one.digest[:16], other.digest[:16])
        return
    before, after = Counter(one.name for one in a), Counter(one.name for one in b)
    for name in sorted(before | after):
        if before[name] != after[name]:
            yield ProgramChange("weights", method, f"constants {name}", before[name] or None, after[name] or None)


def _plan(method: str, a: EmittedMethod, b: EmittedMethod) -> Iterator[ProgramChange]:
    for topic, what, one, other in (
        ("memory", "tensors placed elsewhere in the planned memory", a.placement, b.placement),
        ("values", "tensors with another requires_grad or order of dimensions", a.flags, b.flags),
    ):
        if len(one) == len(other):
            count = sum(x != y for x, y in zip(one, other, strict=True))
            if count:
                yield ProgramChange(topic, method, what, None, f"{count} of {len(one)}")
    arenas = [list(one.plan.non_const_buffer_sizes)[1:] for one in (a, b)]
    if arenas[0] != arenas[1]:
        yield ProgramChange("memory", method, "bytes of the planned memory", str(arenas[0]), str(arenas[1]))


def _data(a: Sequence[EmittedBlob], b: Sequence[EmittedBlob]) -> Iterator[ProgramChange]:
    """Compare data by name; backends name it by its content, so that changed data has another name."""
    before, after = {one.name: one for one in a}, {one.name: one for one in b}
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            sizes = [None if x is None else f"{x.bytes:,} bytes" for x in (one, other)]
            yield ProgramChange("weights", "", f"data {name[:40]}", sizes[0], sizes[1])
        elif one.digest != other.digest:
            yield ProgramChange("weights", "", f"data {name[:40]}", one.digest[:16], other.digest[:16])


def changed_bytes(a: Executorch, b: Executorch, one: EmittedProgram, *, explained: bool) -> Iterator[ProgramChange]:
    """Say where bytes differ of programs of the same size in which nothing else was found to."""
    if explained:
        return
    # Sizes are the same, as else they would explain it.
    unequal = np.flatnonzero(np.frombuffer(a.buffer, np.uint8) != np.frombuffer(b.buffer, np.uint8))
    inside = int((unequal < one.program_bytes).sum())
    for what, count in (("the program", inside), ("the segments after it", len(unequal) - inside)):
        if count:
            where = f"first at byte {unequal[0]:,}; everything that is compared here is equal: order or padding"
            yield ProgramChange("bytes", "", what, None, f"{count:,} bytes differ", where)
