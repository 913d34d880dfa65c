"""Targets: each that can be lowered here lowers a network, and what runs here computes what the model computes."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from models import made

import etgraph
from etgraph.recipes import evaluated
from etgraph.registry import registry

registry.load_plugins()

#: Backends whose compilers take more than a few seconds for the smallest network.
SLOW = ("coreml", "vulkan", "ethos", "tosa")
LOWERED_HERE = [
    pytest.param(name, marks=pytest.mark.slow if any(word in name for word in SLOW) else ())
    for name, target in registry.targets.items()
    if not target.to_lower.missing()
]
#: One place stands for all: the same recipes are behind them.
RUN_HERE = [
    name
    for name, target in registry.targets.items()
    if name.startswith("linux-x86_64") and not target.to_lower.missing() and not target.why_not_run_here()
]

_CORTEX_M = registry.targets["baremetal-cortex_m55-cmsis_nn-int8"]
cortex_m = pytest.mark.skipif(bool(_CORTEX_M.to_lower.missing()), reason="tosa-tools is not installed")


def samples(count=8):
    torch.manual_seed(1)
    return [(torch.randn(1, 3, 10, 10),) for _ in range(count)]


def in_groups(name):
    """Whether the weights are quantized in groups, which a layer must be as wide as."""
    return "8da4w" in name or "int4_weight_only" in name


def wide():
    """A network of linear layers as wide as the groups of 4-bit weights."""
    torch.manual_seed(0)
    layers = (torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    return torch.nn.Sequential(*layers).eval(), (torch.randn(4, 64),), {}


@pytest.fixture
def shared_cache(tmp_path_factory, monkeypatch):
    """One cache for all tests of a process: targets of several places have steps in common."""
    folder = tmp_path_factory.getbasetemp() / "shared_cache"
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(folder))


@pytest.mark.parametrize("name", LOWERED_HERE)
def test_every_target_that_can_be_lowered_here_lowers_a_network(name, shared_cache):
    """Its backends, and none else, are in the program, and they took most of it."""
    model, inputs, _ = wide() if in_groups(name) else made("conv")
    result = etgraph.run(model, inputs, target=name, calibration_inputs=None if in_groups(name) else samples())
    target = registry.targets[name]
    assert result.artifact.buffer[4:6] == b"ET"
    found = {one["name"]: one["nodes"] for one in result.delegation["forward"]["backends"]}
    # What Arm's delegates leave at their boundaries is in operators of Cortex-M.
    assert set(found) - {"cortex_m"} <= set(target.backends)
    assert found[target.backends[0]] > result.delegation["forward"]["others"]
    assert result.plan.request.recipe.name == name
    if target.to_run is None:
        assert "of this host does not have" in result.host_problem
    if not target.why_not_run_here():
        assert result.host_problem == ""


@pytest.mark.parametrize("name", RUN_HERE)
def test_what_runs_here_is_within_the_noise_fit_for_its_precision(name, shared_cache):
    model, inputs, _ = wide() if in_groups(name) else made("conv")
    needs = {} if in_groups(name) else {"calibration_inputs": samples()}
    result = etgraph.run(model, inputs, target=name, **needs)
    assert result.verify().min_snr >= registry.targets[name].snr


@pytest.mark.parametrize("name", [name for name in RUN_HERE if name.endswith("fp32")])
def test_recurrent_networks_compute_the_same_where_they_run_here(name):
    model, inputs, _ = made("recurrent")
    assert etgraph.run(model, inputs, target=name).verify().min_snr >= registry.targets[name].snr


def recipe_of(name):
    """Return the recipe of a target; skip where the recipe cannot even be made without its packages."""
    try:
        return registry.targets[name].build()
    except (ImportError, etgraph.UsageError) as error:
        if not registry.targets[name].to_lower.missing():
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", registry.targets)
def test_a_target_quantizes_what_its_name_says_and_asks_for_calibration_inputs_where_they_are_needed(name):
    recipe, precision = recipe_of(name), registry.targets[name].precision
    wanted = {"fp32": set(), "fp16": set(), "int8": {"prepare"}, "int8_dynamic": {"prepare"}}
    assert {"prepare", "quantize_weights"}.intersection(recipe.stages) == wanted.get(precision, {"quantize_weights"})
    assert bool(recipe.stages.get("calibrate", {}).get("static")) == (precision == "int8")


@pytest.mark.parametrize(
    ("precision", "bits", "activations"),
    [("8da4w", 4, "int8_dynamic"), ("int8_weight_only", 8, None), ("int4_weight_only", 4, None)],
)
def test_weights_have_the_bits_of_the_name(precision, bits, activations):
    config = recipe_of(f"linux-x86_64-xnnpack-{precision}").stages["quantize_weights"]["config"]
    assert (config["weight_bits"], config.get("activations")) == (bits, activations)


@pytest.mark.parametrize("cpu", ["m4", "m7", "m33", "m55", "m85"])
def test_scratch_buffers_are_planned_for_the_cpu_of_the_name(cpu):
    rewrite = recipe_of(f"baremetal-cortex_{cpu}-cmsis_nn-int8").stages["to_operator_library"]["rewrite"]
    assert rewrite.cpu == f"cortex-{cpu}"


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("android-arm64-vulkan-fp16", "force_fp16", b"\x01"),
        ("android-arm64-vulkan-fp32", "force_fp16", b"\x00"),
        ("ios-arm64-coreml-fp16", "model_compute_precision", b"float16"),
        ("ios-arm64-coreml-fp32", "model_compute_precision", b"float32"),
        ("macos-arm64-coreml-fp32", "model_compute_precision", b"float32"),
    ],
)
def test_the_backend_is_told_the_precision_of_the_name_and_xnnpack_comes_after_it(name, key, value):
    """In every stage that delegates: by whichever way it goes, it is the same target."""
    recipe = recipe_of(name)
    for stage in ("to_edge", "to_backend", "to_edge_transform_and_lower"):
        first, *rest = evaluated(recipe.stages[stage])["partitioners"]
        specs = {one.key: one.value for one in first.delegation_spec.compile_specs}
        assert value in specs[key]
        assert [type(one).__name__ for one in rest] == ["XnnpackPartitioner"] * (len(recipe.backends) - 1)


def test_an_lstm_that_no_quantizer_takes_is_refused_and_never_float_under_the_name_of_int8():
    model, inputs, _ = made("recurrent")
    with pytest.raises(
        etgraph.StageError, match=r"found nothing to quantize in forward: aten\.lstm\.input and .* taken apart"
    ):
        etgraph.run(model, inputs, target="linux-x86_64-xnnpack-int8", calibration_inputs=[inputs])


def test_a_failing_target_loses_no_other_and_what_is_common_runs_once(monkeypatch):
    """A generator of calibration inputs, which can be read once, serves every target; all without a cache."""
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    model, inputs, _ = made("conv")
    exported = []
    results = etgraph.run(
        model,
        inputs,
        target=["android-arm64-xnnpack-int8", "android-arm64-qnn-fp16", "linux-arm64-xnnpack-int8",
                "linux-x86_64-xnnpack-int8_dynamic"],
        calibration_inputs=(one for one in samples()),
        cache=False,
        on_event=lambda event: exported.append(event.step.outcome)
        if event.name == "step_finished" and event.step.stage == "torch_export"
        else None,
    )  # fmt: skip
    assert exported == ["ran", "reused", "reused"]
    assert list(results.failures) == ["android-arm64-qnn-fp16"]
    android, arm = results["android-arm64-xnnpack-int8"], results["linux-arm64-xnnpack-int8"]
    assert {step.outcome for step in arm.steps} == {"reused"}
    assert android.artifact.buffer == arm.artifact.buffer
    with pytest.raises(etgraph.UsageError, match="QNN_SDK_ROOT is not set"):
        results["android-arm64-qnn-fp16"]


def test_a_source_that_is_wrong_is_so_for_all():
    with pytest.raises(etgraph.UsageError, match="is not a program"):
        etgraph.run(3, target=["linux-x86_64-xnnpack-fp32", "linux-arm64-xnnpack-fp32"], cache=False)


def test_a_missing_sdk_is_one_line_before_any_work(monkeypatch):
    """Nothing has run and nothing of the backend was imported, which is where a download would begin."""
    import sys

    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    model, inputs, _ = made("conv")
    ran = []
    with pytest.raises(etgraph.UsageError, match="AI Engine Direct SDK") as caught:
        etgraph.run(model, inputs, target="android-arm64-qnn-fp16", on_event=ran.append)
    assert not ran
    assert "\n" not in caught.value.problem
    assert not any(name.startswith("executorch.backends.qualcomm.recipes") for name in sys.modules)


def test_a_target_without_its_sdk_can_be_planned(monkeypatch):
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    model, inputs, _ = made("conv")
    plan = etgraph.plan(model, inputs, target="android-arm64-qnn-fp16")
    assert [step.stage for step in plan.steps][-2:] == ["to_edge_transform_and_lower", "to_executorch"]
    assert any(note.startswith("cannot be lowered here: Qualcomm's") for note in plan.notes)


def test_an_sdk_that_does_not_work_is_a_failed_stage_with_its_reason(tmp_path, monkeypatch):
    """All stages up to the compiler's start have run; what the backend says is in the error."""
    if importlib.util.find_spec("executorch.backends.qualcomm.python.PyQnnManagerAdaptor") is None:
        pytest.skip("this executorch has no QNN adaptor")
    monkeypatch.setenv("QNN_SDK_ROOT", str(tmp_path))
    model, inputs, _ = made("conv")
    with pytest.raises(etgraph.StageError, match="QNN backend") as caught:
        etgraph.run(model, inputs, target="android-arm64-qnn-fp16", cache=False)
    assert caught.value.stage == "to_edge_transform_and_lower"


