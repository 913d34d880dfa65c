"""Which kind a thing is, and what is said of things that are none."""

import pytest
import torch
from models import ConvNet, made

import etgraph
from etgraph.errors import UsageError


@pytest.fixture(scope="module")
def kinds():
    model, inputs, _ = made("conv")
    run = etgraph.run(model, inputs, path="split", cache=False, keep=["exported", "edge", "lowered"])
    return {"module": model, **{kind: run[kind] for kind in ("exported", "edge", "lowered", "executorch")}}


def test_every_kind_is_recognised_from_its_object(kinds):
    from executorch.exir import EdgeProgramManager, to_edge

    exported = kinds["exported"].methods["forward"]
    assert exported.dialect == "TRAINING"
    assert etgraph.detect(kinds["module"]) == "module"
    assert etgraph.detect(exported) == "exported"
    assert etgraph.detect(exported.run_decompositions()) == "exported"
    assert etgraph.detect(kinds["edge"].methods["forward"]) == "edge"
    assert etgraph.detect(kinds["lowered"].methods["forward"]) == "lowered"
    manager = to_edge(exported)
    assert isinstance(manager, EdgeProgramManager)
    assert etgraph.detect(manager) == "edge"
    assert etgraph.detect(manager.to_executorch()) == "executorch"
    for kind, artifact in kinds.items():
        assert etgraph.detect(artifact) == kind


def test_a_kind_compares_equal_to_its_name(kinds):
    assert kinds["edge"].kind == "edge"
    assert kinds["edge"].kind != "lowered"


def test_an_exported_graph_module_is_a_module(kinds):
    assert etgraph.detect(kinds["exported"].methods["forward"].module()) == "module"


def test_a_mapping_of_methods_is_one_program(kinds):
    exported = kinds["exported"].methods["forward"]
    assert etgraph.detect({"encode": exported, "decode": exported}) == "exported"
    assert etgraph.detect({"a": ConvNet(), "b": ConvNet()}) == "module"
    assert etgraph.detect({"a": ConvNet().forward}) == "module"


def test_methods_at_different_kinds_are_refused_naming_both(kinds):
    mixed = {"encode": kinds["exported"].methods["forward"], "decode": kinds["edge"].methods["forward"]}
    with pytest.raises(UsageError, match="'encode' is exported, 'decode' is edge"):
        etgraph.detect(mixed)


def test_a_program_that_to_executorch_rewrote_is_refused_with_the_cure(kinds):
    """Case B3."""
    from executorch.exir import to_edge

    manager = to_edge(kinds["exported"].methods["forward"])
    manager.to_executorch()
    with pytest.raises(UsageError, match="rewritten by to_executorch") as caught:
        etgraph.detect(manager.exported_program())
    assert "Keep a copy" in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (3, "builtins.int is not a program"),
        ([], "builtins.list is not a program"),
        ({}, "an empty mapping is not a program"),
        (ConvNet, "the class of a module"),
        ({"x": 3}, "a mapping of {'x': int}"),
        ({1: ConvNet()}, "cannot be a method name"),
        ({"not a name": ConvNet()}, "cannot be a method name"),
    ],
)
def test_a_wrong_type_is_told_what_is_accepted(wrong, words):
    with pytest.raises(UsageError, match=words) as caught:
        etgraph.detect(wrong)
    assert caught.value.hint


def test_a_state_dict_is_told_apart():
    with pytest.raises(UsageError, match="this is a state dict"):
        etgraph.detect(ConvNet().state_dict())


def test_torchscript_is_told_apart():
    with pytest.warns(DeprecationWarning, match="jit"):
        scripted = torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2))
    with pytest.raises(UsageError, match="TorchScript"):
        etgraph.detect(scripted)


def test_the_config_that_an_edge_program_was_made_with_is_read_from_it(kinds):
    """Case B2: preserved operators and the dim order hold when it is lowered."""
    from executorch.exir import EdgeCompileConfig, to_edge

    class Swish(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.hardswish(x)

    exported = torch.export.export(Swish(), (torch.randn(2, 3),))
    config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.hardswish.default], _skip_dim_order=True)
    program = to_edge(exported, compile_config=config).exported_program()
    recognised = etgraph.run(program, to="edge", recipe="portable", cache=False).artifact
    assert recognised.compile_config.preserve_ops == ("aten.hardswish.default",)
    assert recognised.compile_config.skip_dim_order
    lowered = etgraph.run(program, to="lowered", cache=False).artifact
    assert lowered.compile_config.skip_dim_order
    assert lowered.compile_config.preserve_ops == ("aten.hardswish.default",)
    with pytest.warns(etgraph.EtgraphWarning, match=r"needs the kernel aten::hardswish.out.*in forward"):
        result = etgraph.run(program, recipe="portable", cache=False)
    assert "hardswish" in str(result.artifact.methods["forward"]["operators"])


def test_a_quantized_program_is_recognised_in_and_outside_of_delegates():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    model, inputs, _ = made("conv")
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
    assert etgraph.detect(prepared) == "prepared"
    prepared(*inputs)
    quantized = torch.export.export(convert_pt2e(prepared), inputs)
    assert etgraph.detect(quantized) == "quantized"
    lowered = etgraph.run(quantized, to="lowered", cache=False).artifact
    again = etgraph.sources.recognised(dict(lowered.methods))
    assert "quantized" in again.passed


def test_provenance_and_inputs_come_with_an_exported_program(kinds):
    exported = kinds["exported"].methods["forward"]
    assert etgraph.run(exported, to="exported", cache=False).artifact.example_inputs["forward"][0].args[0].shape == (
        1,
        3,
        10,
        10,
    )
