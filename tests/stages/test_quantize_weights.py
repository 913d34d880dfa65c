"""Weights quantized in the eager module: 8da4w, 8 bits, in groups, in place, by filter."""

import pytest
import torch
from quantizable import Coder, Small, operators, seeded, small_inputs

import etgraph
from etgraph.errors import EtgraphWarning, PlanError, StageError, UsageError


@pytest.mark.parametrize(
    ("recipe", "options", "least"),
    [
        ("xnnpack_8da4w", {}, 15),
        ("xnnpack_8da4w", {"group_size": None}, 15),
        ("xnnpack_8da8w", {}, 35),
        ("xnnpack_int8_weight_only", {}, 35),
        ("xnnpack_int4_weight_only", {"group_size": 16}, 15),
    ],
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

    assert scales(32) != scales(None)


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


def test_layers_that_groups_do_not_fit_are_left_in_float_by_name():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 20), torch.nn.ReLU(), torch.nn.Linear(20, 8)).eval()
    with pytest.warns(EtgraphWarning, match=r"group_size 32 does not divide the input features of 2 \(20\): left in"):
        result = etgraph.run(model, (torch.randn(4, 64),), "xnnpack_int4_weight_only", "quantized", cache=False)
    assert [op for op in operators(result.artifact["forward"]) if "dequantize" in op] == [
        "torchao.dequantize_affine.default"
    ]


@pytest.mark.parametrize("group_size", [32, None])
def test_layers_that_xnnpack_cannot_take_in_4_bits_are_left_in_float_by_name(group_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 20), torch.nn.ReLU(), torch.nn.Linear(20, 8)).eval()
    recipe = etgraph.get_recipe("xnnpack_8da4w", group_size=group_size)
    with pytest.warns(EtgraphWarning, match=r"a multiple of 32, which those of 2 \(20\) are not: left in float"):
        result = etgraph.run(model, (torch.randn(4, 64),), recipe, cache=False)
    assert result.verify().max_error < 0.2


def test_what_cannot_be_done_is_refused():
    with pytest.raises(StageError, match="quantized nothing in forward"):
        etgraph.run(torch.nn.ReLU(), (torch.ones(2),), "xnnpack_8da4w", cache=False)
    recipe = etgraph.get_recipe("xnnpack_int8_weight_only", group_size=24)
    with (
        pytest.warns(EtgraphWarning, match="group_size 24 does not divide"),
        pytest.raises(StageError, match="quantized nothing in forward"),
    ):
        etgraph.run(seeded(Small), small_inputs(1), recipe, cache=False)
    with pytest.raises(UsageError, match="group_size=24, and XNNPACK takes multiples of 32"):
        etgraph.get_recipe("xnnpack_8da4w", group_size=24)
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


def configurations():
    """torchao configurations, by what is asked of ExecuTorch's kernels: several scales, zero points, activations."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_primitives import MappingType

    asymmetric = MappingType.ASYMMETRIC
    return {
        "channels": IntxWeightOnlyConfig(torch.int8, PerAxis(0)),
        "groups with zero points": IntxWeightOnlyConfig(torch.int4, PerGroup(16), mapping_type=asymmetric),
        "activations": Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(16)),
    }


@pytest.mark.parametrize("name", ["channels", "groups with zero points", "activations"])
@pytest.mark.parametrize("skip_dim_order", [False, True])
def test_what_no_backend_took_runs_on_portable_kernels_as_in_eager(name, skip_dim_order):
    """At several batch sizes; weights stay quantized in the file."""
    from executorch.exir import EdgeCompileConfig
    from executorch.runtime import Runtime
    from torchao.quantization import quantize_

    recipe = etgraph.Recipe(
        "weights",
        stages={
            "quantize_weights": {"config": configurations()[name]},
            "to_edge": {"compile_config": EdgeCompileConfig(_skip_dim_order=skip_dim_order)},
        },
        through=(etgraph.Through("quantized", "quantizes weights"),),
    )
    shapes = {"x": {0: torch.export.Dim("batch", min=1, max=8)}}
    result = etgraph.run(seeded(Small), small_inputs(1), recipe, cache=False, dynamic_shapes=shapes)
    assert result.artifact.nbytes < 16_000
    eager = seeded(Small)
    quantize_(eager, configurations()[name])
    buffer = result.artifact.buffer
    program = Runtime.get().load_program(buffer)
    method = program.load_method("forward")
    for batch in (1, 4, 8):
        x = torch.randn(batch, 32, generator=torch.Generator().manual_seed(batch))
        assert torch.allclose(method.execute([x])[0], eager(x), atol=1e-5)


def test_weights_of_a_kind_that_is_exported_as_plain_arithmetic_are_refused_by_name():
    from torchao.quantization import Int8WeightOnlyConfig

    recipe = etgraph.get_recipe("xnnpack_8da8w").with_options("quantize_weights", config=Int8WeightOnlyConfig())
    with pytest.raises(StageError, match=r"(?s)made weights of type Int8Tensor.*IntxWeightOnlyConfig"):
        etgraph.run(seeded(Small), small_inputs(1), recipe, cache=False)


def quantized_by_hand(config=None):
    """A module that its owner took through `quantize_`."""
    from torchao.quantization import quantize_

    model = seeded(Small)
    quantize_(model, config or configurations()["channels"])
    return model


@pytest.mark.parametrize("recipe", ["xnnpack_fp32", "portable"])
def test_a_module_that_went_through_quantize_is_lowered_as_it_is(recipe):
    result = etgraph.run(quantized_by_hand(), small_inputs(1), recipe, cache=False)
    assert result.verify().max_error < 1e-5
    assert result.artifact.nbytes < 16_000


def test_arithmetic_on_stored_integers_is_right_on_xnnpack():
    """`Int8WeightOnlyConfig` leaves a conversion and a multiplication, which XNNPACK gets wrong when left alone."""
    from torchao.quantization import Int8WeightOnlyConfig

    result = etgraph.run(quantized_by_hand(Int8WeightOnlyConfig()), small_inputs(1), "xnnpack_fp32", cache=False)
    assert result.verify().max_error < 1e-5


@pytest.mark.parametrize("recipe", ["xnnpack_8da4w", "xnnpack_int8_dynamic"])
@pytest.mark.parametrize("name", ["channels", "activations"])
def test_a_module_that_went_through_quantize_is_not_quantized_twice(recipe, name):
    with pytest.raises(
        UsageError, match=r"(?s)quantize_.*Give (it|the module) as it was before quantize_.*xnnpack_fp32"
    ):
        etgraph.run(quantized_by_hand(configurations()[name]), small_inputs(1), recipe, cache=False)