def test_operator_libraries_go_the_split_way_and_say_why():
    model, inputs, _ = made("conv")
    target = "baremetal-cortex_m55-cmsis_nn-int8"
    plan = etgraph.plan(model, inputs, target=target, calibration_inputs=samples())
    assert [step.stage for step in plan.steps][-3:] == ["to_edge", "to_operator_library", "to_executorch"]
    assert "library of operators" in plan.explain()
    with pytest.raises(etgraph.PlanError, match="can only go the split way: Cortex-M is a library"):
        etgraph.plan(model, inputs, target=target, calibration_inputs=samples(), path="combined")


@cortex_m
@pytest.mark.parametrize("kind", ["quantized", "edge", "lowered"])
def test_a_program_on_its_way_to_an_operator_library_is_saved_and_resumed(tmp_path, kind):
    """What Arm's quantizer noted at the nodes goes with it; without, no convolution is taken."""
    model, inputs, _ = made("conv")
    target = "baremetal-cortex_m55-cmsis_nn-int8"
    whole = etgraph.run(model, inputs, target=target, calibration_inputs=samples(), keep=[kind], cache=False)
    path = whole[kind].save(tmp_path / f"net.{kind}.etg")
    assert etgraph.detect(path) == kind
    assert etgraph.run(path, target=target, cache=False).artifact.buffer == whole.artifact.buffer


