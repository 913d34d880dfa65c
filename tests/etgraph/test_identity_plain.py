"""Plain values are described by exact type and value."""

import enum
import math
import pathlib
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etgraph.identity import Undescribable, describe


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Pairs(enum.Enum):
    ONE = (1, 2)
    TWO = (1, 3)


class Other(enum.Enum):
    RED = 1


DIFFERENT = [
    (True, 1),
    (1, 1.0),
    (0.0, -0.0),
    (math.inf, -math.inf),
    (1.0, 1 + 0j),
    (complex(0.0, -0.0), complex(0.0, 0.0)),
    ("a", b"a"),
    (b"a", bytearray(b"a")),
    ("1", 1),
    ("None", None),
    ([1], (1,)),
    ([], ()),
    ([], {}),
    (set(), frozenset()),
    ({1}, [1]),
    ([[1], 2], [[1, 2]]),
    (["ab", "c"], ["a", "bc"]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1: "x"}, {"1": "x"}),
    ({1: "x"}, {True: "x"}),
    ({("a", 1): 0}, {("a", 2): 0}),
    (slice(1, 2), slice(1, 2, 1)),
    (range(3), range(0, 3, 2)),
    (Colour.RED, Colour.GREEN),
    (Colour.RED, Other.RED),
    (Pairs.ONE, Pairs.TWO),
    (Colour.RED, 1),
    (..., None),
    (int, float),
    ("x" * 5000, "x" * 5001),
    ("x" * 5000 + "a", "x" * 5000 + "b"),
    (b"x" * 100, b"x" * 99 + b"y"),
    ({"k" * 300: 1}, {"k" * 299 + "j": 1}),
    (pathlib.PurePosixPath("a"), "a"),
    (pathlib.PurePosixPath("a"), pathlib.PurePosixPath("b")),
    (list[int], list[float]),
    (struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0], math.nan),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda v: repr(v)[:30])
def test_values_that_differ_have_other_digests(one: Any, other: Any) -> None:
    """A difference in type or value is a difference in digest, and shows among the parts."""
    assert describe(one).digest != describe(other).digest
    assert describe(one).parts("x") != describe(other).parts("x")


def _typed(value: Any) -> Any:
    """A value with its types spelled out, so that == means "the same value of the same type"."""
    if isinstance(value, dict):
        return ("dict", [(_typed(k), _typed(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [_typed(v) for v in value])
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, sorted((_typed(v) for v in value), key=repr))
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else repr(value), struct.pack("<d", value))
    return (type(value).__name__, repr(value))


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, math.nan]),
    st.text("ab", max_size=2),
    st.binary(max_size=2),
)
_hashables = st.one_of(_scalars, st.tuples(_scalars, _scalars), st.frozensets(_scalars, max_size=3))
_values = st.recursive(
    st.one_of(_scalars, _hashables),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(_hashables, max_size=3),
        st.dictionaries(_hashables, inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(_values, _values)
def test_digests_are_equal_exactly_when_values_and_types_are(one: Any, other: Any) -> None:
    """Small values, so that equal pairs do come up."""
    same = _typed(one) == _typed(other)
    assert (describe(one).digest == describe(other).digest) is same
    assert (describe(one).parts() == describe(other).parts()) is same


@settings(deadline=None)
@given(_values)
def test_an_equal_copy_has_the_same_description(value: Any) -> None:
    """Rebuilding a value from its parts changes nothing, whatever the sharing inside."""
    import copy

    assert describe(copy.deepcopy(value)) == describe(value)


@settings(deadline=None)
@given(st.permutations([1, "b", (2, 3), None, 2.5]))
def test_the_order_of_a_set_does_not_enter(items: list[Any]) -> None:
    assert describe(set(items)) == describe({1, "b", (2, 3), None, 2.5})


def test_a_list_that_holds_itself_is_described() -> None:
    """A cycle ends, and differs from the same list without it."""
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [1]
    other.append(other)
    assert describe(loop) == describe(other)
    assert describe(loop).digest != describe([1, [1]]).digest


def test_a_path_counts_the_file_that_it_names(tmp_path: pathlib.Path) -> None:
    """The content of a file enters, a str of the same text is only its text, a directory is refused."""
    file = tmp_path / "calibration.bin"
    absent = describe(file).digest
    file.write_bytes(b"one")
    one = describe(file).digest
    text = describe(str(file)).digest
    file.write_bytes(b"two")
    assert len({absent, one, describe(file).digest}) == 3
    assert describe(str(file)).digest == text
    with pytest.raises(Undescribable, match="is a directory"):
        describe(tmp_path)


def test_a_path_is_described_again_in_the_same_way(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    assert describe(tmp_path / "f") == describe(tmp_path / "f")
