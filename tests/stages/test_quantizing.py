"""Quantizing from end to end: int8 by every recipe, from modules and exported programs, executed against eager."""

import copy
import subprocess
import sys

import pytest
import torch
from quantizable import Coder, Net, Small, net_inputs, net_shapes, operators, seeded, small_inputs
from torch.utils.data import DataLoader, TensorDataset

import etgraph
from etgraph.errors import PlanError, StageError, UsageError

SAMPLES = [net_inputs(5, seed) for seed in range(6)]
STATIC = ("xnnpack_int8", "xnnpack_int8_per_tensor")


@pytest.fixture(scope="module")
def small():
    """Return a network and what static quantization made of it, with every kind on the way."""
    model = seeded(Small)
    kept = ["exported", "prepared", "quantized"]
    result = etgraph.run(
        model, small_inputs(1), "xnnpack_int8", calibration_inputs=small_inputs(), cache=False, keep=kept
    )
    return model, result


@pytest.mark.parametrize(
    ("recipe", "start"),
    [
        ("xnnpack_int8", "exported"),
        ("xnnpack_int8_dynamic", "module"),
        pytest.param("xnnpack_int8", "module", marks=pytest.mark.slow),
        pytest.param("xnnpack_int8_dynamic", "exported", marks=pytest.mark.slow),
        pytest.param("xnnpack_int8_per_tensor", "module", marks=pytest.mark.slow),
        pytest.param("xnnpack_int8_per_tensor", "exported", marks=pytest.mark.slow),
    ],
)
def test_int8_runs_at_two_batch_sizes_and_keeps_keywords_and_structure(recipe, start):
    model = seeded(Net)
    given = {"calibration_inputs": SAMPLES} if recipe in STATIC else {}
    if start == "module":
        result = etgraph.run(model, net_inputs(4), recipe, dynamic_shapes=net_shapes(), cache=False, **given)
    else:
        example = net_inputs(4)
        exported = torch.export.export(model, example.args, dict(example.kwargs), dynamic_shapes=net_shapes())
        result = etgraph.run(exported, recipe=recipe, cache=False, **given)
    checked = result.verify([net_inputs(1), net_inputs(7)])
    assert checked.min_snr > 30
    assert "XnnpackBackend" in result.artifact["forward"]["backends"]
    assert model.calls.item() == 0


def test_quantizing_shrinks_and_delegates_in_int8(small):
    model, result = small
    fp32 = etgraph.run(model, small_inputs(1), cache=False).artifact
    assert result.artifact.nbytes < fp32.nbytes / 1.5
    weights = [t for t in result["quantized"]["forward"].state_dict.values() if t.numel() == 32 * 64]
    assert {w.dtype for w in weights} == {torch.int8}, "the weights that were folded are still there"
    assert result.verify().min_snr > 25


def test_weights_stay_float_and_are_quantized_in_the_program_where_that_is_asked_for(small):
    """As OpenVINO wants them."""
    recipe = etgraph.get_recipe("xnnpack_int8").with_options("convert", fold_quantize=False)
    program = etgraph.run(small[1]["prepared"], recipe=recipe, to="quantized", cache=False).artifact["forward"]
    assert "quantized_decomposed.quantize_per_channel.default" in operators(program)
    assert {t.dtype for t in program.state_dict.values() if t.numel() == 32 * 64} == {torch.float32}


def test_per_channel_has_a_scale_for_each_channel_and_per_tensor_one(small):
    _, result = small
    assert "quantized_decomposed.dequantize_per_channel.default" in operators(result["quantized"]["forward"])
    per_tensor = etgraph.run(
        seeded(Small), small_inputs(1), "xnnpack_int8_per_tensor", "quantized",
        calibration_inputs=small_inputs(), cache=False,
    ).artifact  # fmt: skip
    assert "quantized_decomposed.dequantize_per_channel.default" not in operators(per_tensor["forward"])


def test_static_without_calibration_inputs_is_refused_before_any_work():
    """Case D1."""
    events = []
    with pytest.raises(UsageError, match="recipe xnnpack_int8 needs calibration_inputs, and was given none"):
        etgraph.run(seeded(Small), small_inputs(1), "xnnpack_int8", cache=False, on_event=events.append)
    assert events == []


