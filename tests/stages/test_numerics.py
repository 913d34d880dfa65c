"""Faults planted on the way are found and named, also where the outputs hide them; right programs are left in peace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from faults import add_one_before, cast_first, lose_clamp, nodes_of, recipe_with, scale_times, swap_outputs
from models import MODELS, made

import etgraph
from etgraph.numerics import Comparison, NodeNumbers, Suspect


def run_with(name: str, recipe: Any, **more: Any) -> Comparison:
    model, inputs, rest = made(name)
    return etgraph.compare(model, example_inputs=inputs, recipe=recipe, cache=False, **{**rest, **more})


def the_suspect(found: Comparison) -> tuple[Suspect, NodeNumbers]:
    (suspect,) = found.suspects
    assert suspect.node is not None
    assert suspect.node in found.nodes
    return suspect, suspect.node


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        pytest.param(name, recipe, marks=[pytest.mark.slow] if name in ("attention", "recurrent") else [])
        for name in sorted(MODELS)
        for recipe in ("xnnpack_fp32", "portable")
    ],
)
def test_what_is_right_is_within_tolerance_at_every_kind(name: str, recipe: str) -> None:
    found = run_with(name, recipe)
    assert found.within, str(found)
    assert found.suspects == ()
    assert not any(stage.reason for stage in found.stages)
    assert [stage.kind for stage in found.stages][:2] == ["module", "exported"]
    assert found.stages[-1].kind == "executorch"
    assert all(one.source.snr > 100 for stage in found.stages for one in stage.outputs)


def test_lost_clamp_in_a_delegate_is_named_with_its_line_and_its_arguments() -> None:
    found = run_with("conv", recipe_with(lose_clamp))
    assert found.first_bad is not None
    assert found.first_bad.kind == "lowered"
    suspect, node = the_suspect(found)
    assert node.node == "lowered_module_0/aten_hardtanh_default"
    assert node.counterpart == "relu6"
    assert "F.relu6" in node.source_line
    assert not suspect.masked
    assert node.gap is not None
    assert node.gap.absolute > 0.5
    before = {one.node: one.within for one in found.nodes[: found.nodes.index(node)]}
    assert False not in before.values()
    assert before["lowered_module_0/aten_convolution_default"] is True


def test_the_pass_that_did_it_is_told_from_the_stage_before_it() -> None:
    found = run_with("conv", recipe_with(lose_clamp), path="split")
    suspect, node = the_suspect(found)
    assert (suspect.stage, suspect.kind) == ("edge_passes", "edge")
    assert (node.call, node.counterpart_call) == (
        "aten.hardtanh.default(getitem)",
        "aten.hardtanh.default(getitem, 0, 6)",
    )


def test_the_same_is_found_in_programs_from_the_cache_and_from_files(tmp_path: Any) -> None:
    """What nodes were made from outlives both."""
    model, inputs, _ = made("conv")
    edge = etgraph.run(model, inputs, recipe="portable", to="edge")
    again = etgraph.run(model, inputs, recipe="portable", to="edge")
    assert [step.outcome for step in again.steps] == ["reused", "reused"], again.steps
    program = again.artifact.methods["forward"]
    lose_clamp(program.graph_module)
    bad = tmp_path / "bad.edge.etg"
    again.artifact.save(bad)
    found = etgraph.compare(edge["exported"], bad)
    assert the_suspect(found)[1].node == "aten_hardtanh_default"
    assert the_suspect(found)[1].counterpart == "relu6"


def test_an_operator_that_nothing_stands_for_is_named() -> None:
    found = run_with("conv", recipe_with(add_one_before("aten.mean.dim")))
    node = the_suspect(found)[1]
    assert node.node == "lowered_module_0/aten_add_tensor"
    assert "F.hardtanh" in node.source_line


def test_a_cast_is_named_though_the_outputs_hide_it() -> None:
    found = run_with("conv", recipe_with(cast_first("aten.mean.dim", torch.bfloat16), "portable"))
    assert found.within
    suspect, node = the_suspect(found)
    assert suspect.masked
    assert node.operator == "dim_order_ops._to_dim_order_copy.default"
    assert "dtype=torch.bfloat16" in node.call


def test_exchanged_outputs_of_one_of_several_methods_are_named() -> None:
    found = run_with("methods", recipe_with(swap_outputs, method="decode"))
    assert found.first_bad is not None
    assert {one.method for one in found.first_bad.outputs if not one.within} == {"decode"}
    (suspect,) = found.suspects
    assert suspect.method == "decode"
    assert "outputs are exchanged: output 0 is node z, which was output 1" in suspect.words


def test_dynamic_sizes_on_inputs_of_the_users() -> None:
    inputs = [(torch.randn(5, 4),), (torch.randn(8, 4),)]
    found = run_with("dynamic", recipe_with(add_one_before("aten.gelu.default"), "portable"), inputs=inputs)
    assert (found.inputs, dict(found.samples)) == ("the inputs given", {"forward": 2})
    assert the_suspect(found)[1].node == "aten_add_tensor"


def test_a_fault_in_a_branch_is_found_by_the_sample_that_takes_it() -> None:
    """The second sample is the one for which the condition is false."""
    found = run_with("branching", recipe_with(add_one_before("aten.add.Tensor"), "portable"))
    node = the_suspect(found)[1]
    assert node.node.startswith("submodule_1/aten_add_tensor")


@pytest.mark.parametrize(("recipe", "node"), [("portable", "aten_add_tensor"), ("xnnpack_fp32", "b_seen")])
def test_a_start_value_that_the_pte_lost_is_named(recipe: str, node: str) -> None:
    """In the runtime, by the values that it logs: of a delegate also those that go in."""
    lost = etgraph.get_recipe(recipe).with_options("to_executorch", initialize_buffers=False)
    found = run_with("cache", lost)
    suspect, named = the_suspect(found)
    assert suspect.kind == "executorch"
    assert named.node == node
    assert "buffer seen does not start at zero" in suspect.words
    assert "self.seen.add_(1.0)" in named.source_line
    assert {one.node for one in found.nodes if one.within} >= {"aten_index_put_default"}


def test_a_buffer_that_was_emptied_at_edge_is_named() -> None:
    model, inputs, _ = made("cache")
    result = etgraph.run(model, inputs, recipe="portable", to="edge", cache=False)
    program = result.artifact.methods["forward"]
    program.state_dict["seen"] = torch.zeros(1)
    exported = result["exported"]
    found = etgraph.compare(exported, result.artifact)
    assert float(exported.methods["forward"].state_dict["seen"]) == 3.0, "the search itself wrote to the program"
    assert the_suspect(found)[1].operator == "placeholder seen"


class Specialised(torch.nn.Module):
    """Computes something else when it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), Doubled()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) + 1.0


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1.0 if torch.compiler.is_exporting() else 1.5)


