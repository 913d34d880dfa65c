"""A description reads as text and compares part by part."""

from dataclasses import dataclass, field, replace
from typing import Any

from etgraph.identity import Change, Description, describe, differences


@dataclass
class Config:
    per_op_mode: bool = False
    sizes: list[int] = field(default_factory=lambda: [1, 2])


def _changes(old: Any, new: Any, name: str = "option") -> list[str]:
    return [str(c) for c in differences(describe(old).parts(name), describe(new).parts(name))]


def test_the_text_reads_like_the_expression_that_makes_the_value() -> None:
    assert describe(True).text == "True"
    assert describe([1, (2,), {"a": None}]).text == "[1, (2,), {'a': None}]"
    assert describe(Config()).text == "Config(per_op_mode=False, sizes=[1, 2])"


def test_the_text_is_bounded_and_the_parts_are_not_cut() -> None:
    """A thousand numbers are one line of text, and a thousand parts."""
    described = describe(list(range(1000)))
    assert len(described.text) <= 160
    assert len(described.parts()) == 1001


def test_a_changed_attribute_is_named_by_its_path() -> None:
    old, new = [Config()], [Config(per_op_mode=True)]
    assert _changes(old, new, "partitioners") == ["partitioners[0].per_op_mode changed from False to True"]


def test_added_and_removed_parts_are_told() -> None:
    assert _changes(Config(), Config(sizes=[1, 2, 3])) == ["option.sizes[2] was added: 3"]
    assert _changes([1, 2], [1]) == ["option[1] was removed; it was 2"]


def test_a_filled_container_is_told_by_its_elements() -> None:
    """Not as another sort of thing."""
    assert _changes(Config(sizes=[]), Config(sizes=[7])) == ["option.sizes[0] was added: 7"]
    assert _changes({1: 2}, {}) == ["option[1] was removed; it was 2"]


def test_a_part_of_another_sort_stands_for_all_below_it() -> None:
    """A list that became an int is one change, not one per element."""
    changes = differences(describe([[1, 2, 3]]).parts("x"), describe([7]).parts("x"))
    assert changes == [Change("x[0]", "list", "7")]


def test_a_new_order_of_a_dict_is_told_as_order() -> None:
    (change,) = _changes({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert change.startswith("option(order) changed from 'a', 'b'")


def test_equal_descriptions_have_no_differences() -> None:
    assert _changes(Config(), replace(Config())) == []


def test_parts_to_a_depth_still_show_every_change() -> None:
    """What lies below the depth stands as one part with a digest."""
    old, new = describe({"a": [[1], [2]]}), describe({"a": [[1], [3]]})
    assert len(old.parts("x", depth=1)) == 2
    (change,) = differences(old.parts("x", depth=1), new.parts("x", depth=1))
    assert change.path == "x['a']"


def test_no_text_runs_into_the_next() -> None:
    """Kind, content and steps are framed: moving a letter across a border is a difference."""
    leaf = Description("kind", "x")
    assert Description("ab", "c").digest != Description("a", "bc").digest
    assert Description("a", "b", (("c", leaf),)).digest != Description("a", "bc", (("", leaf),)).digest
    assert Description("a", "", (("b", leaf),)).digest != Description("a", "b").digest


def test_the_name_of_the_whole_does_not_enter_the_digest() -> None:
    """What an option is called belongs to the key, not to the option."""
    shared = Config()
    assert describe([shared, shared], "a") == describe([shared, shared], "b")
