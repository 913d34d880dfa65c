"""Figures: an answer with its median and spread, what is wanted of it, and exponents of growth."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_COMPARISONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


@dataclass(frozen=True)
class Figure:
    """An answer to a question, measured once or several times.

    Args:
        question: the script that asks it.
        what: what was measured, in words; with the question it names the figure over time.
        values: one per round.
        unit: `x` for ratios.
        wanted: what the median should be, such as `<= 1.03`; empty where nothing is wanted.
        note: what else there is to know.
    """

    question: str
    what: str
    values: tuple[float, ...]
    unit: str
    wanted: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"{self.what}: a figure needs at least one value")
        if self.wanted and self.wanted.split()[0] not in _COMPARISONS:
            raise ValueError(f"{self.what}: {self.wanted!r} is no comparison such as '<= 1.03'")

    @property
    def median(self) -> float:
        """The value in the middle; of two, what lies between them."""
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return min(self.values), max(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median is as wanted; None where nothing is."""
        if not self.wanted:
            return None
        comparison, limit = self.wanted.split()
        return bool(_COMPARISONS[comparison](self.median, float(limit)))

    def as_json(self) -> dict[str, Any]:
        """Return everything, the median and the verdict too, as plain data."""
        low, high = self.spread
        return {**asdict(self), "median": self.median, "low": low, "high": high, "met": self.met}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Figure:
        """Return a figure from what `as_json` gave."""
        return cls(
            data["question"], data["what"], tuple(data["values"]), data["unit"], data["wanted"], data.get("note", "")
        )


@dataclass(frozen=True)
class Series:
    """Measurements along an axis, for a plot.

    Args:
        lines: name of a line to its values, one per value of `x`.
        logarithmic: draw both axes so.
    """

    question: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    lines: Mapping[str, Sequence[float]]
    logarithmic: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


@dataclass
class Answer:
    """All that one script measured."""

    figures: list[Figure] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)

    def add(self, other: Answer) -> None:
        """Take in another answer."""
        self.figures += other.figures
        self.series += other.series


def ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """Return, round by round, how many times the one the other was.

    Raises:
        ValueError: the two were not measured equally often, or one took nothing at all.
    """
    if len(above) != len(below):
        raise ValueError(f"{len(above)} rounds cannot be compared with {len(below)}")
    if any(value <= 0 for value in below):
        raise ValueError(f"a ratio to {min(below)} says nothing")
    return tuple(a / b for a, b in zip(above, below, strict=True))


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the power of x that y grows with: the slope of a straight line through both on logarithmic axes."""
    import numpy

    return float(numpy.polyfit(numpy.log(x), numpy.log(y), 1)[0])
