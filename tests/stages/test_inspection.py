"""Programs as plain data: what is said about them is so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

import etgraph
from etgraph.registry import registry


def inspected(artifact: etgraph.Artifact, **options: Any) -> dict[str, Any]:
    """Call the service, and see that JSON can hold what it says."""
    about: dict[str, Any] = registry.service("inspect")(artifact, **options)
    json.dumps(about, allow_nan=False)
    return about


def at(kind: str, source: Any, *arguments: Any, recipe: str = "xnnpack_fp32") -> etgraph.Artifact:
    return etgraph.run(source, *arguments, recipe=recipe, to=kind, cache=False).artifact


class Counting(torch.nn.Module):
    """Updates a buffer and an input, takes a keyword and returns a nested output with a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> Any:
        self.count.add_(1)
        x.mul_(2)
        return self.linear(x) * scale, (x.sum(), 3)


@pytest.fixture(scope="module")
def counting() -> etgraph.Source:
    batch = torch.export.Dim("batch", min=2, max=8)
    inputs = etgraph.Inputs(torch.randn(3, 4), scale=torch.ones(3, 4))
    return etgraph.Source(Counting().eval(), inputs, {"x": {0: batch}, "scale": {0: batch}})


@pytest.mark.parametrize("kind", ["exported", "edge", "lowered"])
def test_inputs_outputs_symbols_and_mutations(counting: etgraph.Source, kind: str) -> None:
    about = inspected(at(kind, counting))
    method = about["methods"]["forward"]
    assert about["kind"] == kind
    assert [(i["name"], i["dtype"], i["mutated"]) for i in method["inputs"]] == [
        ("x", "float32", True),
        ("scale", "float32", False),
    ]
    (symbol,) = method["symbols"]
    assert method["inputs"][0]["shape"] == [symbol, 4]
    assert method["symbols"][symbol] == [2, 8]
    assert method["mutated_buffers"] == ["count"]
    outputs = [o for o in method["outputs"] if o["role"] == "output"]
    assert [o["type"] for o in outputs] == ["tensor", "tensor", "int"]
    assert outputs[2]["value"] == 3
    if kind != "exported":
        assert [o["role"] for o in method["outputs"]].count("mutated input x") == 1


def test_module_by_its_parameters_layers_and_inputs(counting: etgraph.Source) -> None:
    about = inspected(at("module", counting))
    method = about["methods"]["forward"]
    assert [(i["name"], i["optional"]) for i in method["inputs"]] == [("x", False), ("scale", False)]
    assert method["layers"] == {"Linear": 1}
    assert method["training"] is False
    assert about["example_inputs"]["forward"][0]["kwargs"] == {"scale": "float32[3, 4]"}
    assert "Counting" in about["recognised_by"]


def test_weights_are_counted_once_where_they_are_shared() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(10, 8)
            self.head = torch.nn.Linear(8, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(ids))

    weights = inspected(at("exported", Tied(), (torch.tensor([1, 2]),)))["weights"]
    assert weights["bytes"] == 10 * 8 * 4
    assert weights["count"] == 2
    assert weights["largest"][0]["shape"] == [10, 8]


def test_only_the_ten_largest_weights_are_listed_largest_first() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(n, n + 1) for n in range(1, 9)))
    weights = inspected(at("module", model, (torch.randn(1, 1),)))["weights"]
    sizes = [one["bytes"] for one in weights["largest"]]
    assert (weights["count"], len(sizes)) == (16, 10)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 9 * 8 * 4


def test_delegates_with_backend_nodes_and_bytes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU())
    method = inspected(at("lowered", model, (torch.randn(1, 16),)))["methods"]["forward"]
    (delegate,) = method["delegates"]
    assert delegate["backend"] == "XnnpackBackend"
    assert delegate["operators"] == {"aten.linear.default": 1, "aten.relu.default": 1}
    assert delegate["nodes"] == 2
    assert method["nodes"] == {"delegated": 2, "others": 0}
    assert delegate["bytes"] > (16 * 32 + 32) * 4
    assert delegate["bytes"] < 2 * (16 * 32 + 32) * 4


