"""Figures: medians, spreads, verdicts, ratios round by round, exponents."""

import pytest

from benchmarks.figures import Figure, exponent, ratios


def figure(*values, wanted="", unit="x"):
    return Figure("cold", "etgraph / by hand", tuple(values), unit, wanted)


def test_a_figure_has_the_middle_and_the_ends_of_its_rounds():
    one = figure(1.3, 1.0, 1.1)
    assert one.median == 1.1
    assert one.spread == (1.0, 1.3)


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        ("<= 1.03", True),
        ("<= 1.02", False),
        (">= 1.03", True),
        (">= 1.04", False),
        ("< 1.03", False),
        ("> 1.03", False),
    ],
)
def test_the_median_is_judged_by_what_is_wanted(wanted, met):
    assert figure(0.5, 1.03, 9.0, wanted=wanted).met is met


def test_nothing_is_judged_where_nothing_is_wanted():
    assert figure(9.0).met is None


def test_a_figure_without_a_value_or_with_an_unreadable_wish_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        figure()
    with pytest.raises(ValueError, match="no comparison"):
        figure(1.0, wanted="about 1")


def test_a_figure_survives_json():
    one = figure(1.0, 2.0, wanted="<= 1.5")
    assert Figure.from_json(one.as_json()) == one


def test_ratios_are_of_the_same_round():
    assert ratios([2.0, 9.0], [1.0, 3.0]) == (2.0, 3.0)


def test_ratios_of_unequal_rounds_or_to_nothing_are_refused():
    with pytest.raises(ValueError, match="2 rounds cannot be compared with 1"):
        ratios([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="says nothing"):
        ratios([1.0], [0.0])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_the_exponent_is_the_power_that_made_the_figures(power):
    x = [2.0, 4.0, 8.0, 16.0]
    assert exponent(x, [3.0 * one**power for one in x]) == pytest.approx(power, abs=1e-9)