def test_dynamic_without_calibration_inputs_takes_the_example_inputs():
    """Case D1."""
    result = etgraph.run(seeded(Small), small_inputs(1), "xnnpack_int8_dynamic", cache=False)
    assert [step.stage for step in result.steps][1:4] == ["prepare", "calibrate", "convert"]
    assert result.verify().min_snr > 35


def test_dynamic_without_any_inputs_is_refused_before_any_work():
    exported = torch.export.export(seeded(Small), small_inputs(1)[0])
    exported._example_inputs = None
    with pytest.raises(UsageError, match="there are no example inputs to use instead"):
        etgraph.plan(exported, recipe="xnnpack_int8_dynamic", cache=False)


def _forms():
    samples = small_inputs()
    stacked = torch.cat([x for (x,) in samples])
    return {
        "function": lambda: iter(samples),
        "generator": (sample for sample in samples),
        "loader": DataLoader(TensorDataset(stacked), batch_size=4),
        "tensors": DataLoader(stacked, batch_size=4),
        "mapping": {"forward": samples},
    }


@pytest.mark.parametrize("form", ["function", "generator", "loader", "tensors", "mapping"])
def test_calibration_inputs_in_every_form_give_the_same_program(small, form):
    """Case D2."""
    _, result = small
    other = etgraph.run(
        result["exported"], recipe="xnnpack_int8", to="quantized", calibration_inputs=_forms()[form], cache=False
    )
    assert other.artifact.fingerprint == result["quantized"].fingerprint


def test_planning_does_not_use_up_a_generator(small):
    """Also where everything is in the cache, which planning looks into."""
    _, result = small
    etgraph.run(result["exported"], recipe="xnnpack_int8", to="quantized", calibration_inputs=small_inputs())
    generator = (sample for sample in small_inputs())
    etgraph.plan(result["exported"], recipe="xnnpack_int8", calibration_inputs=generator)
    assert len(list(generator)) == len(small_inputs())


def test_calibration_reports_its_progress(small):
    _, result = small
    events = []
    etgraph.run(
        result["exported"], recipe="xnnpack_int8", to="prepared", calibration_inputs=small_inputs(3),
        cache=False, on_event=events.append,
    )  # fmt: skip
    progress = [(e.planned.stage, e.done, e.of) for e in events if e.name == "step_progress"]
    assert progress == [("calibrate", 1, 3), ("calibrate", 2, 3), ("calibrate", 3, 3)]


def test_a_sample_that_does_not_fit_is_named(small):
    _, result = small
    bad = [*small_inputs(2), (torch.ones(4, 32), torch.tensor(1))]
    with pytest.raises(UsageError, match="calibration input 2 of method 'forward'"):
        etgraph.run(result["exported"], recipe="xnnpack_int8", calibration_inputs=bad, cache=False)


def test_a_sample_with_nan_in_it_is_named(small):
    _, result = small
    nan = torch.utils._pytree.tree_map(lambda value: value * float("nan"), small_inputs(1))
    with pytest.raises(UsageError, match=r"calibration input 2 of method 'forward', .* has NaN in it"):
        etgraph.run(result["exported"], recipe="xnnpack_int8", calibration_inputs=[*small_inputs(2), *nan], cache=False)


# -- kinds: where a program is, and going on from there ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["exported", "prepared", "quantized"])
def test_a_run_that_was_stopped_saved_and_resumed_gives_the_same_bytes(small, kind, tmp_path):
    """Case B4."""
    _, result = small
    path = result[kind].save(tmp_path / f"m.{kind}.etg")
    given = {"calibration_inputs": small_inputs()} if kind == "exported" else {}
    resumed = etgraph.run(path, recipe="xnnpack_int8", cache=False, **given)
    assert resumed.artifact.buffer == result.artifact.buffer


def test_a_quantized_program_is_not_quantized_twice_and_the_plan_says_so(small):
    """Case B4."""
    _, result = small
    plan = etgraph.plan(result["quantized"]["forward"], recipe="xnnpack_int8", cache=False)
    assert plan.kinds == ("quantized", "lowered", "executorch")
    assert "the program is at quantized already; recipe xnnpack_int8 quantizes to int8, which is not done twice" in (
        plan.notes
    )