def test_operators_inside_branches_are_counted() -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    operators = inspected(at("exported", Branching(), (torch.ones(3),)), graph=True)["methods"]["forward"]["operators"]
    assert operators["aten.sin.default"] == operators["aten.cos.default"] == operators["cond"] == 1


def test_graph_names_operator_shape_and_source_line() -> None:
    class Doubling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) * 2

    lines = inspected(at("edge", Doubling(), (torch.ones(3),)), graph=True)["methods"]["forward"]["graph"]
    (line,) = [line for line in lines if "aten.relu.default" in line]
    assert ": float32[3] = aten.relu.default(x)" in line
    assert "return torch.relu(x) * 2" in line
    assert lines[-1].startswith("output")


def test_methods_constants_and_configuration_belong_to_it() -> None:
    class Two(torch.nn.Module):
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.hardswish(x)

        def decode(self, x: torch.Tensor) -> torch.Tensor:
            return x - 1

    inputs = {"encode": (torch.ones(2),), "decode": (torch.ones(2),)}
    model = etgraph.Source(Two(), inputs, constant_methods={"vocabulary": 32, "table": torch.ones(2)})
    about = inspected(at("edge", model))
    assert list(about["methods"]) == ["encode", "decode"]
    assert about["constant_methods"] == {"vocabulary": 32, "table": "float32[2]"}
    assert about["compile_config"]["skip_dim_order"] in (True, False)
    assert [step["stage"] for step in about["provenance"]] == ["torch_export", "to_edge"]
    assert about["quantized"] is False


