"""`--shape`: what it accepts, what it draws, what it refuses."""

from __future__ import annotations

import pytest
import torch

from etgraph.cli.shapes import DTYPES, ShapeSpec, parse_shape, random_inputs
from etgraph.errors import UsageError


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("1x3x224x224", ShapeSpec("", (1, 3, 224, 224), "float32")),
        ("7", ShapeSpec("", (7,), "float32")),
        ("1x16:int64", ShapeSpec("", (1, 16), "int64")),
        ("scalar:float16", ShapeSpec("", (), "float16")),
        ("attention_mask=1x16:bool", ShapeSpec("attention_mask", (1, 16), "bool")),
    ],
)
def test_forms(given: str, wanted: ShapeSpec) -> None:
    assert parse_shape(given) == wanted


@pytest.mark.parametrize("given", ["", "1,3,224,224", "axb", "1x-3", "x=", "1x3:", "=1x3", "1 x 3", "1x3:int64:x"])
def test_what_is_no_shape_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        parse_shape(given)
    assert "1x3x224x224" in caught.value.hint


def test_unknown_dtype_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'float32'"):
        parse_shape("1x3:flaot32")


def test_every_dtype_is_drawn_in_its_range() -> None:
    """Floats are spread around zero; integers and bool are 0 and 1, which any embedding can take."""
    for dtype in DTYPES:
        (drawn,) = random_inputs([ShapeSpec("", (1000,), dtype)]).args
        assert drawn.dtype == getattr(torch, dtype)
        values = set(drawn.tolist())
        if drawn.dtype.is_floating_point:
            assert len(values) > 100
            assert abs(drawn.float().mean()) < 0.2
        else:
            assert values == {0, 1}


def test_the_same_flags_give_the_same_inputs_whatever_was_drawn_before() -> None:
    specs = [parse_shape("2x3"), parse_shape("mask=4:int64"), parse_shape("2x3")]
    first = random_inputs(specs)
    torch.rand(5)
    second = random_inputs(specs)
    assert torch.equal(first.args[0], second.args[0])
    assert torch.equal(first.kwargs["mask"], second.kwargs["mask"])
    assert not torch.equal(first.args[0], first.args[1])


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    random_inputs([parse_shape("8")])
    assert torch.equal(torch.rand(3), expected)


def test_a_keyword_input_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'m' twice"):
        random_inputs([parse_shape("m=1"), parse_shape("m=2")])
