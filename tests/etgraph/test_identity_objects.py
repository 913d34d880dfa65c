"""Instances are described by class and state, by a declaration, or refused with the way to declare them."""

import collections
import dataclasses
import datetime
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from etgraph.identity import Undescribable, describe, materialise, register_describer


class Pass:
    def __init__(self, rate: float = 0.5, inner: Any = None) -> None:
        self.rate = rate
        self.inner = inner


class Slotted:
    __slots__ = ("__hidden", "a")

    def __init__(self, a: int, hidden: int = 0) -> None:
        self.a = a
        self.__hidden = hidden


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int


class Pair(NamedTuple):
    a: int
    b: int


class MyList(list[Any]):
    pass


class MyDict(dict[Any, Any]):
    pass


DIFFERENT = [
    (Pass(0.5), Pass(0.6)),
    (Pass(0.5), Slotted(1)),
    (Pass(inner=Pass(1.0)), Pass(inner=Pass(2.0))),
    (Slotted(1), Slotted(2)),
    (Slotted(1, 1), Slotted(1, 2)),
    (Frozen(1), Frozen(2)),
    (Pair(1, 2), Pair(2, 1)),
    (Pair(1, 2), (1, 2)),
    (MyList([1]), MyList([2])),
    (MyList([1]), [1]),
    (MyDict(a=1), MyDict(a=2)),
    (MyDict(a=1, b=2), MyDict(b=2, a=1)),
    (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)),
    (collections.defaultdict(int, a=1), collections.defaultdict(float, a=1)),
    (collections.deque([1]), collections.deque([2])),
    (collections.deque([1], 3), collections.deque([1], 4)),
    (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    (ValueError("a"), ValueError("b")),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda v: repr(v)[:20].partition(" at ")[0])
def test_objects_with_another_class_or_state_differ(one: Any, other: Any) -> None:
    import copy

    assert describe(one).digest != describe(other).digest
    assert describe(copy.deepcopy(one)) == describe(one)


def test_the_order_in_which_attributes_were_set_does_not_enter() -> None:
    one, other = Pass(), Pass()
    one.x, one.y = 1, 2  # type: ignore[attr-defined]
    other.y, other.x = 2, 1  # type: ignore[attr-defined]
    assert describe(one) == describe(other)


def test_one_object_twice_is_not_two_equal_objects() -> None:
    """Passes that share state act on one another, so sharing is part of what a list of them is."""
    shared = Pass()
    assert describe([shared, shared]).digest != describe([Pass(), Pass()]).digest
    assert describe([Frozen(1), Frozen(1)]) == describe([Frozen(1)] * 2)


def test_objects_that_hold_each_other_are_described() -> None:
    one, other = Pass(), Pass()
    one.inner, other.inner = other, one
    assert describe(one).parts("p")["p.inner.inner"] == "same as the whole"


def test_a_class_says_what_it_is_by_itself() -> None:
    """The declaration replaces attributes and code: what cannot be described does not stop it."""

    class Declared:
        def __init__(self, version: int) -> None:
            self.version = version
            self.thread = threading.Thread()

        def __etgraph_fingerprint__(self) -> Any:
            return {"version": self.version}

    assert describe(Declared(1)) == describe(Declared(1))
    assert describe(Declared(1)).digest != describe(Declared(2)).digest
    assert describe([Declared(1)]).parts("x")["x[0].declared['version']"] == "1"


def test_a_describer_speaks_for_a_class_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """By class or by name, for subclasses too."""
    import sys

    from etgraph.identity import describe as _  # noqa: F401

    monkeypatch.setattr(sys.modules["etgraph.identity.describe"], "_REGISTERED", {})

    class Foreign:
        def __init__(self) -> None:
            self.thread = threading.Thread()
            self.said = 1

    class Sub(Foreign):
        pass

    with pytest.raises(Undescribable):
        describe(Sub())
    register_describer(f"{Foreign.__module__}.{Foreign.__qualname__}", lambda f: ["foreign", f.said])
    one, other = Sub(), Sub()
    assert describe(one) == describe(other)
    other.said = 2
    assert describe(one).digest != describe(other).digest


def test_a_declaration_that_fails_is_told_and_not_guessed() -> None:
    class Broken:
        def __etgraph_fingerprint__(self) -> Any:
            raise RuntimeError("boom")

    class Self:
        def __etgraph_fingerprint__(self) -> Any:
            return self

    for bad, message in ((Broken(), "RuntimeError: boom"), (Self(), "the object itself")):
        with pytest.raises(Undescribable, match=message):
            describe(bad)


def _generator() -> Iterator[int]:
    yield 1


class Odd:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise KeyError("no")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (_generator(), "only once"),
        (iter([1]), "only once"),
        (map(str, [1]), "only once"),
        (zip([1], [2], strict=True), "only once"),
        (threading.Thread(), "a running thread"),
        (threading.Event().__class__, ""),
        (memoryview(b"x"), "hidden in C"),
        (Odd(), "KeyError"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_cannot_be_described_is_refused_with_its_path(bad: Any, why: str) -> None:
    """The error names the path, the type, the reason, and what to do."""
    if not why:
        assert describe(bad) == describe(bad)
        return
    with pytest.raises(Undescribable, match=why) as caught:
        describe({"a": [Pass(inner=bad)]}, "option")
    assert caught.value.path == "option['a'][0].inner"
    assert type(bad).__qualname__ in caught.value.type_name
    assert caught.value.hint


def test_an_open_file_is_refused(tmp_path: Any) -> None:
    with (tmp_path / "f").open("wb") as file, pytest.raises(Undescribable, match="open file"):
        describe(file)


def test_a_one_shot_iterator_is_described_once_it_is_kept() -> None:
    """Refusing an iterator leaves it unread; materialise keeps what it gives."""
    iterator = iter([1, 2])
    with pytest.raises(Undescribable):
        describe(iterator)
    assert materialise(iterator) == (1, 2)


def test_a_method_that_nobody_can_reach_need_not_be_followed() -> None:
    """`__init__` has run: importing or reading files in it does not matter for what the object is now."""

    class Loads:
        def __init__(self) -> None:
            self.text = eval("1")

    class Again(Loads):
        def again(self) -> Any:
            return type(self)

    assert describe(Loads()) == describe(Loads())
    with pytest.raises(Undescribable, match="made at run time"):
        describe(Loads)

    class Calls:
        def make(self) -> Any:
            return Loads()

    with pytest.raises(Undescribable, match="made at run time"):
        describe(Calls())


def test_a_subclass_of_a_library_class_counts_its_own_code() -> None:
    class One(collections.UserDict[str, int]):
        def f(self) -> int:
            return 1

    class Two(collections.UserDict[str, int]):
        def f(self) -> int:
            return 2

    Two.__name__, Two.__qualname__ = One.__name__, One.__qualname__
    Two.f.__qualname__ = One.f.__qualname__
    assert describe(One()).digest != describe(Two()).digest


def test_structure_too_deep_for_python_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Undescribable, match="nested deeper"):
        describe(deep)