def test_a_module_that_is_exported_as_another_is_named_by_its_submodule() -> None:
    found = etgraph.compare(Specialised(), inputs=(torch.randn(2, 4),), recipe="portable", cache=False)
    suspect, node = the_suspect(found)
    assert (suspect.kind, node.node, node.counterpart) == ("exported", "mul", "second")
    assert "1.0 if torch.compiler.is_exporting()" in node.source_line


# -- quantized programs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calibration() -> list[Any]:
    torch.manual_seed(1)
    return [(torch.randn(1, 3, 10, 10),) for _ in range(4)]


@pytest.fixture(scope="module")
def quantized(calibration: list[Any]) -> etgraph.Result:
    model, inputs, _ = made("conv")
    return etgraph.run(
        model, inputs, recipe="xnnpack_int8", calibration_inputs=calibration, to="quantized", cache=False,
        keep=["exported"],
    )  # fmt: skip


def changed(artifact: etgraph.Artifact, change: Callable[[Any], None]) -> etgraph.Artifact:
    from stages.support.programs import copy_for_rewriting

    program = copy_for_rewriting(artifact.methods["forward"])
    change(program)
    return replace(artifact, methods={"forward": program})


def test_int8_is_judged_by_what_int8_can_do(calibration: list[Any]) -> None:
    found = run_with("conv", "xnnpack_int8", calibration_inputs=calibration)
    assert found.within, str(found)
    assert found.suspects == ()
    kinds = {stage.kind: stage for stage in found.stages}
    assert kinds["quantized"].outputs[0].source.snr < 60
    assert kinds["quantized"].tolerance.snr == 20
    assert kinds["exported"].tolerance.snr is None


