"""Two programs of any kinds compared: interfaces, calls, weights and sizes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from etgraph.artifact import Artifact, Executorch
from etgraph.difference import ProgramChange
from stages.support import inspected_eager, inspected_emitted, inspected_programs
from stages.support.calls import PORTABLE, Call, calls_of, outputs_of
from stages.support.compared_calls import added_and_gone, changed_calls, moved, rewired
from stages.support.compared_emitted import changed_bytes, changed_delegates, changed_emitted
from stages.support.compared_weights import changed_weights, weights_of
from stages.support.emitted_program import EmittedBlob, EmittedProgram, blob, emitted_program
from stages.support.programs import delegates_of

__all__ = ["compared_programs", "same"]

_EAGER = ("module", "prepared")


@dataclass(frozen=True)
class _Facts:
    """What is compared of an artifact: method name to its interface and its calls, and sizes by section."""

    artifact: Artifact
    about: Mapping[str, Any]
    calls: Mapping[str, Sequence[Call]]
    sizes: Mapping[str, int]
    emitted: EmittedProgram | None = field(default=None)


def _facts(artifact: Artifact) -> _Facts:
    if isinstance(artifact, Executorch):
        inside = emitted_program(artifact)
        calls: dict[str, Sequence[Call]] = {name: method.calls for name, method in inside.methods.items()}
        return _Facts(artifact, inspected_emitted.described_methods(artifact), calls, inside.sections, inside)
    if artifact.kind in _EAGER:
        about = inspected_eager.describe(artifact, graph=False)
        return _Facts(artifact, about["methods"], {}, {"weights": about["weights"]["bytes"]})
    about = inspected_programs.describe(artifact, graph=False)
    delegated = any(one["delegates"] for one in about["methods"].values())
    sizes = {
        "weights outside of delegates" if delegated else "weights": inspected_programs.outside_bytes(artifact.methods)
    }
    for method, one in about["methods"].items():
        for delegate in one["delegates"]:
            section = f"delegates of {delegate['backend']} in {method}, with their data"
            sizes[section] = sizes.get(section, 0) + delegate["bytes"]
    return _Facts(artifact, about["methods"], {m: list(calls_of(p)) for m, p in artifact.methods.items()}, sizes)


def compared_programs(a: Artifact, b: Artifact, notes: list[str]) -> list[ProgramChange]:
    """Compare everything but options; say in `notes` what cannot be compared."""
    one, other = _facts(a), _facts(b)
    changes: list[ProgramChange] = []
    for method in (name for name in one.about if name in other.about):
        changes += _interface(method, one, other)
        changes += _calls(method, one, other, notes)
    if one.emitted is not None and other.emitted is not None:
        changes += changed_emitted(one.emitted, other.emitted)
    elif one.emitted is not None or other.emitted is not None:
        notes.append("a .pte has weights without names, so weights are not compared")
    else:
        changes += changed_weights(weights_of(a), weights_of(b))
    changes += _sizes(one.sizes, other.sizes, only_common=a.kind != b.kind)
    if a.kind == b.kind == "lowered":
        changes += _told_and_made(a, b, explained=bool(changes))
    if isinstance(a, Executorch) and isinstance(b, Executorch) and one.emitted and other.emitted:
        changes += changed_bytes(a, b, one.emitted, explained=bool(changes))
    return changes


def _told_and_made(a: Artifact, b: Artifact, *, explained: bool) -> Iterator[ProgramChange]:
    """Compare what delegates of lowered programs were told, and what is in them where nothing else explains it."""
    for method in (name for name in a.methods if name in b.methods):
        sides = [[_blob(one) for one in delegates_of(side.methods[method])] for side in (a, b)]
        for change in changed_delegates(method, *sides):
            if change.topic == "options" or not explained:
                yield change


def _blob(delegate: Any) -> EmittedBlob:
    told = tuple((one.key, bytes(one.value).hex()) for one in delegate.compile_specs)
    return blob(delegate.backend_id, delegate.processed_bytes, told)


def _sizes(a: Mapping[str, int], b: Mapping[str, int], *, only_common: bool) -> Iterator[ProgramChange]:
    """Compare sections; of different kinds those that both have, as the others say only that the kinds differ."""
    for name in dict.fromkeys([*a, *b]):
        if only_common and (name not in a or name not in b):
            continue
        if a.get(name, 0) != b.get(name, 0):
            yield ProgramChange("sizes", "", name, a.get(name), b.get(name))


def _interface(method: str, a: _Facts, b: _Facts) -> Iterator[ProgramChange]:
    one, other = a.about[method], b.about[method]
    if a.artifact.kind in _EAGER or b.artifact.kind in _EAGER:
        # An eager module knows no types; names are all that can be compared.
        if a.artifact.kind == b.artifact.kind:
            yield from _positions("inputs", method, *([v["name"] for v in x["inputs"]] for x in (one, other)))
            yield from _counts("operators", method, one["layers"], other["layers"])
            yield from _counts("operators", method, one.get("operators", {}), other.get("operators", {}))
        return
    named = a.emitted is None and b.emitted is None
    for topic in ("inputs", "outputs"):
        yield from _positions(
            topic, method, *([_typed(v, named and topic == "inputs") for v in x[topic]] for x in (one, other))
        )
    for what, key in (("buffers that it updates", "mutated_buffers"), ("ranges of sizes", "symbols")):
        if named and one[key] != other[key]:
            yield ProgramChange("inputs", method, what, _plain(one[key]), _plain(other[key]))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} from {low} to {high}" for name, (low, high) in value.items()) or "none"
    return ", ".join(value) or "none"


def _typed(value: Mapping[str, Any], named: bool) -> str:
    typed = str(value.get("type", ""))
    if "shape" in value:
        typed = f"{value['dtype']}[{', '.join(map(str, value['shape']))}]"
    if "value" in value:
        typed += f" = {value['value']}"
    remarks = ["written to"] if value.get("mutated") and named else []
    return ", ".join([f"{value['name']} {typed}" if named else typed, *remarks])


def _positions(topic: str, method: str, a: Sequence[str], b: Sequence[str]) -> Iterator[ProgramChange]:
    for position in range(max(len(a), len(b))):
        sides = [one[position] if position < len(one) else None for one in (a, b)]
        if sides[0] != sides[1]:
            yield ProgramChange(topic, method, f"{topic[:-1]} {position}", sides[0], sides[1])


def _counts(topic: str, method: str, a: Mapping[str, int], b: Mapping[str, int]) -> Iterator[ProgramChange]:
    before, after = Counter(a), Counter(b)
    for name in sorted(before | after):
        if before[name] != after[name]:
            yield ProgramChange(topic, method, name, before[name] or None, after[name] or None)


def _calls(method: str, a: _Facts, b: _Facts, notes: list[str]) -> Iterator[ProgramChange]:
    if method not in a.calls or method not in b.calls:
        return
    one, other = a.calls[method], b.calls[method]
    if (a.emitted is None) != (b.emitted is None):
        note = "a .pte does not say which operators are inside of its delegates, so only those outside are compared"
        if note not in notes:
            notes.append(note)
        one, other = ([_by_base_name(call) for call in calls if call.place == PORTABLE] for calls in (one, other))
        yield from added_and_gone(method, one, other)
        yield from _backends(method, a, b)
        return
    yield from added_and_gone(method, one, other)
    yield from moved(method, one, other)
    yield from changed_calls(method, one, other)
    if a.emitted is None and b.emitted is None:
        yield from _backends(method, a, b)
        if a.artifact.kind == b.artifact.kind:
            outputs = [outputs_of(side.artifact.methods[method]) for side in (a, b)]
            yield from rewired(method, one, other, *outputs)


def _by_base_name(call: Call) -> Call:
    """Name an operator in the same way in programs and in a `.pte`, where it is called in its out variant."""
    namespace, name = re.split(r"::|\.", call.operator)[:2]
    return replace(call, operator=f"{namespace}.{name}")


def _backends(method: str, a: _Facts, b: _Facts) -> Iterator[ProgramChange]:
    sides = [
        Counter(one.name for one in side.emitted.methods[method].delegates)
        if side.emitted is not None
        else Counter(one["backend"] for one in side.about[method]["delegates"])
        for side in (a, b)
    ]
    before = {f"delegates of {name}": count for name, count in sides[0].items()}
    yield from _counts("delegation", method, before, {f"delegates of {name}": c for name, c in sides[1].items()})


def same(a: Any, b: Any) -> bool:
    """Whether two constants are equal, tensors by their numbers."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    try:
        return bool(a == b)
    except (TypeError, ValueError, RuntimeError):
        return repr(a) == repr(b)
