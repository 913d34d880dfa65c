"""Recipes made by upstream's own code, handed in unchanged: every type by name, and each field honoured or refused."""

import logging

import pytest
import torch
from quantizable import Coder, Small, operators, seeded, small_inputs, xnnpack_quantizer

import etgraph
from etgraph.errors import PlanError, StageError, UsageError
from etgraph.registry import registry


def upstream(quantization=None, lowering=None, **fields):
    from executorch.export import ExportRecipe, LoweringRecipe, QuantizationRecipe

    fields.setdefault("strict", False)  # tracing with TorchDynamo takes longer, and is not what is tested here
    return ExportRecipe(
        name="theirs",
        quantization_recipe=QuantizationRecipe(**quantization) if quantization else None,
        lowering_recipe=LoweringRecipe(**lowering) if lowering else None,
        **fields,
    )


def static():
    return {"quantizers": [xnnpack_quantizer(is_per_channel=True)]}


def dynamic():
    return {"quantizers": [xnnpack_quantizer(is_per_channel=True, is_dynamic=True)]}


def quantized(recipe, model=None, inputs=None, **rest):
    return etgraph.run(model or seeded(Small), inputs or small_inputs(1), recipe, "quantized", cache=False, **rest)


def names():
    registry.load_plugins()
    return [found["name"] for found in registry.service("foreign_recipes")()]


# -- every type by its name -----------------------------------------------------------------------------------------

#: Arguments that upstream insists on.
NEEDED = {"coreml_codebook_weight_only": {"bits": 4, "block_size": [-1, 16]}}


def test_all_recipe_types_of_the_five_backends_are_found():
    assert {name.partition("_")[0] for name in names()} == {"xnnpack", "coreml", "arm", "qnn", "coreai"}


@pytest.mark.parametrize("name", names())
def test_a_recipe_type_is_made_by_name_or_says_in_a_line_what_is_missing(name, monkeypatch):
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    try:
        recipe = etgraph.get_recipe(name, **NEEDED.get(name, {}))
    except UsageError as refusal:
        error = refusal
    else:
        error = None
    if error is not None:
        assert "\n" not in error.problem
        assert any(word in str(error) for word in ("pip install", "not installed", "Install the SDK")), str(error)
        pytest.skip(error.problem)
    assert recipe.name.partition("(")[0] == name
    assert {through.kind for through in recipe.through} >= {"lowered"}
    quantizes = "int" in name or "codebook" in name
    assert quantizes == any(through.kind == "quantized" for through in recipe.through)


def test_a_recipe_type_as_an_object_is_as_by_name():
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    kind = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR
    by_object = etgraph.get_recipe(kind, group_size=16)
    by_name = etgraph.get_recipe(kind.value, group_size=16)
    for recipe in (by_object, by_name):
        assert recipe.stages["quantize_weights"]["config"].weight_granularity.group_size == 16


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "xnnpack_torchao_int8da_int4w_per_tensor",
            {"group_sze": 1},
            "no option 'group_sze'; did you mean 'group_size'",
        ),
        ("xnnpack_torchao_int8da_int4w_per_tensor", {"group_size": "x"}, "must be an integer"),
        ("xnnpack_pt2e_int8_static_per_channel", {"group_size": 1}, "no option 'group_size'"),
        ("coreml_fp16", {"compute_unitt": 1}, "did you mean 'compute_unit'"),
        ("coreml_codebook_weight_only", {}, "'bits' and 'block_size' must be present"),
        ("xnnpack_pt2e_int8_static_per_chanel", {}, "did you mean 'xnnpack_pt2e_int8_static_per_channel'"),
    ],
)
def test_arguments_are_checked_by_name(name, options, message):
    with pytest.raises(UsageError, match=message):
        etgraph.get_recipe(name, **options)