@cortex_m
def test_a_program_in_an_operator_library_computes_what_the_model_computes():
    """Upstream's reference kernels run in Python, so that no device is needed."""
    model, inputs, _ = made("conv")
    result = etgraph.run(
        model,
        inputs,
        target="baremetal-cortex_m55-cmsis_nn-int8",
        calibration_inputs=[*samples(), inputs],
        to="lowered",
    )
    wanted = model(*inputs)
    got = result.artifact.methods["forward"].module()(*inputs)
    noise = (got - wanted).square().sum()
    assert 10 * torch.log10(wanted.square().sum() / noise) >= 20


def test_the_cpu_of_cortex_m_is_checked():
    with pytest.raises(etgraph.UsageError, match="there is no cpu 'cortex-a5'"):
        etgraph.get_recipe("cortex_m_int8", cpu="cortex-a5")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("coremltools") is None, reason="coremltools is not installed")
@pytest.mark.parametrize("order", [["xnnpack_fp32", "ios-arm64-coreml-fp16"], ["ios-arm64-coreml-fp16"]])
@pytest.mark.parametrize("path", ["combined", "split"])
def test_core_ml_and_xnnpack_in_either_order(order, path):
    """What the first delegated stays as it is, and the second takes of the rest; Core ML leaves nothing of this one."""
    model, inputs, _ = made("conv")
    recipes = [registry.targets[name].build() if name in registry.targets else name for name in order]
    result = etgraph.run(model, inputs, recipe=recipes, path=path, cache=False)
    names = {one["name"] for one in result.delegation["forward"]["backends"]}
    assert names == ({"XnnpackBackend", "CoreMLBackend"} if order[0] == "xnnpack_fp32" else {"CoreMLBackend"})


