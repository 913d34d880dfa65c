"""Figures, tolerances, and how a comparison shows itself."""

from __future__ import annotations

import json
import math

import pytest

from etgraph.numerics import (
    Comparison,
    Gap,
    NodeNumbers,
    OutputNumbers,
    StageNumbers,
    Suspect,
    Tolerance,
)


def test_errors_are_right_within_1e3_of_the_largest_value_or_1e4_absolute() -> None:
    """What is not finite is never right."""
    tolerance = Tolerance()
    assert tolerance.holds(0.0, 0.0)
    assert tolerance.holds(5e-5, 1.0)
    assert tolerance.holds(0.5, 9e-4)
    assert not tolerance.holds(2e-4, 2e-3)
    assert not tolerance.holds(2e-4, 2e-3, 100.0)
    assert not tolerance.holds(math.nan, math.nan)
    assert not tolerance.holds(math.inf, 0.0)


def test_a_ratio_counts_only_where_one_is_asked_for() -> None:
    assert Tolerance(snr=20).holds(1.0, 0.5, 20.0)
    assert not Tolerance(snr=20).holds(1.0, 0.5, 19.9)
    assert not Tolerance(snr=20).holds(math.inf, 0.5, 40.0)


def test_the_worse_of_two_gaps_is_so_figure_by_figure() -> None:
    one, other = Gap(1.0, 0.1, 30.0, 0.9, None), Gap(0.5, 0.2, 40.0, 0.8, 0.5)
    assert one.worst(other) == other.worst(one) == Gap(1.0, 0.2, 30.0, 0.8, 0.5)
    assert Gap().worst(one).argmax is None
    assert Gap(argmax=0.25).worst(other) == other.worst(Gap(argmax=0.25)) == Gap(0.5, 0.2, 40.0, 0.8, 0.25)


@pytest.fixture
def found() -> Comparison:
    right, wrong = Gap(), Gap(5.0, 1.0, -math.inf, 0.5, 0.0)
    bad = NodeNumbers(
        "forward", "aten_hardtanh_default", "aten.hardtanh.default", "hardtanh", "hardtanh(x)", "hardtanh(x, 0.0, 6.0)",
        "net.py:3 in forward: x", (0.5, 0.25), (0.0,), wrong, False,
    )  # fmt: skip
    return Comparison(
        stages=(
            StageNumbers("source", "module", (OutputNumbers("forward", 0, right, right, True),)),
            StageNumbers("to_edge", "edge", (OutputNumbers("forward", 0, wrong, wrong, False),)),
            StageNumbers("to_backend", "lowered", reason="no Python for it"),
        ),
        inputs="the example inputs",
        samples={"forward": 1},
        nodes=(NodeNumbers("forward", "x", "placeholder", "x", gap=right, within=True), bad),
        suspects=(Suspect("to_edge", "edge", "forward", "the clamp is off", bad),),
    )


def test_the_first_stage_out_of_tolerance_is_known(found: Comparison) -> None:
    assert not found.within
    assert found.first_bad is found.stages[1]


def test_json_holds_every_figure_infinite_ones_as_text(found: Comparison) -> None:
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [stage["first_bad"] for stage in data["stages"]] == [False, True, False]
    assert data["stages"][1]["outputs"][0]["source"]["snr"] == "-inf"
    assert data["suspects"][0]["node"]["scale"] == [0.5, 0.25]
    assert data["stages"][2]["reason"] == "no Python for it"


def test_text_names_the_node_its_line_its_scale_and_what_it_was_called_with(found: Comparison) -> None:
    text = str(found)
    for expected in (
        "first bad: edge, made by to_edge, method forward",
        "the clamp is off",
        "model source: net.py:3 in forward: x",
        "now:    hardtanh(x)",
        "before: hardtanh(x, 0.0, 6.0)",
        "scale 0.5 to 0.25, zero point 0",
        "lowered (by to_backend) not executed: no Python for it",
        "OFF <- first",
    ):
        assert expected in text
    assert max(map(len, text.splitlines())) <= 90