def test_what_a_provider_of_others_only_logs_as_ignored_is_an_error():
    from executorch.export import BackendRecipeProvider, ExportRecipe, RecipeType, recipe_registry

    class Theirs(RecipeType):
        ONE = "theirs_one"

        @classmethod
        def get_backend_name(cls):
            return "theirs"

    class Provider(BackendRecipeProvider):
        backend_name = "theirs"

        def get_supported_recipes(self):
            return list(Theirs)

        def create_recipe(self, recipe_type, **kwargs):
            if kwargs:
                logging.getLogger("theirs").warning("ignoring unexpected parameters: %s", list(kwargs))
            return ExportRecipe(name="theirs")

    recipe_registry.register_backend_recipe_provider(Provider())
    try:
        assert etgraph.get_recipe(Theirs.ONE).name == "theirs"
        with pytest.raises(UsageError, match=r"would ignore what it was given.*speed"):
            etgraph.get_recipe(Theirs.ONE, speed=1)
    finally:
        del recipe_registry._providers["theirs"]


@pytest.mark.parametrize("root", [None, "", "/nowhere/at/all"])
def test_qnn_without_its_sdk_is_one_line_and_no_download(root, monkeypatch):
    from executorch.backends.qualcomm.utils import qnn_sdk_setup

    def download(*_):
        raise AssertionError("a download was begun")

    monkeypatch.setattr(qnn_sdk_setup, "_install_qnn_sdk", download)
    monkeypatch.setenv("QNN_SDK_ROOT", root) if root is not None else monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    from executorch.backends.qualcomm.recipes import QNNRecipeType

    for given in ("qnn_fp16", QNNRecipeType.FP16):
        with pytest.raises(UsageError, match="needs Qualcomm's AI Engine Direct SDK"):
            etgraph.get_recipe(given, soc_model="SM8650")


def test_a_deployment_target_that_upstream_would_replace_is_refused():
    import coremltools

    with pytest.raises(UsageError, match="upstream sets its own minimum"):
        etgraph.get_recipe("coreml_pt2e_int8_static", minimum_deployment_target=coremltools.target.iOS18)
    etgraph.get_recipe("coreml_pt2e_int8_static", minimum_deployment_target=coremltools.target.iOS17)


# -- fields of QuantizationRecipe ------------------------------------------------------------------------------------


def test_static_and_dynamic_quantizers_are_told_apart():
    assert etgraph.get_recipe(upstream(static())).stages["calibrate"]["static"] == ("XNNPACKQuantizer",)
    assert etgraph.get_recipe(upstream(dynamic())).stages["calibrate"]["static"] == ()
    weights = etgraph.get_recipe("coreml_pt2e_int8_weight_only").stages["calibrate"]
    both = etgraph.get_recipe("coreml_pt2e_int8_static").stages["calibrate"]
    assert (weights["static"], both["static"]) == ((), ("CoreMLQuantizer",))


