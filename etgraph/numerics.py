"""How far a program's numbers are from those that it should have: figures, tolerances, and what `compare` found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from etgraph.plain_data import plain

__all__ = [
    "ABSOLUTE", "QUANTIZED_SNR", "RELATIVE", "Comparison", "Gap", "NodeNumbers", "OutputNumbers", "StageNumbers",
    "Suspect", "Tolerance",
]  # fmt: skip

#: A value is right when its largest error is within one of the two: relative to its largest value, or absolute.
RELATIVE = 1e-3
ABSOLUTE = 1e-4
#: What a quantized program has to reach in dB where no target says more; that of the int8 targets.
QUANTIZED_SNR = 20.0


@dataclass(frozen=True)
class Gap:
    """How far one value is from another, the worst over samples.

    Args:
        absolute: the largest absolute error.
        relative: that, relative to the largest value of the reference.
        snr: ten times the logarithm of the reference's energy over the error's, in dB; infinite without an error.
        cosine: cosine of the angle between the two.
        argmax: share of rows (along the last dimension) whose largest element is at the same place; None where a row
            has one element.
    """

    absolute: float = 0.0
    relative: float = 0.0
    snr: float = math.inf
    cosine: float = 1.0
    argmax: float | None = None

    def worst(self, other: Gap) -> Gap:
        """Return the worse of the two, figure by figure."""
        shares = [share for share in (self.argmax, other.argmax) if share is not None]
        return Gap(
            max(self.absolute, other.absolute),
            max(self.relative, other.relative),
            min(self.snr, other.snr),
            min(self.cosine, other.cosine),
            min(shares) if shares else None,
        )


@dataclass(frozen=True)
class Tolerance:
    """What is still right: an absolute or a relative error within these, or a signal-to-noise ratio that reaches `snr`.

    Args:
        snr: in dB; None where only the errors count.
    """

    absolute: float = ABSOLUTE
    relative: float = RELATIVE
    snr: float | None = None

    def holds(self, absolute: float, relative: float, snr: float = -math.inf) -> bool:
        """Whether an error is within; what is not finite never is."""
        if not math.isfinite(absolute):
            return False
        return absolute <= self.absolute or relative <= self.relative or (self.snr is not None and snr >= self.snr)

    def holds_for(self, gap: Gap) -> bool:
        """Whether a gap is within."""
        return self.holds(gap.absolute, gap.relative, gap.snr)


@dataclass(frozen=True)
class OutputNumbers:
    """One output of one method after one stage.

    Args:
        output: its position.
        source: how far it is from that of the program that everything began with.
        previous: how far it is from that of the stage before.
        within: whether both are within tolerance.
        note: of an output that is no tensor, what it is and that it was compared by equality.
    """

    method: str
    output: int
    source: Gap
    previous: Gap
    within: bool
    note: str = ""


@dataclass(frozen=True)
class StageNumbers:
    """The outputs after one stage; `reason` says why there are none where the program could not be executed.

    Args:
        failed: its execution ends in an error, and is not merely impossible on this host.
        stage: the stage that made the program; `source` for the first.
        kind: the kind that it is at.
        tolerance, step_tolerance: what was allowed against the source, and against the stage before.
    """

    stage: str
    kind: str
    outputs: tuple[OutputNumbers, ...] = ()
    reason: str = ""
    failed: bool = False
    tolerance: Tolerance = Tolerance()
    step_tolerance: Tolerance = Tolerance()

    @property
    def within(self) -> bool:
        """Whether every output is within tolerance."""
        return not self.failed and all(one.within for one in self.outputs)


@dataclass(frozen=True)
class NodeNumbers:
    """One node after the first stage that leaves tolerance, compared with what computes the same before that stage.

    Args:
        node: its name; inside a delegate or a branch, after the name of that and a slash.
        operator: what it calls, or `placeholder`.
        counterpart: the node of the stage before; empty where there is none.
        call: what it calls with which arguments, other nodes by name.
        counterpart_call: the same of the counterpart; empty where it calls the same with the same plain values.
        source_line: the line of the model that it comes from; empty where that is not known.
        scale, zero_point: of a quantize or dequantize operator, its own; of another node, those that its output is
            quantized with. One number, or the smallest and the largest of several channels.
        gap: None where there is nothing to compare with.
    """

    method: str
    node: str
    operator: str
    counterpart: str = ""
    call: str = ""
    counterpart_call: str = ""
    source_line: str = ""
    scale: tuple[float, ...] = ()
    zero_point: tuple[float, ...] = ()
    gap: Gap | None = None
    within: bool | None = None


@dataclass(frozen=True)
class Suspect:
    """Where the numbers go wrong: the first bad node of the first stage that leaves tolerance.

    Or one that is off inside of a program whose outputs are within tolerance all the same: on other inputs they may
    not be. `masked` says so.

    Args:
        stage, kind: the stage, and the kind that it made.
        method: the method.
        words: what was found, in a sentence.
        node: the node; None where the nodes agree and the fault lies elsewhere, or none can be looked at.
    """

    stage: str
    kind: str
    method: str
    words: str
    node: NodeNumbers | None = None
    masked: bool = False


@dataclass(frozen=True)
class Comparison:
    """What `etgraph.compare` found: outputs after every stage, and nodes where they first leave tolerance.

    Args:
        stages: in the order of the way; the first is what everything is compared with.
        nodes: of the first stage that leaves tolerance, in the order in which they run.
        suspects: the first bad node of each method that is wrong there.
        inputs: which inputs it was computed on.
        samples: method name to how many.
        notes: what else a reader should know.
    """

    stages: tuple[StageNumbers, ...]
    inputs: str
    samples: Mapping[str, int]
    nodes: tuple[NodeNumbers, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def within(self) -> bool:
        """Whether every output of every stage is within tolerance."""
        return all(stage.within for stage in self.stages)

    @property
    def first_bad(self) -> StageNumbers | None:
        """The first stage that leaves tolerance."""
        return next((stage for stage in self.stages if not stage.within), None)

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold; figures that are not finite as text."""
        data: dict[str, Any] = {"within": self.within, **asdict(self)}
        data["samples"] = dict(self.samples)
        data["stages"] = [
            {**asdict(stage), "within": stage.within, "first_bad": stage is self.first_bad} for stage in self.stages
        ]
        found: dict[str, Any] = plain(data)
        return found

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_comparison

        return show_comparison(self)

    def __str__(self) -> str:
        from etgraph.numerics_text import comparison_text

        return comparison_text(self)
