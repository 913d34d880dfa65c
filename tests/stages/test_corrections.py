"""Faults of upstream's partitioners that would give a wrong program without a word."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import etgraph


class AfterConv(nn.Module):
    def __init__(self, between):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.between = between

    def forward(self, x):
        return F.softmax(self.between(self.conv(x)), -1)


@pytest.mark.parametrize("path", ["combined", "split"])
@pytest.mark.parametrize("between", [nn.Identity(), nn.ReLU(), nn.AvgPool2d(2)], ids=["conv", "relu", "pool"])
def test_softmax_over_the_width_of_a_convolution_is_right_on_xnnpack(between, path):
    """Case A2; upstream computes it over the channels, off by 0.26."""
    torch.manual_seed(0)
    result = etgraph.run(AfterConv(between).eval(), (torch.randn(1, 3, 8, 8),), path=path, cache=False)
    assert result.verify().max_error < 1e-5


def test_softmax_of_attention_is_delegated_as_before():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    class Scores(nn.Module):
        def forward(self, q, k):
            return F.softmax(q @ k.transpose(2, 3), -1)

    inputs = (torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4))
    exported = torch.export.export(Scores(), inputs)
    by_hand = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
    result = etgraph.run(exported, cache=False)
    assert result.artifact.buffer == by_hand
    assert "softmax" not in str(result.artifact.methods["forward"]["operators"])


def test_the_partitioner_that_is_given_is_not_changed():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    from stages.support.corrections import corrected

    given = XnnpackPartitioner()
    before = dict(given.target_partitioner_configs)
    assert corrected(given) is not given
    assert given.target_partitioner_configs == before


class Shared(nn.Module):
    """A value that a layer, an operator that no quantizer annotates, and the caller read."""

    def __init__(self, layer):
        super().__init__()
        self.first = layer()
        self.second = layer()

    def forward(self, x):
        y = torch.relu(self.first(x))
        return y, torch.sigmoid(y), self.second(y)


def convolution():
    return nn.Conv2d(3, 3, 3, padding=1)


def linear():
    return nn.Linear(8, 8)


def share_dequantizes(program):
    """Let the readers of a quantized value share one dequantize, as programs from elsewhere may."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        own = [reader for reader in node.users if "dequantize_per_tensor" in str(reader.target)]
        for other in own[1:]:
            other.replace_all_uses_with(own[0])
            graph.erase_node(other)
    for spec, value in zip(program.graph_signature.output_specs, graph.output_node().args[0], strict=True):
        spec.arg.name = value.name
    program.graph_module.recompile()
    return program


def agrees(result, program, batches, shape):
    """Whether the `.pte` gives what the quantized program gives, at several batch sizes."""
    from executorch.runtime import Runtime

    buffer = result.artifact.buffer
    loaded = Runtime.get().load_program(buffer)
    method = loaded.load_method("forward")
    for batch in batches:
        x = torch.randn(batch, *shape, generator=torch.Generator().manual_seed(batch))
        wanted = [value.detach() for value in program.module()(x)]
        got = [value.clone().detach() for value in method.execute([x])]
        assert [tuple(value.shape) for value in got] == [tuple(value.shape) for value in wanted]
        for one, other in zip(got, wanted, strict=True):
            assert float((one - other).abs().max()) <= 0.03 * float(other.abs().max())


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize(("layer", "shape"), [(convolution, (3, 8, 8)), (linear, (8,))])
def test_a_dequantized_value_with_several_readers_is_right_for_each(layer, shape, shared):
    """Upstream: an output of zeros in the largest shape, and a sigmoid of other pixels."""
    torch.manual_seed(0)
    inputs = (torch.randn(2, *shape),)
    quantized = etgraph.run(
        Shared(layer).eval(), inputs, "xnnpack_int8", "quantized", cache=False,
        dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=8)}},
        calibration_inputs=[(torch.randn(4, *shape),) for _ in range(4)],
    ).artifact  # fmt: skip
    program = quantized["forward"]
    if shared:
        share_dequantizes(program)
        assert any(len(n.users) == 3 for n in program.graph.nodes if "dequantize_per_tensor" in str(n.target))
    result = etgraph.run(quantized, recipe="xnnpack_int8", cache=False)
    agrees(result, program, (1, 2, 8), shape)
    assert result.delegation["forward"]["others"] == 0