def test_an_edge_program_cannot_be_quantized_and_is_refused_before_work(small):
    """Case B4."""
    _, result = small
    edge = etgraph.run(result["exported"], recipe="xnnpack_fp32", to="edge", cache=False).artifact
    with pytest.raises(
        PlanError, match=r"(?s)already at edge; recipe xnnpack_int8 quantizes to int8.*use xnnpack_fp32"
    ):
        etgraph.plan(edge, recipe="xnnpack_int8", calibration_inputs=small_inputs(), cache=False)


def test_stopping_uncalibrated_then_calibrating_outside_gives_the_same_bytes(small):
    _, result = small
    stopped = etgraph.run(result["exported"], recipe="xnnpack_int8", to="prepared", cache=False)
    assert "calibrate is left out: no calibration inputs were given" in stopped.plan.notes[0]
    with pytest.raises(UsageError, match="needs calibration_inputs"):
        etgraph.plan(stopped.artifact, recipe="xnnpack_int8", cache=False)
    with pytest.raises(UsageError, match="have seen no value"):
        etgraph.run(stopped.artifact, recipe="xnnpack_fp32", cache=False)
    module = stopped.artifact["forward"]
    for sample in small_inputs():
        module(*sample)
    resumed = etgraph.run({"forward": module}, recipe="xnnpack_int8", cache=False)
    assert "have seen values already" in resumed.plan.notes[0]
    assert resumed.artifact.buffer == result.artifact.buffer


def test_no_stage_changes_the_prepared_program_it_is_given(small):
    _, result = small
    stopped = etgraph.run(result["exported"], recipe="xnnpack_int8", to="prepared", cache=False).artifact
    before = stopped.fingerprint
    calibrated = etgraph.run(
        stopped, recipe="xnnpack_int8", to="prepared", calibration_inputs=small_inputs(), cache=False
    ).artifact
    assert stopped.fingerprint == before != calibrated.fingerprint
    before = calibrated.fingerprint
    etgraph.run(calibrated, recipe="xnnpack_int8", to="quantized", cache=False)
    assert calibrated.fingerprint == before


def test_every_step_goes_through_the_cache_and_a_changed_sample_is_seen(small):
    model, _ = small

    def steps(samples):
        result = etgraph.run(model, small_inputs(1), "xnnpack_int8", "quantized", calibration_inputs=samples)
        return {step.stage: step.outcome for step in result.steps}

    first = steps(small_inputs())
    assert set(first) == {"torch_export", "prepare", "calibrate", "convert"}
    assert set(steps(iter(small_inputs())).values()) == {"reused"}
    assert steps(small_inputs()[:4]) == {
        "torch_export": "reused", "prepare": "reused", "calibrate": "ran", "convert": "ran",
    }  # fmt: skip


def test_a_quantized_pt2_runs_in_a_process_that_imports_only_etgraph(small, tmp_path):
    """Case A4."""
    _, result = small
    path = result["quantized"].save(tmp_path / "q.pt2")
    code = "import sys, etgraph; print(etgraph.load(sys.argv[1]).kind)"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "quantized"


@pytest.mark.parametrize("raw", [False, True])
def test_dynamic_sizes_keep_their_range_and_stay_one_size(raw):
    model = seeded(Net)
    stopped = etgraph.run(
        model, net_inputs(4), "xnnpack_int8", "prepared", dynamic_shapes=net_shapes(), calibration_inputs=SAMPLES[:1],
        cache=False,
    ).artifact  # fmt: skip
    # A graph module by itself has only its graph to tell; torch notes "1 and more" there as "2 and more".
    given = stopped["forward"] if raw else stopped
    program = etgraph.run(given, recipe="xnnpack_int8", to="quantized", cache=False).artifact["forward"]
    ((symbol, found),) = program.range_constraints.items()
    assert (found.lower <= 1, found.upper) == (True, 16)
    assert {str(v.shape[0]) for v in _user_values(program)} == {str(symbol)}


