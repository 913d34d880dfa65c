"""Example inputs and dynamic shapes in every form, per method, nothing guessed."""

import pytest

from etgraph.artifact import Inputs
from etgraph.errors import UsageError
from etgraph.inputs import dynamic_shapes_by_method, samples_by_method


def flat(samples):
    return {m: [(s.args, dict(s.kwargs)) for s in of_method] for m, of_method in samples.items()}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, {}),
        ((1, 2), {"forward": [((1, 2), {})]}),
        ((), {"forward": [((), {})]}),
        ([(1,), (2,)], {"forward": [((1,), {}), ((2,), {})]}),
        (Inputs(1, mask=2), {"forward": [((1,), {"mask": 2})]}),
        ([Inputs(1), (2,)], {"forward": [((1,), {}), ((2,), {})]}),
        ({"forward": (1,)}, {"forward": [((1,), {})]}),
        ({"forward": [(1,), Inputs(x=2)]}, {"forward": [((1,), {}), ((), {"x": 2})]}),
    ],
)
def test_every_form_for_one_method(given, wanted):
    assert flat(samples_by_method(given, ["forward"])) == wanted


def test_several_methods_need_a_mapping():
    assert flat(samples_by_method({"encode": (1,), "decode": [(2,)]}, ["encode", "decode"])) == {
        "encode": [((1,), {})],
        "decode": [((2,), {})],
    }
    with pytest.raises(UsageError, match="methods encode, decode"):
        samples_by_method((1,), ["encode", "decode"])


class FakeTensor:
    dtype = "float32"
    shape = (1, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (FakeTensor(), r"a lone tensor of shape \[1, 3\]"),
        ([FakeTensor()], r"sample 0 .* a lone tensor"),
        ([], "an empty list"),
        ("abc", "are a str"),
        ({"forwrad": (1,)}, "did you mean 'forward'"),
        ({"x": (1,)}, r"etgraph.Inputs\(\*\*inputs\)"),
    ],
)
def test_a_wrong_form_is_told_with_the_right_ones(given, words):
    with pytest.raises(UsageError, match=words):
        samples_by_method(given, ["forward"])


def test_inputs_are_a_value():
    inputs = Inputs(1, x=2)
    with pytest.raises(AttributeError):
        inputs.args = ()
    with pytest.raises(TypeError):
        inputs.kwargs["y"] = 3
    assert repr(Inputs(FakeTensor(), n=1)) == "Inputs(float32[1, 3], n=1)"


PARAMETERS = {"forward": ["x", "y"]}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, {}),
        ({"x": {0: "batch"}}, {"forward": {"x": {0: "batch"}}}),
        ({"forward": {"x": {0: "batch"}}}, {"forward": {"x": {0: "batch"}}}),
        (({0: "batch"}, None), {"forward": ({0: "batch"}, None)}),
        ([{0: "batch"}], {"forward": [{0: "batch"}]}),
        ({}, {"forward": {}}),
    ],
)
def test_dynamic_shapes_of_one_method_are_never_dropped(given, wanted):
    """The predecessor reads {"x": {0: Dim}} as per-method shapes, and exports a static program."""
    assert dynamic_shapes_by_method(given, ["forward"], PARAMETERS) == wanted


def test_dynamic_shapes_of_several_methods_are_a_mapping_of_methods():
    methods = ["encode", "decode"]
    parameters = {"encode": ["x"], "decode": ["z"]}
    assert dynamic_shapes_by_method({"encode": {"x": {0: 1}}}, methods, parameters) == {"encode": {"x": {0: 1}}}
    with pytest.raises(UsageError, match="names x"):
        dynamic_shapes_by_method({"x": {0: 1}}, methods, parameters)
    with pytest.raises(UsageError, match="given as a tuple"):
        dynamic_shapes_by_method(({0: 1},), methods, parameters)


def test_a_name_that_is_both_method_and_argument_is_not_guessed():
    with pytest.raises(UsageError, match="both methods and arguments"):
        dynamic_shapes_by_method({"forward": {0: 1}}, ["forward"], {"forward": ["forward"]})
