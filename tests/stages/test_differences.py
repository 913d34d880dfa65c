"""`etgraph.diff`: each planted change is named, of every kind, and equal programs are equal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from models import made
from torch import nn

import etgraph

INPUTS = (torch.ones(2, 4),)


@pytest.fixture(autouse=True)
def one_cache(own_cache, tmp_path_factory, monkeypatch):
    """One cache for all tests of this file, which look at the same few programs."""
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache_of_differences"))


class Net(nn.Module):
    """A network in which one thing at a time is changed."""

    def __init__(self, low=-1.5, sine=True, width=4):
        super().__init__()
        torch.manual_seed(0)
        self.low = low
        self.sine = sine
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, width)

    def forward(self, x):
        x = torch.clamp(self.first(x), self.low, 2.0)
        return self.last(torch.sin(x) if self.sine else torch.cos(x))


def at(kind, model=None, inputs=INPUTS, recipe="xnnpack_fp32", **rest):
    return etgraph.run(model or Net(), inputs, recipe, to=kind, **rest).artifact


def changes(a, b, topic):
    """Return what changed of one topic, and see that JSON and words hold it."""
    found = etgraph.diff(a, b)
    json.dumps(found.to_json(), allow_nan=False)
    assert max(map(len, str(found).splitlines())) <= 160
    return [(one.what, one.before, one.after) for one in found.about(topic)]


@pytest.mark.parametrize("kind", ["exported", "edge", "lowered", "executorch"])
def test_equal_programs_are_equal(kind):
    found = etgraph.diff(at(kind, cache=False), at(kind, cache=False))
    assert found.same
    assert found.a.fingerprint == found.b.fingerprint != ""
    assert "are equal" in str(found)


def test_an_argument_that_only_one_of_them_gives_is_named():
    class Clamp(nn.Module):
        def __init__(self, *bounds):
            super().__init__()
            self.bounds = bounds

        def forward(self, x):
            return torch.clamp(x, *self.bounds)

    low, both = at("exported", Clamp(-1.0)), at("exported", Clamp(-1.0, 2.0))
    assert changes(low, both, "arguments") == [("aten.clamp.default max", "its default", "2.0")]
    assert changes(both, low, "arguments") == [("aten.clamp.default max", "2.0", "its default")]


def test_what_operators_give_is_compared():
    found = changes(at("exported"), at("exported", inputs=(torch.ones(3, 4),)), "values")
    assert ("aten.clamp.default", "float32[2, 4]", "float32[3, 4]") in found


@pytest.mark.parametrize("kind", ["exported", "edge", "lowered"])
def test_a_changed_clamp_is_named_with_its_line_also_inside_of_a_delegate(kind):
    found = etgraph.diff(at(kind), at(kind, Net(low=-1.0)))
    (change,) = found.about("arguments")
    assert (change.what, change.before, change.after) == ("aten.clamp.default min", "-1.5", "-1.0")
    assert "test_differences.py:" in change.detail
    assert "torch.clamp(self.first(x), self.low, 2.0)" in change.detail
    assert {one.topic for one in found.changes} == {"arguments"}


def test_a_changed_clamp_in_a_pte_is_a_constant_or_the_blob_of_its_delegate():
    portable = changes(at("executorch", recipe="portable"), at("executorch", Net(-1.0), recipe="portable"), "arguments")
    assert portable == [("aten::clamp.out 1", "-1.5", "-1.0")]
    found = etgraph.diff(at("executorch"), at("executorch", Net(low=-1.0)))
    (change,) = found.changes
    assert (change.topic, change.what) == ("delegation", "delegate 0 of XnnpackBackend")


@pytest.mark.parametrize("kind", ["exported", "edge", "lowered"])
def test_operators_added_and_gone_are_counted(kind):
    found = changes(at(kind), at(kind, Net(sine=False)), "operators")
    assert found == [("aten.cos.default", None, 1), ("aten.sin.default", 1, None)]


class Crossed(nn.Module):
    """Two operators whose results can be crossed, on the way or at the end."""

    def __init__(self, inside=False, outside=False):
        super().__init__()
        self.inside = inside
        self.outside = outside

    def forward(self, x):
        a, b = torch.sin(x), torch.cos(x)
        c = (b - a) if self.inside else (a - b)
        return (b, a, c) if self.outside else (a, b, c)


@pytest.mark.parametrize("kind", ["exported", "edge"])
def test_swapped_outputs_and_crossed_operands_are_named(kind):
    straight = at(kind, Crossed())
    outputs = changes(straight, at(kind, Crossed(outside=True)), "outputs")
    assert outputs == [
        ("output 0 comes from", "aten.sin.default #0", "aten.cos.default #1"),
        ("output 1 comes from", "aten.cos.default #1", "aten.sin.default #0"),
    ]
    found = changes(straight, at(kind, Crossed(inside=True)), "arguments")
    crossed = "aten.cos.default #1, aten.sin.default #0"
    assert found == [("aten.sub.Tensor takes", "aten.sin.default #0, aten.cos.default #1", crossed)]


def test_another_number_of_delegates_is_named():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    def lowered(**options):
        recipe = etgraph.Recipe("x", {"to_backend": {"partitioners": [XnnpackPartitioner(**options)]}})
        return at("lowered", recipe=recipe)

    found = changes(lowered(), lowered(per_op_mode=True), "delegation")
    assert ("delegates of XnnpackBackend", 1, 4) in found


def test_operators_that_moved_into_a_delegate_are_named():
    found = changes(at("edge"), at("lowered"), "delegation")
    assert ("aten.clamp.default", "1 in portable kernels", "1 in XnnpackBackend") in found
    back = changes(at("lowered"), at("edge"), "delegation")
    assert ("aten.clamp.default", "1 in XnnpackBackend", "1 in portable kernels") in back


@pytest.mark.parametrize("kind", ["module", "exported", "edge", "lowered"])
def test_weights_are_compared_by_name(kind):
    def moved(by):
        model = Net()
        with torch.no_grad():
            model.first.weight[1, 2] += by
        return at(kind, model)

    (change,) = etgraph.diff(moved(0.0), moved(0.25)).about("weights")
    assert change.what == "first.weight"
    assert change.detail == "1 of 16 numbers, by at most 0.25"


def test_of_several_numbers_that_moved_the_furthest_is_told():
    model = Net()
    with torch.no_grad():
        model.first.weight[0] += torch.tensor([0.25, -1.5, 0.5, 0.0])
    (change,) = etgraph.diff(at("exported"), at("exported", model)).about("weights")
    assert change.detail == "3 of 16 numbers, by at most 1.5"


def test_weights_of_another_shape_are_told_apart_from_other_numbers():
    found = changes(at("exported"), at("exported", Net(width=3)), "weights")
    assert found == [
        ("last.weight", "float32[4, 4]", "float32[3, 4]"),
        ("last.bias", "float32[4]", "float32[3]"),
    ]


def test_a_nan_is_equal_to_itself_and_to_nothing_else():
    def with_bias(*values):
        model = Net()
        with torch.no_grad():
            model.last.bias[: len(values)] = torch.tensor(values)
        return at("exported", model)

    nan = float("nan")
    assert etgraph.diff(with_bias(nan), with_bias(nan)).same
    (change,) = etgraph.diff(with_bias(nan, 1.0), with_bias(nan, 1.5)).about("weights")
    assert change.detail == "1 of 4 numbers, by at most 0.5"
    (change,) = etgraph.diff(with_bias(nan), with_bias(1.0)).about("weights")
    assert change.detail == "1 of 4 numbers, by at most nan"


def test_weights_of_a_pte_are_compared_by_content():
    model = Net()
    with torch.no_grad():
        model.first.weight[1, 2] += 1
    found = changes(at("executorch", recipe="portable"), at("executorch", model, recipe="portable"), "weights")
    ((what, _, _),) = found
    assert what.endswith("float32[4, 4]")


def test_another_size_of_the_planned_memory_is_named():
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    def with_inputs_planned(planned):
        config = ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(alloc_graph_input=planned, alloc_graph_output=planned)
        )
        recipe = etgraph.get_recipe("portable").with_options("to_executorch", backend_config=config)
        return at("executorch", recipe=recipe)

    found = changes(with_inputs_planned(True), with_inputs_planned(False), "memory")
    assert [what for what, _, _ in found if what == "bytes of the planned memory"], found


class Adder(BackendDetails):
    """A backend that compiles nothing, and is told how fast it is to be."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(processed_bytes=b"adds")


