"""Weights quantized in the eager module: 8da4w, 8 bits, in groups, in place, by filter."""

import pytest
import torch
from quantizable import Coder, Small, operators, seeded, small_inputs

import etgraph
from etgraph.errors import PlanError, StageError, UsageError


@pytest.mark.parametrize(
    ("recipe", "options", "least"),
    [("xnnpack_8da4w", {}, 15), ("xnnpack_8da4w", {"group_size": None}, 15), ("xnnpack_8da8w", {}, 35)],
)
def test_it_runs_on_xnnpack_and_is_smaller(recipe, options, least):
    model = seeded(Small)
    before = [parameter.clone() for parameter in model.parameters()]
    result = etgraph.run(model, small_inputs(1), etgraph.get_recipe(recipe, **options), cache=False)
    assert result.steps[0].stage == "quantize_weights"
    assert result.verify(small_inputs(3)).min_snr > least
    assert result.artifact.nbytes < 16_000 < etgraph.run(model, small_inputs(1), cache=False).artifact.nbytes
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("config", [{"weight_bits": 8}, {"weight_bits": 4, "group_size": 16}])
def test_weight_only_leaves_activations_alone(config):
    recipe = etgraph.Recipe("weights", stages={"quantize_weights": {"config": config}},
                            through=(etgraph.Through("quantized", "quantizes weights"),))  # fmt: skip
    program = etgraph.run(seeded(Small), small_inputs(1), recipe, "quantized", cache=False).artifact["forward"]
    assert {op for op in operators(program) if "torchao" in op} == {"torchao.dequantize_affine.default"}
    (x,) = small_inputs(1)[0]
    error = (program.module()(x) - seeded(Small)(x)).abs().max()
    assert 0 < error < 0.2


def test_the_group_size_is_honoured():
    def scales(group_size):
        recipe = etgraph.get_recipe("xnnpack_8da4w", group_size=group_size)
        program = etgraph.run(seeded(Small), small_inputs(1), recipe, "quantized", cache=False).artifact["forward"]
        return sorted(value.numel() for value in program.state_dict.values() if value.is_floating_point())

    assert scales(32) != scales(16)


def test_an_exported_program_is_refused_before_work_with_the_reason():
    exported = torch.export.export(seeded(Small), small_inputs(1)[0])
    with pytest.raises(PlanError, match=r"(?s)quantizes the weights of the eager module, which happens at module.*"
                                        "use xnnpack_int8_dynamic"):  # fmt: skip
        etgraph.plan(exported, recipe="xnnpack_8da4w", cache=False)


def test_a_program_that_was_quantized_so_goes_on_from_a_file(tmp_path):
    result = etgraph.run(seeded(Small), small_inputs(1), "xnnpack_8da8w", cache=False, keep=["quantized"])
    path = result["quantized"].save(tmp_path / "q.pt2")
    resumed = etgraph.run(path, recipe="xnnpack_8da8w", cache=False)
    assert "which is not done twice" in resumed.plan.notes[0]
    assert resumed.artifact.buffer == result.artifact.buffer


def test_in_place_and_by_filter():
    model = seeded(Small)
    recipe = etgraph.get_recipe("xnnpack_8da4w").with_options(
        "quantize_weights", in_place=True, filter_fn=lambda module, name: name == "two"
    )
    program = etgraph.run(model, small_inputs(1), recipe, "quantized", cache=False).artifact["forward"]
    assert operators(program).count("torchao.choose_qparams_affine.default") == 1
    assert type(model.one) is torch.nn.Linear
    assert type(model.two) is not torch.nn.Linear or not isinstance(model.two.weight, torch.nn.Parameter)


def test_a_module_of_several_methods_is_quantized_once():
    inputs = {"encode": (torch.ones(2, 16),), "decode": etgraph.Inputs(torch.ones(2, 8), scale=torch.ones(1))}
    result = etgraph.run(seeded(Coder), inputs, "xnnpack_8da8w", "quantized", cache=False).artifact
    for method in ("encode", "decode"):
        assert operators(result[method]).count("torchao.choose_qparams_affine.default") == 1


def test_what_cannot_be_done_is_refused():
    with pytest.raises(StageError, match="quantized nothing in forward"):
        etgraph.run(torch.nn.ReLU(), (torch.ones(2),), "xnnpack_8da4w", cache=False)
    with pytest.raises(StageError, match="divisible"):
        etgraph.run(seeded(Small), small_inputs(1), etgraph.get_recipe("xnnpack_8da4w", group_size=24), cache=False)
    with pytest.raises(UsageError, match="no option 'group_sise'; did you mean 'group_size'"):
        etgraph.get_recipe("xnnpack_8da4w", group_sise=3)
    for config, message in (
        ({"weight_bit": 4}, "did you mean 'weight_bits'"),
        ({"weight_bits": 9}, "weight_bits is 9"),
        ({"weight_bits": 4, "group_size": 0}, "group_size is 0"),
        ({"weight_bits": 4, "activations": "int4"}, "activations is 'int4'"),
    ):
        recipe = etgraph.get_recipe("xnnpack_8da4w").with_options("quantize_weights", config=config)
        with pytest.raises(UsageError, match=message):
            etgraph.run(seeded(Small), small_inputs(1), recipe, cache=False)