def test_quantized_program_is_said_to_be_quantized_also_when_delegated() -> None:
    """The q/dq operators of a fully delegated program are inside its delegates only."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = (torch.randn(2, 8),)
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(8, 8)), inputs)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(program.module(), quantizer)
    prepared(*inputs)
    quantized = torch.export.export(convert_pt2e(prepared), inputs)
    for kind in ("quantized", "edge", "lowered"):
        about = inspected(at(kind, quantized))
        assert about["quantized"] is True, kind
        if kind != "lowered":
            assert "with quantize and dequantize operators" in about["recognised_by"]


def test_emitted_program_with_what_the_host_needs() -> None:
    about = inspected(
        at("executorch", torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), (torch.ones(1, 4),))
    )
    method = about["methods"]["forward"]
    assert method["backends"] == ["XnnpackBackend"]
    assert (method["inputs"][0]["dtype"], method["inputs"][0]["shape"]) == ("float32", [1, 4])
    assert about["size"]["program"] > 0
    assert about["host"] == {"runtime": True, "missing_backends": [], "missing_operators": []}


def test_what_this_host_lacks_is_named() -> None:
    artifact = at("executorch", torch.nn.ReLU(), (torch.ones(4),), recipe="portable")
    forward = {**artifact.methods["forward"], "backends": ["MoonBackend"], "operators": ["aten::relu.out", "moon::op"]}
    host = inspected(replace(artifact, methods={"forward": forward}))["host"]
    assert host == {"runtime": True, "missing_backends": ["MoonBackend"], "missing_operators": ["moon::op"]}


def test_fingerprint_is_the_artifacts_and_inspection_does_not_change_it() -> None:
    artifact = at("edge", torch.nn.Linear(4, 4), (torch.ones(1, 4),))
    before = artifact.fingerprint
    assert inspected(artifact, graph=True)["fingerprint"] == before
    assert inspected(artifact)["no_fingerprint"] is None
    assert replace(artifact).fingerprint == before


def test_what_has_no_fingerprint_says_why() -> None:
    class Odd(torch.nn.Module):
        pass

    about = inspected(at("module", Odd(), (torch.ones(1),)))
    assert (about["fingerprint"] is None) == bool(about["no_fingerprint"])


@pytest.fixture(scope="module")
def quantized() -> etgraph.Artifact:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    inputs = (torch.randn(2, 4),)
    return etgraph.run(model, inputs, "xnnpack_int8", to="quantized", calibration_inputs=[inputs], cache=False).artifact


@pytest.mark.parametrize("kind", ["quantized", "edge", "lowered"])
def test_quantized_share_counts_operators_and_weights_also_inside_of_delegates(
    quantized: etgraph.Artifact, kind: str
) -> None:
    about = inspected(at(kind, quantized))
    share = about["methods"]["forward"]["quantization"]
    assert share == {"operators": 3, "quantized": 3}
    assert about["weights"]["quantized_numbers"] == 4 * 8 + 8 * 2
    plain = inspected(at("edge", torch.nn.Linear(4, 4), (torch.ones(1, 4),)))
    assert plain["methods"]["forward"]["quantization"] == {"operators": 1, "quantized": 0}
    assert plain["weights"]["quantized_numbers"] == 0


def test_weights_in_delegates_are_listed_with_their_backend() -> None:
    lowered = at("lowered", torch.nn.Sequential(torch.nn.Linear(16, 32)), (torch.randn(1, 16),))
    largest = inspected(lowered)["weights"]["largest"][0]
    assert (largest["name"], largest["shape"], largest["place"]) == ("0.weight", [32, 16], "XnnpackBackend")


def test_inputs_of_a_module_are_typed_by_its_example(counting: etgraph.Source) -> None:
    about = inspected(at("module", counting))
    first = about["methods"]["forward"]["inputs"][0]
    assert (first["name"], first["dtype"], first["shape"]) == ("x", "float32", [3, 4])
    assert about["dynamic_shapes"]["forward"] == "{x: {0: batch from 2 to 8}, scale: {0: batch from 2 to 8}}"
    bare = inspected(etgraph.run(Counting(), to="module", cache=False).artifact)
    assert "dtype" not in bare["methods"]["forward"]["inputs"][0]
    assert bare["example_inputs"] == {}


def test_emitted_program_with_counts_delegates_constants_sizes_and_instructions() -> None:
    class Means(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> Any:
            return torch.cumsum(torch.cumsum(self.linear(x), 0), 0), 7

    artifact = at("executorch", etgraph.Source(Means(), (torch.ones(1, 4),), constant_methods={"width": 4}))
    about = inspected(artifact, graph=True)
    method = about["methods"]["forward"]
    assert method["operators"] == {"aten::cumsum.out": 2}
    (delegate,) = method["delegates"]
    assert (delegate["backend"], delegate["nodes"]) == ("XnnpackBackend", None)
    assert about["size"]["sections"]["delegates"] == delegate["bytes"] > 0
    assert about["size"]["sections"]["the whole file"] == artifact.nbytes
    assert any("aten::cumsum.out(" in line for line in method["graph"])
    assert any(line.startswith("0: XnnpackBackend#0(") for line in method["graph"])
    assert method["outputs"][1]["value"] == "7"
    assert method["delegation"]["others"] == 2
    assert about["notes"] == []
    assert about["weights"]["largest"][0]["bytes"] == 4 * 4 * 4


def test_a_bare_pte_says_what_it_does_not_hold(tmp_path: Any) -> None:
    source = etgraph.Source(torch.nn.Linear(4, 4), (torch.ones(1, 4),), constant_methods={"width": 4})
    at("executorch", source).save(tmp_path / "m.pte")
    about = inspected(etgraph.load(tmp_path / "m.pte"))
    assert any("no debug information" in note for note in about["notes"])
    assert any("inside of its delegates" in note for note in about["notes"])
    assert about["methods"]["width"]["constant"] is True
    assert about["methods"]["width"]["outputs"][0]["value"] == "4"
    assert about["methods"]["forward"]["constant"] is False


def test_an_eager_module_says_that_it_has_no_graph_and_no_fingerprint_of_its_own() -> None:
    about = inspected(at("module", torch.nn.ReLU(), (torch.ones(1),)), graph=True)
    assert any("no graph before it is exported" in note for note in about["notes"])
    assert about["fingerprint"] is None
    assert "exported" in about["no_fingerprint"]