def test_a_bad_scale_in_an_edge_pass_is_named_with_the_scale(calibration: list[Any]) -> None:
    recipe = recipe_with(scale_times(0.01, 2), "xnnpack_int8")
    node = the_suspect(run_with("conv", recipe, calibration_inputs=calibration))[1]
    assert node.node == "lowered_module_0/quantized_decomposed_quantize_per_tensor_default_2"
    (scale,) = node.scale
    assert scale < 1e-3
    assert str(scale) in node.call
    assert str(scale) not in node.counterpart_call


@pytest.mark.parametrize("factor", [0.01, 0.0])
def test_a_bad_scale_of_a_weight_is_named_though_the_outputs_hide_it(quantized: etgraph.Result, factor: float) -> None:
    def change(program: Any) -> None:
        held = program.state_dict | program.constants
        name = next(name for name in held if "_scale_1" in name)
        (program.state_dict if name in program.state_dict else program.constants)[name] = held[name] * factor

    found = etgraph.compare(quantized["exported"], changed(quantized.artifact, change))
    suspect, node = the_suspect(found)
    assert suspect.masked
    assert (node.node, node.counterpart) == ("dequantize_per_channel_1", "p_depthwise_weight")
    assert node.scale[0] < 1e-4


def test_a_scale_of_zero_that_cannot_be_computed_with_is_named(quantized: etgraph.Result) -> None:
    bad = changed(quantized.artifact, lambda program: scale_times(0.0, 2)(program.graph_module))
    found = etgraph.compare(quantized.artifact, bad)
    assert not found.within
    (suspect,) = found.suspects
    assert suspect.node is not None
    assert (suspect.node.node, suspect.node.scale) == ("quantize_per_tensor_2", (0.0,))
    assert "ZeroDivisionError" in suspect.words


def test_a_batch_norm_that_was_folded_into_a_convolution_is_no_fault(calibration: list[Any]) -> None:
    """The weights are others, and so is what the convolution gives; what the norm gave is right."""
    model, inputs, _ = made("conv")
    model.norm.running_var.fill_(0.1)
    model.norm.running_mean.fill_(0.5)
    recipe = {"recipe": "xnnpack_int8", "calibration_inputs": calibration, "cache": False}
    result = etgraph.run(model, inputs, to="quantized", keep=["exported"], **recipe)
    found = etgraph.compare(result["exported"], result.artifact)
    assert found.within
    assert found.suspects == ()


# -- inputs and programs of other forms -------------------------------------------------------------


def test_programs_keep_their_state_and_the_caller_its_inputs() -> None:
    model, inputs, _ = made("cache")
    before = {name: value.clone() for name, value in model.named_buffers()}
    given = [tuple(value.clone() for value in sample) for sample in inputs]
    assert etgraph.compare(model, example_inputs=inputs, recipe="portable", cache=False).within
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert all(torch.equal(a, b) for one, two in zip(inputs, given, strict=True) for a, b in zip(one, two, strict=True))


def test_outputs_that_are_no_tensors_are_compared_by_equality_and_said() -> None:
    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"double": x * 2, "size": x.shape[0], "none": None}

    found = etgraph.compare(Mixed(), inputs=(torch.ones(3),), recipe="portable", cache=False)
    assert found.within
    notes = {one.note for one in found.stages[-1].outputs}
    assert "no tensor but a int, 3 in the source; compared by equality" in notes
    assert "no tensor but a NoneType, None in the source; compared by equality" in notes


