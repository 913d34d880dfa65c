"""The outputs of two forms of a program, compared."""

from __future__ import annotations

from typing import Any

import torch

from etgraph.artifact import Artifact
from etgraph.numerics import Gap, OutputNumbers, StageNumbers
from stages.support.gaps import NOTHING_ALIKE, gap_between
from stages.support.prepared import quantizes
from stages.support.programs import delegates_of

#: Method to its outputs, per sample.
Outputs = dict[str, list[list[Any]]]


def numbers(entry: StageNumbers, wanted: Outputs, previous: Outputs, got: Outputs) -> list[OutputNumbers]:
    """Return how far each output is off, over all samples, from the source and from the stage before."""
    found = []
    for method, samples in got.items():
        count = max(len(one) for one in (*samples, *wanted[method]))
        for number in range(count):
            source = step = Gap()
            note = ""
            for one, first, last in zip(samples, wanted[method], previous[method], strict=True):
                if number >= min(len(one), len(first), len(last)):
                    source = step = NOTHING_ALIKE
                    note = f"there are {len(one)} outputs, and {len(first)} in the source"
                    continue
                source = source.worst(gap_between(one[number], first[number]))
                step = step.worst(gap_between(one[number], last[number]))
                note = note or _note(first[number])
            within = entry.tolerance.holds_for(source) and entry.step_tolerance.holds_for(step)
            found.append(OutputNumbers(method, number, source, step, within, note))
    return found


def _note(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return ""
    return f"no tensor but a {type(value).__name__}, {value!r} in the source; compared by equality"


def worst_sample(previous: list[list[Any]], got: list[list[Any]], wrong: list[int]) -> int:
    """Return the number of the sample on which the wrong outputs are off the most."""
    errors = [
        max((gap_between(one[n], other[n]).relative for n in wrong if n < min(len(one), len(other))), default=0.0)
        for one, other in zip(got, previous, strict=True)
    ]
    return errors.index(max(errors))


def is_quantized(artifact: Artifact) -> bool:
    """Whether the numbers of a program are rounded to few bits."""
    if artifact.kind == "quantized" or "quantized" in artifact.passed:
        return True
    if artifact.kind == "prepared":
        kinds = {type(child).__name__ for held in artifact.methods.values() for child in held.modules()}
        return any("FakeQuant" in kind for kind in kinds)
    if artifact.kind not in ("edge", "lowered"):
        return False
    return any(
        quantizes(one)
        for ep in artifact.methods.values()
        for one in (ep, *(lowered.original_module for lowered in delegates_of(ep)))
    )
