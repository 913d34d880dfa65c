"""Where bytes are: the parts of a program add up, and belong to the methods that have them."""

import pytest
import torch
from models import made
from torch import nn

import etgraph
from etgraph.registry import registry


def sizes(artifact):
    return registry.service("sizes")(artifact)


def total(parts, **wanted):
    return sum(part["bytes"] for part in parts if all(part[key] == value for key, value in wanted.items()))


@pytest.mark.parametrize("recipe", ["portable", "xnnpack_fp32"])
@pytest.mark.parametrize("name", ["conv", "methods", "cache"])
def test_the_parts_of_a_pte_add_up_to_its_size(name, recipe):
    model, inputs, rest = made(name)
    program = etgraph.run(model, inputs, recipe, **rest).artifact
    parts = sizes(program)
    assert total(parts) == len(program.buffer)
    assert all(part["bytes"] > 0 and set(part) == {"method", "section", "name", "bytes"} for part in parts)
    assert parts == sorted(parts, key=lambda part: -part["bytes"])


def test_constants_of_each_method_are_its_own():
    """Two linear layers of 6x3, one for each method, on portable kernels."""
    model, inputs, rest = made("methods")
    parts = sizes(etgraph.run(model, inputs, "portable", **rest).artifact)
    weight, bias = 6 * 3 * 4, {"encode": 3 * 4, "decode": 6 * 4}
    for method in ("encode", "decode"):
        held = total(parts, method=method, section="constants")
        assert weight + bias[method] <= held <= weight + bias[method] + 2 * 16  # with padding
    assert total(parts, section="delegates") == 0


def test_delegates_and_their_weights_belong_to_their_method():
    model, inputs, rest = made("methods")
    result = etgraph.run(model, inputs, "xnnpack_fp32", **rest)
    for parts in (sizes(result.artifact), sizes(result["lowered"])):
        for method in ("encode", "decode"):
            assert total(parts, method=method, section="delegates") > 100
            assert total(parts, method=method, section="delegate weights") >= 6 * 3 * 4


def test_a_start_value_has_its_place():
    model, inputs, rest = made("cache")
    parts = sizes(etgraph.run(model, inputs, "portable", **rest).artifact)
    assert total(parts, section="start values", method="forward") >= 4


def test_a_data_file_is_counted():
    from executorch.exir import ExecutorchBackendConfig

    model, inputs, _ = made("conv")
    config = ExecutorchBackendConfig(external_constants=True)
    recipe = etgraph.get_recipe("portable").with_options("to_executorch", backend_config=config)
    program = etgraph.run(model, inputs, recipe).artifact
    (name, data), *_ = program.data_files.items()
    assert total(sizes(program), section="data file", name=name) == len(data)


@pytest.mark.parametrize("kind", ["module", "exported", "edge"])
def test_a_shared_weight_is_counted_once_at_every_kind(kind):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.there = nn.Linear(8, 8, bias=False)
            self.back = nn.Linear(8, 8, bias=False)
            self.back.weight = self.there.weight

        def forward(self, x):
            return self.back(self.there(x))

    result = etgraph.run(Tied().eval(), (torch.randn(1, 8),), "portable")
    assert total(sizes(result[kind]), section="weights") == 8 * 8 * 4


def test_what_two_methods_share_is_nobodys_alone():
    shared = nn.Linear(4, 4, bias=False)
    methods = {"one": nn.Sequential(shared, nn.ReLU()), "two": nn.Sequential(shared, nn.Tanh())}
    inputs = {name: (torch.randn(1, 4),) for name in methods}
    (part,) = sizes(etgraph.run(methods, inputs, "portable", to="exported").artifact)
    assert (part["method"], part["section"], part["bytes"]) == ("", "weights", 64)


def test_a_constant_of_a_pte_that_two_methods_share_is_nobodys_alone():
    shared = nn.Linear(4, 4, bias=False)
    methods = {"one": nn.Sequential(shared, nn.ReLU()), "two": nn.Sequential(shared, nn.Tanh())}
    inputs = {name: (torch.randn(1, 4),) for name in methods}
    parts = sizes(etgraph.run(methods, inputs, "portable").artifact)
    constants = [part for part in parts if part["section"] == "constants"]
    assert [(part["method"], part["bytes"]) for part in constants if part["bytes"] >= 64] == [("", 64)]