def test_a_partitioner_that_takes_nothing_is_a_warning_with_its_reason():
    class Sums(torch.nn.Module):
        def forward(self, x):
            return torch.cumsum(x, 0)

    with pytest.warns(etgraph.EtgraphWarning, match=r"took no node.*XnnpackPartitioner knows no aten\.cumsum\.default"):
        etgraph.run(Sums(), (torch.randn(2, 3),), target="linux-x86_64-xnnpack-fp32", cache=False)


@pytest.mark.parametrize("name", ["ios", "ios-arm64-coreml", "iOS-arm64-coreml-fp16", "a-b-c-d-e"])
def test_a_target_is_named_by_place_architecture_backend_and_precision(name):
    with registry.scratch(), pytest.raises(etgraph.StageDeclarationError, match="cannot be named"):
        etgraph.target(name, backends=("X",), snr=20)(lambda: etgraph.get_recipe("portable"))


def test_a_target_of_a_third_party_is_one_decorator():
    with registry.scratch():

        @etgraph.target("board-riscv-portable-fp32", backends=("portable",), to_run=etgraph.Needs(), snr=80)
        def board() -> etgraph.Recipe:
            """A board."""
            return etgraph.get_recipe("portable")

        model, inputs, _ = made("conv")
        result = etgraph.run(model, inputs, target="board-riscv-portable-fp32")
        assert result.verify().min_snr >= 80


def test_needs_tell_versions_variables_pythons_and_systems(monkeypatch, tmp_path):
    needs = etgraph.Needs(
        distributions=("torch>=99", "nothing-of-this-name>=1"),
        variable=("SOME_SDK", "the SDK"),
        python=((9, 0), "why"),
        systems=("Plan9",),
    )
    monkeypatch.setenv("SOME_SDK", str(tmp_path / "absent"))
    said = "; ".join(needs.missing())
    for part in ("runs on Plan9", "Python 9.0 (why)", "and >=99 is needed", "nothing-of-this-name>=1 is not installed",
                 "which is no folder"):  # fmt: skip
        assert part in said
    assert etgraph.Needs(distributions=("torch>=1",)).missing() == ()
    monkeypatch.setenv("SOME_SDK", str(tmp_path))
    assert etgraph.Needs(variable=("SOME_SDK", "the SDK")).missing() == ()


@pytest.mark.slow
def test_cadence_fuses_quantized_patterns_into_its_operators(monkeypatch):
    """Convolutions, in Python by upstream's reference kernels; that of linear layers has the wrong sign (1.5.1)."""
    import typing

    import typing_extensions

    # What Python 3.12 has, and all that is missing before: so that the way is tested on any.
    monkeypatch.setattr(typing, "override", typing_extensions.override, raising=False)

    class Convolutions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(8)
            self.second = torch.nn.Conv2d(8, 8, 3, groups=8)

        def forward(self, x):
            return self.second(self.norm(self.first(x)))

    torch.manual_seed(0)
    model, inputs = Convolutions().eval(), samples(1)[0]
    result = etgraph.run(
        model, inputs, recipe="cadence_int8", calibration_inputs=[*samples(), inputs], cache=False, keep=["lowered"]
    )
    assert [step.stage for step in result.steps][-4:] == [
        "aten_passes",
        "to_edge",
        "to_operator_library",
        "to_executorch",
    ]
    assert "cadence::quantized_conv2d_nhwc.per_tensor_out" in result.artifact.methods["forward"]["operators"]
    with torch.no_grad():
        wanted = model(*inputs)
        noise = (result["lowered"].methods["forward"].module()(*inputs) - wanted).square().sum()
    assert 10 * torch.log10(wanted.square().sum() / noise) >= 20