class TakingSums(Partitioner):
    def __init__(self, speed):
        super().__init__()
        self.told = DelegationSpec(Adder.__name__, [CompileSpec("speed", speed)])

    def partition(self, exported_program):
        for node in exported_program.graph.nodes:
            if "aten.add" in str(node.target):
                node.meta["delegation_tag"] = "sums"
        return PartitionResult(tagged_exported_program=exported_program, partition_tags={"sums": self.told})


class Sum(nn.Module):
    def forward(self, x):
        return x + x


@pytest.mark.parametrize("kind", ["lowered", "executorch"])
def test_what_a_delegate_was_told_is_compared(kind):
    def told(speed):
        given = {"partitioners": [TakingSums(speed)]}
        recipe = etgraph.get_recipe("xnnpack_fp32").with_options("to_edge_transform_and_lower", **given)
        return at(kind, Sum(), recipe=recipe, path="combined")

    assert etgraph.diff(told(b"low"), told(b"low")).same
    ((what, before, after),) = changes(told(b"low"), told(b"high"), "options")
    assert what == "compile specs of delegate 0 of Adder"
    assert (b"low".hex() in before, b"high".hex() in after) == (True, True)


@pytest.mark.parametrize("kind", ["exported", "edge", "executorch"])
def test_inputs_outputs_and_ranges_are_compared(kind):
    wide = (torch.randn(3, 4),)
    inputs = changes(at(kind, recipe="portable"), at(kind, inputs=wide, recipe="portable"), "inputs")
    assert [(a.rpartition(" ")[0], b.rpartition(" ")[0]) for _, a, b in inputs] != []
    assert "[2, 4]" in inputs[0][1]
    assert "[3, 4]" in inputs[0][2]
    outputs = changes(at(kind, recipe="portable"), at(kind, inputs=wide, recipe="portable"), "outputs")
    assert outputs == [("output 0", "float32[2, 4]", "float32[3, 4]")]