def test_what_went_wrong_once_stays_wrong_against_the_source() -> None:
    """Each stage after it is right against the one before."""

    class Moody(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (1.0 if torch.compiler.is_exporting() else 1.5)

    found = etgraph.compare(Moody(), inputs=(torch.ones(4),), recipe="portable", cache=False)
    assert [stage.within for stage in found.stages] == [True, False, False, False]
    assert [stage.outputs[0].previous.absolute for stage in found.stages[2:]] == [0.0, 0.0]


def test_of_several_samples_the_worst_counts() -> None:
    class Moody(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 1.0 if torch.compiler.is_exporting() else x.clamp(max=2.0)

    samples = [(torch.ones(4),), (torch.full((4,), 5.0),), (torch.ones(4),)]
    found = etgraph.compare(Moody(), inputs=samples, recipe="portable", cache=False)
    assert {stage.outputs[0].source.absolute for stage in found.stages[1:]} == {3.0}


def test_what_is_captured_as_in_evaluation_is_compared_with_evaluation() -> None:
    recipe = etgraph.get_recipe("portable").with_options("torch_export", eval_mode=True)
    assert etgraph.compare(torch.nn.Dropout(0.5), inputs=(torch.ones(64),), recipe=recipe, cache=False).within


def test_noise_is_used_only_where_there_are_no_inputs_and_said() -> None:
    model, inputs, _ = made("conv")
    program = torch.export.export(model, inputs)
    assert etgraph.compare(program, recipe="portable").inputs == "the example inputs"
    program.example_inputs = None
    found = etgraph.compare(program, recipe="portable")
    assert found.inputs == "random numbers, as no inputs were given"
    assert found.within
    assert etgraph.compare(program, inputs=inputs, recipe="portable").inputs == "the inputs given"


def test_calibration_inputs_come_before_noise(calibration: list[Any]) -> None:
    model, inputs, _ = made("conv")
    program = torch.export.export(model, inputs)
    program.example_inputs = None
    found = etgraph.compare(program, recipe="xnnpack_int8", calibration_inputs=calibration, to="prepared")
    assert (found.inputs, found.samples["forward"]) == ("the first 4 calibration inputs", 4)


def test_a_result_compares_the_kinds_that_it_went_through() -> None:
    model, inputs, _ = made("conv")
    result = etgraph.run(model, inputs, recipe=recipe_with(lose_clamp, "portable"))
    found = result.compare()
    assert [stage.kind for stage in found.stages] == ["module", "exported", "edge", "executorch"]
    assert the_suspect(found)[1].node == "aten_hardtanh_default"


def test_two_pte_files_are_compared_by_their_outputs(tmp_path: Any) -> None:
    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable").save(tmp_path / "good.pte")
    etgraph.run(model, inputs, recipe=recipe_with(lose_clamp, "portable")).save(tmp_path / "bad.pte")
    found = etgraph.compare(tmp_path / "good.pte", tmp_path / "bad.pte", inputs)
    assert not found.within
    (suspect,) = found.suspects
    assert suspect.node is None
    assert "shows no values of nodes" in suspect.words
    assert etgraph.compare(model, tmp_path / "good.pte", inputs).within


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda model, x: etgraph.compare(model, (x,)), "Inputs have a name of their own"),
        (lambda model, x: etgraph.compare(model, inputs=(x[:, :2],), example_inputs=(x,)), "fails on these inputs"),
        (lambda model, x: etgraph.compare({"encode": model}, {"decode": model}), "has the methods encode"),
        (lambda model, x: etgraph.compare(model, inputs=x), "a lone tensor"),
    ],
)
def test_wrong_requests_are_refused(call: Any, expected: str) -> None:
    with pytest.raises(etgraph.UsageError, match=expected):
        call(torch.nn.Linear(4, 2), torch.randn(1, 4))


def test_nodes_are_shown_in_branches_too() -> None:
    """The helper that plants faults finds them there."""
    model, inputs, _ = made("branching")
    program = etgraph.run(model, inputs, recipe="portable", to="edge", cache=False).artifact.methods["forward"]
    assert len(nodes_of(program.graph_module, "aten.addmm.default")) == 3


def test_outputs_that_pass_because_they_are_tiny_are_said_to() -> None:
    tiny = torch.nn.Linear(4, 2)
    torch.nn.init.constant_(tiny.weight, 1e-8)
    torch.nn.init.zeros_(tiny.bias)
    recipe = recipe_with(add_one_before("aten.permute_copy.default"), "portable")
    found = etgraph.compare(tiny, inputs=(torch.ones(1, 4),), recipe=recipe, cache=False)
    assert found.within
    assert any("within tolerance only because that is" in note for note in found.notes)