class Twice(nn.Module):
    """Gives out a value and copies of it: a dropout is a copy in evaluation mode."""

    def __init__(self, outputs):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout()
        self.register_buffer("count", torch.tensor([5.0]))
        self.outputs = outputs

    def forward(self, x):
        return self.outputs(self, self.linear(x))


@pytest.mark.parametrize("path", ["combined", "split"])
@pytest.mark.parametrize(
    "outputs",
    [
        lambda m, y: (y, m.dropout(y)),
        lambda m, y: (m.dropout(y), m.dropout(y)),
        lambda m, y: (m.dropout(m.dropout(y)), y * 2, m.dropout(y), y),
        lambda m, y: (torch.relu(m.dropout(y)), m.dropout(y), y),
        lambda m, y: (m.count.add_(1).clone(), y + m.count),
    ],
    ids=["beside its copy", "two copies", "a copy of a copy", "read inside too", "a buffer"],
)
def test_a_value_comes_out_of_xnnpack_beside_its_copies(outputs, path):
    """Upstream removes the copies, and fails: "Output node is already in the inputs"."""
    torch.manual_seed(0)
    result = etgraph.run(Twice(outputs).eval(), (torch.randn(1, 4),), path=path, cache=False)
    assert result.verify().max_error < 1e-5
    assert result.delegation["forward"]["backends"]


class Dynamic(nn.Module):
    """A convolution of a value that is read as it is, too."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        z = torch.sigmoid(x)
        return torch.tanh(z), self.conv(z), z


@pytest.mark.parametrize("path", ["combined", "split"])
def test_a_convolution_quantized_as_it_comes_does_not_turn_what_others_read(path):
    """Upstream: outputs of shape (N, H, W, C), or a failure at run time."""
    torch.manual_seed(0)
    result = etgraph.run(
        Dynamic().eval(), (torch.randn(2, 3, 8, 8),), "xnnpack_int8_dynamic", path=path, keep=["quantized"],
        dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=8)}}, cache=False,
    )  # fmt: skip
    agrees(result, result["quantized"]["forward"], (1, 2, 8), (3, 8, 8))
    assert result.delegation["forward"]["backends"][0]["nodes"] == 2


def test_convolutions_that_are_quantized_as_they_come_are_delegated_where_that_is_sound():
    torch.manual_seed(0)
    first, second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x):
            y = torch.relu(self.first(x))
            return y + self.second(y), y

    result = etgraph.run(
        Residual().eval(), (torch.randn(2, 3, 8, 8),), "xnnpack_int8_dynamic", cache=False, keep=["quantized"]
    )
    agrees(result, result["quantized"]["forward"], (2,), (3, 8, 8))
    assert result.delegation["forward"]["others"] == 0


@pytest.mark.parametrize("path", ["combined", "split"])
def test_layers_of_which_only_the_weight_is_quantized_are_not_multiplied_with_stored_integers(path):
    """Upstream's own recipe types with a weight-only configuration: off by a factor of thousands."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.export import AOQuantizationConfig, ExportRecipe, LoweringRecipe, QuantizationRecipe
    from torchao.quantization import IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerGroup

    config = IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(16))
    recipe = ExportRecipe(
        "weights",
        quantization_recipe=QuantizationRecipe(ao_quantization_configs=[AOQuantizationConfig(config)]),
        lowering_recipe=LoweringRecipe(partitioners=[XnnpackPartitioner()]),
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8, bias=False)).eval()
    result = etgraph.run(model, (torch.randn(3, 64),), recipe, cache=False, path=path)
    assert result.verify().min_snr > 15


@pytest.mark.parametrize("recipe", ["coreml_fp16", "ios-arm64-coreml-fp16"])
@pytest.mark.parametrize(
    "bounded", [nn.Hardtanh(), nn.ReLU6(), lambda x: F.hardtanh(x, 0, 6), lambda x: x.clamp(-1, 2)],
    ids=["defaults", "relu6", "whole numbers", "clamp"],
)  # fmt: skip
def test_bounds_are_written_as_coremltools_wants_them(recipe, bounded):
    """Upstream's own recipe as it is, and the target: upstream fails on defaults and on whole numbers."""

    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return bounded(self.linear(x))

    given = {"target": recipe} if recipe.startswith("ios") else {"recipe": recipe}
    result = etgraph.run(Bounded().eval(), (torch.randn(2, 4),), to="lowered", cache=False, **given)
    assert result.delegation["forward"]["others"] == 0
    assert [backend["name"] for backend in result.delegation["forward"]["backends"]] == ["CoreMLBackend"]