def _user_values(program):
    names = set(program.graph_signature.user_inputs)
    return [node.meta["val"] for node in program.graph.nodes if node.name in names]


def test_each_method_has_a_quantizer_of_its_own():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer
    from quantizable import xnnpack_quantizer

    class OnlyOnce(XNNPACKQuantizer):
        used = False

        def annotate(self, model):
            assert not self.used, "a quantizer that notes what it annotated was used for two methods"
            self.used = True
            return super().annotate(model)

    quantizer = xnnpack_quantizer(is_per_channel=True, is_dynamic=True)
    quantizer.__class__ = OnlyOnce
    inputs = {"encode": (torch.ones(4, 16),), "decode": etgraph.Inputs(torch.ones(4, 8), scale=torch.ones(1))}
    recipe = etgraph.get_recipe("xnnpack_int8_dynamic").with_options("prepare", quantizers=[quantizer])
    etgraph.run(seeded(Coder), inputs, recipe, "prepared", cache=False)
    assert not quantizer.used


# -- methods, failures, what is left as it was -----------------------------------------------------------------


def test_several_methods_are_calibrated_each_with_its_own():
    torch.manual_seed(3)
    inputs = {
        "encode": (torch.randn(4, 16),),
        "decode": etgraph.Inputs(torch.randn(4, 8), scale=torch.full((1,), 2.0)),
    }
    samples = {method: [one] * 3 for method, one in inputs.items()}
    result = etgraph.run(seeded(Coder), inputs, "xnnpack_int8", calibration_inputs=samples, cache=False)
    assert set(result.verify()) == {"encode", "decode"}
    assert result.verify().min_snr > 25
    with pytest.raises(UsageError, match="there are no calibration inputs for decode"):
        etgraph.plan(
            seeded(Coder), inputs, "xnnpack_int8", calibration_inputs={"encode": samples["encode"]}, cache=False
        )


class Nothing(torch.nn.Module):
    """Nothing that XNNPACK's quantizer knows."""

    def forward(self, x):
        return torch.sin(x)


def test_an_int8_recipe_never_gives_an_fp32_program_silently():
    with pytest.raises(StageError, match="XNNPACKQuantizer found nothing to quantize in forward"):
        etgraph.run(Nothing(), (torch.ones(2),), "xnnpack_int8_dynamic", cache=False)
    decomposed = torch.export.export(seeded(Small), small_inputs(1)[0]).run_decompositions()
    with pytest.raises(StageError, match="its operators were decomposed before"):
        etgraph.run(decomposed, recipe="xnnpack_int8_dynamic", cache=False)


def test_a_method_without_anything_to_quantize_is_told():
    models = {"forward": seeded(Small), "wave": Nothing()}
    inputs = {"forward": small_inputs(1)[0], "wave": (torch.ones(2),)}
    with pytest.warns(etgraph.EtgraphWarning, match="nothing to quantize in method 'wave'"):
        etgraph.run(models, inputs, "xnnpack_int8_dynamic", "prepared", cache=False)


def test_the_callers_module_is_left_as_it_was():
    model = seeded(Net)
    model.norm.train()
    before = copy.deepcopy(model.state_dict())
    flags = [child.training for child in model.modules()]
    samples = SAMPLES[:2]
    with pytest.warns(etgraph.EtgraphWarning, match="exported in training mode"):
        etgraph.run(model, net_inputs(4), "xnnpack_int8", "quantized", calibration_inputs=samples, cache=False)
    assert [child.training for child in model.modules()] == flags
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_nodes_of_a_quantized_program_know_the_source_line_they_serve(small):
    _, result = small
    nodes = [n for n in result["quantized"]["forward"].graph.nodes if "dequantize_per_tensor" in str(n.target)]
    assert nodes
    assert all("quantizable.py" in (node.meta.get("stack_trace") or "") for node in nodes[:-1])


def test_unused_calibration_inputs_are_told():
    plan = etgraph.plan(seeded(Small), small_inputs(1), calibration_inputs=small_inputs(), cache=False)
    assert "calibration inputs were given, and no step on the way calibrates" in plan.notes