def test_a_quantizer_of_unknown_settings_or_static_in_one_place_must_see_real_values():
    """Calibrating too much costs time, and with too little gives wrong numbers."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantizer import Quantizer

    class Unknown(Quantizer):
        def annotate(self, model):
            return model

        def validate(self, model):
            pass

    mixed = xnnpack_quantizer(is_dynamic=True).set_module_name("one", get_symmetric_quantization_config())
    for one, name in ((Unknown(), "Unknown"), (mixed, "XNNPACKQuantizer")):
        assert etgraph.get_recipe(upstream({"quantizers": [one]})).stages["calibrate"]["static"] == (name,)


def test_each_of_the_four_pass_hooks_runs_in_its_place():
    seen = []

    def hook(name):
        def record(module):
            kinds = {str(node.target).partition(".")[0] for node in module.graph.nodes if node.op == "call_function"}
            observed = any("activation_post_process" in str(node.target) for node in module.graph.nodes)
            blind = any(getattr(child, "min_val", torch.zeros(1)).numel() == 0 for child in module.modules())
            seen.append((name, observed, blind, "quantized_decomposed" in kinds))
            return module

        return [record]

    fields = ("pre_prepare_passes", "post_prepare_passes", "pre_convert_passes", "post_convert_passes")
    quantized(upstream(dynamic() | {field: hook(field) for field in fields}))
    assert seen == [
        ("pre_prepare_passes", False, False, False),
        ("post_prepare_passes", True, True, False),
        ("pre_convert_passes", True, False, False),
        ("post_convert_passes", False, False, True),
    ]


@pytest.mark.parametrize(
    "field", ["pre_prepare_passes", "post_prepare_passes", "pre_convert_passes", "post_convert_passes"]
)
def test_a_hook_that_returns_nothing_is_named(field):
    with pytest.raises(UsageError, match=rf"{field}\[0\].*returned NoneType"):
        quantized(upstream(dynamic() | {field: [lambda module: None]}))


def test_calibration_inputs_fn_is_used_and_gives_way_to_the_runs_own():
    calls = []

    def samples():
        calls.append(1)
        return small_inputs(2)

    recipe = upstream(static() | {"calibration_inputs_fn": samples})
    theirs = quantized(recipe)
    assert calls == [1]
    assert (
        theirs.artifact.fingerprint
        == quantized(upstream(static()), calibration_inputs=small_inputs(2)).artifact.fingerprint
    )
    ours = quantized(recipe, calibration_inputs=small_inputs(5))
    assert calls == [1]
    assert "give way to those that the run was given" in ours.plan.notes[0]
    assert ours.artifact.fingerprint != theirs.artifact.fingerprint


def test_calibration_inputs_fn_is_described_by_what_it_gives():
    def recipe(count):
        return upstream(static() | {"calibration_inputs_fn": lambda: small_inputs(count)})

    def calibrated(count):
        steps = etgraph.run(seeded(Small), small_inputs(1), recipe(count), "prepared").steps
        return steps[-1].outcome

    assert [calibrated(2), calibrated(2), calibrated(3)] == ["ran", "reused", "ran"]


def test_train_fn_and_is_qat_are_honoured():
    trained = []
    recipe = upstream(
        {
            "quantizers": [xnnpack_quantizer(is_per_channel=True, is_qat=True)],
            "is_qat": True,
            "train_fn": lambda module: trained.append(module(*small_inputs(1)[0])),
        }
    )
    result = quantized(recipe)
    assert len(trained) == 1
    assert [step.stage for step in result.steps] == ["torch_export", "prepare", "train", "convert"]


def test_dynamic_batch_size_lets_batches_of_any_size_calibrate_and_gives_a_program_of_one():
    recipe = upstream(static() | {"dynamic_batch_size": True})
    samples = [(torch.randn(batch, 32),) for batch in (1, 3, 7)]
    result = quantized(recipe, calibration_inputs=samples, keep=["exported"])
    assert isinstance(_batch(result["exported"]), torch.SymInt)
    assert _batch(result.artifact) == 4
    fixed = torch.export.export(seeded(Small), small_inputs(1)[0])
    with pytest.raises(UsageError, match=r"dynamic_batch_size is wanted, and input 'x' .* fixed batch size 4"):
        etgraph.run(fixed, recipe=recipe, calibration_inputs=samples, cache=False)


def _batch(artifact):
    program = artifact["forward"]
    (name,) = program.graph_signature.user_inputs
    return next(node.meta["val"].shape[0] for node in program.graph.nodes if node.name == name)


def test_quantizers_of_a_list_are_composed():
    first = xnnpack_quantizer(is_per_channel=True)
    second = xnnpack_quantizer(is_per_channel=False)
    result = quantized(upstream({"quantizers": [first, second]}), calibration_inputs=small_inputs())
    assert "quantized_decomposed.dequantize_per_channel.default" in operators(result.artifact["forward"])


def test_weights_in_the_module_and_quantizers_on_the_program_both_run():
    from executorch.export import AOQuantizationConfig
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig
    from torchao.quantization.granularity import PerAxis

    config = AOQuantizationConfig(
        Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0)),
        lambda module, name: name == "one",
    )
    recipe = upstream(static() | {"ao_quantization_configs": [config]})
    with pytest.warns(etgraph.EtgraphWarning, match=r"quantizes again what a source transform has quantized.*one\."):
        result = quantized(recipe, calibration_inputs=small_inputs())
    found = operators(result.artifact["forward"])
    assert "torchao.dequantize_affine.default" in found
    assert "quantized_decomposed.quantize_per_tensor.default" in found


def test_source_transform_in_place_changes_the_callers_module_and_otherwise_it_does_not():
    from executorch.export import AOQuantizationConfig
    from torchao.quantization import IntxWeightOnlyConfig

    for in_place in (False, True):
        model = seeded(Small)
        config = AOQuantizationConfig(IntxWeightOnlyConfig(weight_dtype=torch.int8))
        quantized(upstream({"ao_quantization_configs": [config]}, source_transform_in_place=in_place), model)
        assert (type(model.one.weight) is torch.nn.Parameter) is not in_place


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pre_prepare_passes": [lambda m: m]}, "gives pre_prepare_passes and no quantizers"),
        ({"post_convert_passes": [lambda m: m]}, "gives post_convert_passes and no quantizers"),
        ({"dynamic_batch_size": True}, "gives dynamic_batch_size and no quantizers"),
        ({"calibration_inputs_fn": lambda: []}, "gives calibration_inputs_fn and no quantizers"),
        ({"is_qat": True, "quantizers": [1], "calibration_inputs_fn": lambda: []}, "calibration_inputs_fn with is_qat"),
        ({"train_fn": print, "quantizers": [1]}, "train_fn and is_qat=False"),
        ({"ao_quantization_configs": [1, 2]}, "has 2 ao_quantization_configs"),
    ],
)
def test_a_field_without_effect_is_refused_by_name(fields, message):
    with pytest.raises(UsageError, match=message):
        etgraph.get_recipe(upstream(fields))


def test_a_pipeline_that_would_drop_the_quantization_is_refused():
    from executorch.export import StageType

    with pytest.raises(UsageError, match="has quantizers, and its pipeline_stages do not name QUANTIZE"):
        etgraph.get_recipe(upstream(static(), pipeline_stages=[StageType.TORCH_EXPORT, StageType.TO_EDGE]))


# -- fields of LoweringRecipe and ExportRecipe ---------------------------------------------------------------------


def xnnpack():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner()


def test_partitioners_per_method():
    inputs = {"encode": (torch.ones(2, 16),), "decode": etgraph.Inputs(torch.ones(2, 8), scale=torch.ones(1))}
    recipe = upstream(lowering={"partitioners": {"encode": [xnnpack()], "decode": []}})
    lowered = etgraph.run(seeded(Coder), inputs, recipe, "executorch", cache=False).artifact
    assert lowered["encode"]["backends"]
    assert not lowered["decode"]["backends"]


def test_aten_passes_run_once_and_on_the_quantized_program():
    seen = []

    def record(method, program):
        seen.append((method, any("quantized_decomposed" in op for op in operators(program))))
        return program

    quantized(upstream(dynamic(), aten_transform_passes=[record]))
    assert seen == [("forward", True)]


def test_edge_passes_run_before_delegating_and_manager_passes_after():
    seen = []

    def look(manager):
        names = [node.name for node in manager.exported_program().graph.nodes]
        seen.append(("manager", any(name.startswith("executorch_call_delegate") for name in names)))
        return []

    recipe = upstream(
        lowering={
            "partitioners": [xnnpack()],
            "edge_transform_passes": [lambda method, program: seen.append(f"edge {method}") or []],
            "edge_manager_transform_passes": [look],
        }
    )
    etgraph.run(seeded(Small), small_inputs(1), recipe, "lowered", cache=False)
    assert seen == ["edge forward", ("manager", True)]


def test_strict_and_the_backend_config_are_handed_on():
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig

    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    edge = EdgeCompileConfig(_skip_dim_order=True)
    recipe = etgraph.get_recipe(
        upstream(lowering={"edge_compile_config": edge}, executorch_backend_config=config, strict=False)
    )
    assert recipe.stages["torch_export"]["strict"] is False
    assert etgraph.get_recipe(upstream(strict=True)).stages["torch_export"]["strict"] is True
    assert recipe.stages["to_executorch"]["backend_config"] is config
    program = etgraph.run(seeded(Small), small_inputs(1), recipe, "edge", cache=False).artifact
    assert program.compile_config.skip_dim_order


def test_a_strict_capture_is_one_program_in_every_run():
    """TorchDynamo names calls of modules by addresses."""
    recipe = upstream(strict=True)
    first, second = (
        etgraph.run(seeded(Small), small_inputs(1), recipe, "exported", cache=False).artifact for _ in range(2)
    )
    assert first.fingerprint == second.fingerprint


# -- one recipe, several models; several recipes, one model ----------------------------------------------------------


@pytest.mark.slow
def test_one_recipe_object_serves_two_models_in_a_row():
    """Case E5."""
    recipe = upstream(static(), {"partitioners": [xnnpack()]})
    samples = small_inputs()
    alone = etgraph.run(seeded(Small), small_inputs(1), recipe, calibration_inputs=samples, cache=False)
    other = upstream(static(), {"partitioners": [xnnpack()]})
    etgraph.run(torch.nn.Linear(32, 8).eval(), small_inputs(1), other, calibration_inputs=samples, cache=False)
    after = etgraph.run(seeded(Small), small_inputs(1), other, calibration_inputs=samples, cache=False)
    assert after.artifact.buffer == alone.artifact.buffer


def test_a_quantizer_serves_two_models_in_a_row():
    """Case E5, as far as quantizing goes."""
    samples = small_inputs(2)
    recipe = upstream(static())
    quantized(recipe, torch.nn.Linear(32, 8).eval(), calibration_inputs=samples)
    after = quantized(recipe, calibration_inputs=samples)
    assert after.artifact.fingerprint == quantized(upstream(static()), calibration_inputs=samples).artifact.fingerprint


def test_recipes_that_contradict_each_other_are_refused_by_name():
    """Case E6."""
    from executorch.exir import EdgeCompileConfig

    first = upstream(lowering={"edge_compile_config": EdgeCompileConfig(_skip_dim_order=True)})
    second = upstream(lowering={"edge_compile_config": EdgeCompileConfig(_skip_dim_order=False)})
    second.name = "others"
    with pytest.raises(
        UsageError, match=r"theirs and others contradict .*_skip_dim_order is True in theirs and False in others"
    ):
        etgraph.run(seeded(Small), small_inputs(1), [first, second], cache=False)
    qat = upstream({"quantizers": [xnnpack_quantizer(is_qat=True)], "is_qat": True})
    with pytest.raises(UsageError, match=r"contradict each other in prepare.qat"):
        etgraph.get_recipe([upstream(static()), qat])


@pytest.mark.slow
def test_a_combined_recipe_quantizes_and_lowers():
    first = upstream(static() | {"calibration_inputs_fn": lambda: small_inputs(2)})
    second = upstream(lowering={"partitioners": [xnnpack()]})
    combined = etgraph.run(seeded(Small), small_inputs(1), [first, second], cache=False)
    whole = upstream(static(), {"partitioners": [xnnpack()]})
    single = etgraph.run(seeded(Small), small_inputs(1), whole, calibration_inputs=small_inputs(2), cache=False)
    assert combined.artifact.buffer == single.artifact.buffer


def test_quantizing_an_exported_program_by_an_upstream_recipe_gives_int8():
    """Upstream gives an fp32 program here without a word."""
    exported = torch.export.export(seeded(Small), small_inputs(1)[0])
    result = etgraph.run(
        exported, recipe="xnnpack_pt2e_int8_static_per_channel", to="quantized",
        calibration_inputs=small_inputs(), cache=False,
    )  # fmt: skip
    assert "quantized_decomposed.quantize_per_tensor.default" in operators(result.artifact["forward"])
    with pytest.raises(PlanError):
        etgraph.plan(exported, recipe="xnnpack_torchao_int8da_int4w_per_channel", cache=False)


def test_a_quantizer_that_takes_nothing_is_named():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer

    with pytest.raises(StageError, match="XNNPACKQuantizer found nothing to quantize"):
        quantized(upstream({"quantizers": [XNNPACKQuantizer()]}), calibration_inputs=small_inputs())
