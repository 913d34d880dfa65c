"""Several recipes as one: lists joined in the stated order, everything else by value, contradictions by name."""

from dataclasses import dataclass, field

import pytest

import etgraph
from etgraph.combine import combine
from etgraph.errors import UsageError
from etgraph.recipes import Deferred, Recipe, Through


@dataclass
class Config:
    """As a mutable config of a library."""

    checks: bool = False
    kept: list = field(default_factory=list)


def recipe(name, **rest):
    return Recipe(name=name, **rest)


def _config():
    return Config()


def _numbers():
    return [3]


def test_lists_are_joined_in_the_stated_order():
    a = recipe("a", stages={"lower": {"partitioners": [1]}})
    b = recipe("b", stages={"lower": {"partitioners": [2]}})
    assert combine([a, b]).stages["lower"]["partitioners"] == [1, 2]
    assert combine([b, a]).stages["lower"]["partitioners"] == [2, 1]
    assert combine([a, b]).name == "a+b"
    assert a.stages["lower"]["partitioners"] == [1]


def test_mappings_from_method_are_joined_method_by_method():
    a = recipe("a", stages={"lower": {"partitioners": {"encode": [1]}}})
    b = recipe("b", stages={"lower": {"partitioners": {"encode": [2], "decode": [3]}}})
    assert combine([a, b]).stages["lower"]["partitioners"] == {"encode": [1, 2], "decode": [3]}


def test_a_list_and_a_mapping_are_refused_naming_both():
    a = recipe("a", stages={"lower": {"partitioners": [1]}})
    b = recipe("b", stages={"lower": {"partitioners": {"encode": [2]}}})
    with pytest.raises(UsageError, match=r"recipe a gives lower.partitioners as a list, and recipe b as a dict"):
        combine([a, b])


def test_configs_are_compared_by_value():
    a = recipe("a", stages={"edge": {"config": Config()}})
    b = recipe("b", stages={"edge": {"config": Deferred(_config)}})
    assert combine([a, b]).stages["edge"]["config"] == Config()


def test_a_contradiction_names_both_owners_and_the_field():
    a = recipe("a", stages={"edge": {"config": Config(checks=True)}})
    b = recipe("b", stages={"edge": {"config": Config(checks=False)}})
    with pytest.raises(
        UsageError, match=r"recipes a and b contradict each other in edge.config: checks is True in a and False in b"
    ):
        combine([a, b])


def test_operators_to_keep_are_compared_as_a_set():
    """In what order they are named says nothing; another one is a contradiction."""
    import torch

    add, mul, sub = torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor, torch.ops.aten.sub.Tensor
    a = recipe("a", stages={"edge": {"config": Config(kept=[add, mul])}})
    assert combine([a, recipe("b", stages={"edge": {"config": Config(kept=[mul, add])}})])
    with pytest.raises(UsageError, match=r"edge.config: kept is \[aten.add.Tensor, aten.mul.Tensor\] in a and .*sub"):
        combine([a, recipe("b", stages={"edge": {"config": Config(kept=[add, sub])}})])


def test_what_cannot_be_described_agrees_with_itself_alone():
    read_once = iter([1])
    a = recipe("a", stages={"edge": {"config": read_once}})
    assert combine([a, recipe("b", stages={"edge": {"config": read_once}})]).stages["edge"]["config"] is read_once
    with pytest.raises(UsageError, match=r"recipes a and b contradict each other in edge\.config"):
        combine([a, recipe("b", stages={"edge": {"config": (one for one in [1])}})])


def test_a_flag_is_not_the_number_that_equals_it():
    a = recipe("a", stages={"quantize": {"group_size": 1}})
    with pytest.raises(UsageError, match=r"quantize.group_size: the value is 1 in a and True in b"):
        combine([a, recipe("b", stages={"quantize": {"group_size": True}})])


def test_recipes_of_one_name_are_told_apart():
    a = recipe("a", stages={"export": {"strict": True}})
    b = recipe("a", stages={"export": {"strict": False}})
    with pytest.raises(UsageError, match=r"a \(number 1\) and a \(number 2\)"):
        combine([a, b])


def test_what_one_leaves_open_is_the_others():
    a = recipe("a", stages={"export": {"strict": None}, "lower": {"partitioners": Deferred(_numbers)}})
    b = recipe("b", stages={"export": {"strict": True}})
    combined = combine([a, b])
    assert combined.stages["export"]["strict"] is True
    assert combined.stages["lower"]["partitioners"] == Deferred(_numbers)


def test_a_deferred_list_is_joined_even_with_itself():
    a = recipe("a", stages={"lower": {"partitioners": Deferred(_numbers)}})
    assert combine([a, a]).stages["lower"]["partitioners"] == [3, 3]


def test_passes_run_in_the_order_of_first_mention():
    a = recipe("a", stages={"first": {}, "second": {}})
    b = recipe("b", stages={"second": {}, "third": {}})
    assert list(combine([a, b]).stages) == ["first", "second", "third"]
    assert list(combine([b, a]).stages) == ["second", "third", "first"]


def test_insisted_kinds_are_joined():
    a = recipe("a", through=(Through("lowered", "delegates to A", instead="portable"),))
    b = recipe("b", through=(Through("quantized", "quantizes"), Through("lowered", "delegates to B")))
    merged = {through.kind: through for through in combine([a, b]).through}
    assert merged["lowered"].does == "delegates to A, then delegates to B"
    assert merged["lowered"].instead == ""
    assert merged["quantized"].does == "quantizes"


@pytest.mark.parametrize("order", [1, -1])
def test_where_one_must_begin_binds_the_whole(order):
    """Weights of a module can be quantized in a module alone, whatever another recipe does on top."""
    a = recipe("a", through=(Through("quantized", "quantizes weights", at="module"),))
    b = recipe("b", through=(Through("quantized", "quantizes activations"),))
    (merged,) = combine([a, b][::order]).through
    assert merged.at == "module"


def test_two_ways_are_refused():
    with pytest.raises(UsageError, match=r"only go the split way .* only the combined way"):
        combine([recipe("a", way="split", way_reason="x"), recipe("b", way="combined", way_reason="y")])
    assert combine([recipe("a", way="split", way_reason="x"), recipe("b")]).way == "split"


def test_get_recipe_takes_a_list():
    with pytest.raises(UsageError, match="an empty list"):
        etgraph.get_recipe([])
    with pytest.raises(UsageError, match="Give them to the recipe that has them"):
        etgraph.get_recipe(["portable"], group_size=3)
    assert etgraph.get_recipe(["portable"]).name == "portable"