def test_ranges_of_sizes_are_compared():
    def ranging(limit):
        return at("exported", dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=limit)}})

    (found,) = changes(ranging(8), ranging(16), "inputs")
    assert found[0] == "ranges of sizes"
    assert found[1].endswith("from 1 to 8")
    assert found[2].endswith("from 1 to 16")


def test_options_that_a_program_was_made_with_are_compared():
    edge = at("edge")
    other = replace(edge, compile_config=replace(edge.compile_config, preserve_ops=("aten.hardswish.default",)))
    found = changes(edge, other, "options")
    assert ("EdgeCompileConfig preserve_ops", "none", "aten.hardswish.default") in found


def test_options_of_the_steps_that_led_to_a_program_are_compared():
    strict = etgraph.get_recipe("portable").with_options("torch_export", strict=True)
    found = changes(at("exported"), at("exported", Net(sine=False), recipe=strict), "options")
    assert [(what, "strict=True" in before, "strict=True" in after) for what, before, after in found] == [
        ("options of torch_export", False, True)
    ]


def test_buffers_that_only_one_updates_are_named():
    class Counting(nn.Module):
        def __init__(self, counts):
            super().__init__()
            self.counts = counts
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            if self.counts:
                self.seen.add_(1.0)
            return x + self.seen

    found = changes(at("edge", Counting(False)), at("edge", Counting(True)), "inputs")
    assert ("buffers that it updates", "none", "seen") in found


def test_constant_methods_are_compared_tensors_by_their_numbers():
    def with_constants(**given):
        return at("exported", constant_methods=given)

    a, b = with_constants(width=4, table=torch.ones(2)), with_constants(width=5, table=torch.zeros(2))
    found = changes(a, b, "options")
    assert ("constant method width", "4", "5") in found
    assert any(what == "constant method table" for what, _, _ in found)


def test_methods_that_only_one_has_are_named():
    model, inputs, rest = made("methods")
    both = etgraph.run(model, inputs, "portable", to="edge", **rest).artifact
    one = replace(both, methods={"encode": both.methods["encode"]})
    assert changes(both, one, "methods") == [("decode", "", None)]


@pytest.mark.parametrize(("a", "b"), [("module", "exported"), ("exported", "edge"), ("lowered", "executorch")])
def test_programs_of_different_kinds_differ_and_say_so_first(a, b):
    found = etgraph.diff(at(a), at(b))
    assert found.changes[0].topic == "kind"
    assert (found.changes[0].before, found.changes[0].after) == (a, b)
    assert not found.about("weights")


def test_two_pte_with_other_bytes_and_equal_meaning_say_where():
    a = at("executorch", recipe="portable")
    data = bytearray(a.buffer)
    position = _padding(data)
    data[position] ^= 1
    found = etgraph.diff(a, replace(a, pieces=(bytes(data),)))
    (change,) = found.changes
    assert change.topic == "bytes"
    assert change.after == "1 bytes differ"
    assert f"first at byte {position:,}" in change.detail


def _padding(data):
    """Return the place of a byte between the program and its first segment, which nothing reads."""
    from executorch.exir._serialize._program import _get_extended_header

    header = _get_extended_header(bytes(data))
    assert header.program_size < header.segment_base_offset
    return header.segment_base_offset - 1


def test_modules_are_compared_by_their_code():
    class Other(Net):
        def forward(self, x):
            return self.last(self.first(x))

    assert etgraph.diff(at("module"), at("module")).same
    assert changes(at("module"), at("module", Other()), "code")
    (found,) = changes(at("module"), at("module", Net(low=-1.0)), "code")
    assert found[0].endswith(".low")
    assert found[1:] == ("-1.5", "-1.0")


def test_versions_that_two_files_were_written_with_are_compared(tmp_path, monkeypatch):
    from stages.codec import artifacts

    at("edge").save(tmp_path / "new.edge.etg")
    monkeypatch.setattr(artifacts, "_versions", lambda: {"torch": "1.0"})
    at("edge", Net(low=-1.0)).save(tmp_path / "old.edge.etg")
    found = etgraph.diff(tmp_path / "old.edge.etg", tmp_path / "new.edge.etg")
    assert found.a.name.endswith("old.edge.etg")
    assert ("torch", "1.0", torch.__version__.partition("+")[0]) in [
        (one.what, one.before, (one.after or "").partition("+")[0]) for one in found.about("versions")
    ]


def test_a_fingerprint_that_differs_is_never_called_equal(monkeypatch):
    """Should something enter the fingerprint that is not compared, the two still differ."""
    from etgraph.registry import registry

    monkeypatch.setitem(registry.services, "differences", lambda a, b: ([], []))
    found = etgraph.diff(at("edge"), at("edge", Net(low=-1.0)))
    assert [change.what for change in found.changes] == ["fingerprint"]
