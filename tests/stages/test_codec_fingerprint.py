"""Fingerprints: the same for the same program everywhere, another for any change that matters."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest
import torch
from codec_models import exported
from codec_support import ROOT, from_exported, load, save
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from etgraph.artifact import Edge, EdgeConfig, Exported, Inputs, Provenance
from stages.codec import encode, fingerprint, fingerprint_of_document


def of(program, **more):
    return fingerprint(Exported(methods={"forward": program}, **more))


def fresh():
    """The same program, exported anew with weights of its own."""
    return exported("tied")


CHANGES = {
    "a weight element": lambda p: p.state_dict["embed.weight"].data[3, 1].add_(1e-6),
    "requires_grad": lambda p: p.state_dict["embed.weight"].requires_grad_(False),
    "dtype": lambda p: p.state_dict.update({"transposed": p.state_dict["transposed"].double()}),
    "stride": lambda p: p.state_dict.update({"transposed": p.state_dict["transposed"].contiguous()}),
    "a tie": lambda p: p.state_dict.update({"out.weight": nn.Parameter(p.state_dict["out.weight"].detach().clone())}),
    "an expanded view": lambda p: p.state_dict.update({"expanded": p.state_dict["expanded"].contiguous()}),
    "an argument": lambda p: call(p, "mul").__setattr__("args", (call(p, "mul").args[0], 3)),
    "an operator": lambda p: call(p, "mul").__setattr__("target", torch.ops.aten.add.Tensor),
    "keyword for position": lambda p: (
        call(p, "mul").__setattr__("args", call(p, "mul").args[:1])
        or call(p, "mul").__setattr__("kwargs", {"other": 2})
    ),
    "a value's shape": lambda p: call(p, "mul").meta.update(val=call(p, "embedding").meta["val"]),
    "metadata that lowering reads": lambda p: call(p, "mul").meta.update(delegation_tag="t"),
    "a debug handle": lambda p: call(p, "mul").meta.update(debug_handle=77),
    "the module stack": lambda p: call(p, "mul").meta.update(nn_module_stack={"L": ("x", "y")}),
    "the signature": lambda p: setattr(p.graph_signature.input_specs[2], "persistent", False),
    "example inputs": lambda p: p.example_inputs[0][0].add_(1),
    "the order of users": lambda p: reverse_users(p),
}


def call(program, name):
    return next(n for n in program.graph.nodes if n.op == "call_function" and name in str(n.target))


def reverse_users(program):
    node = call(program, "mul")
    busy = next(n for n in program.graph.nodes if len(n.users) > 1 or n is node)
    if len(busy.users) > 1:
        busy.users = dict(reversed(busy.users.items()))
    else:
        busy.meta["custom"] = {"order": 1}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_that_matters_changes_it(change):
    """Each single change gives another fingerprint."""
    program = fresh()
    before = of(program)
    CHANGES[change](program)
    assert of(program) != before


def test_the_grouping_by_ancestor_enters_and_its_ids_do_not():
    """Debug handles follow from which nodes share their greatest ancestor, and delegates hold them."""
    program = exported("tied").run_decompositions()
    plain = of(program)
    one, other = (n for n in program.graph.nodes if n.meta.get("from_node")), call(program, "mul")
    other.meta["from_node"] = next(n for n in one if n is not other).meta["from_node"]
    assert of(program) != plain


def test_what_belongs_to_the_artifact_enters():
    """Example inputs, dynamic shapes, constant methods and the compile config are part of it; provenance is not."""
    program = fresh()
    plain = of(program)
    assert of(program, example_inputs={"forward": (Inputs(torch.tensor([1, 2])),)}) != plain
    assert of(program, dynamic_shapes={"forward": {"i": {0: torch.export.Dim("n", max=4)}}}) != plain
    assert of(program, constant_methods={"size": 3}) != of(program, constant_methods={"size": 4}) != plain
    assert of(program, provenance=(Provenance("x", "exported"),)) == plain
    configs = [EdgeConfig(), EdgeConfig(skip_dim_order=True), EdgeConfig(preserve_ops=("aten.linear.default",))]
    edges = {fingerprint(Edge(methods={"forward": program}, compile_config=config)) for config in configs}
    assert len(edges) == 3
    assert len({plain, fingerprint(Exported(methods={"other": program}))}) == 2


def test_what_only_people_read_does_not_enter():
    """Stack traces, sequence numbers and ids of graphs are kept and change nothing."""
    program = fresh()
    plain = of(program)
    for node in program.graph.nodes:
        node.meta["stack_trace"] = "elsewhere"
        node.meta["seq_nr"] = 12345
        for source in node.meta.get("from_node", ()):
            if source.node_info is not None:
                source.node_info.graph_id += 1000
    assert of(program) == plain


def test_exporting_anew_gives_the_same():
    """Two exports of one network agree, with dynamic sizes too."""
    for name in ("tied", "nested", "sizes"):
        first, second = exported(name), exported(name)
        assert of(first) == of(second)


def test_lowering_a_program_does_not_change_it():
    """Decomposing a dynamic program adds guards to the symbols it shares; its fingerprint stays."""
    program = exported("sizes")
    before = of(program)
    from_exported(program, "edge")
    assert of(program) == before


def test_a_narrower_range_changes_it():
    """The range of a dynamic size is part of what a program means."""
    from torch.export import Dim

    def with_bound(bound):
        shapes = {"x": {0: Dim("n", min=2, max=bound)}}
        return of(torch.export.export(nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes={"input": shapes["x"]}))

    assert with_bound(8) == with_bound(8)
    assert with_bound(8) != with_bound(9)


def test_it_is_the_same_in_every_process_and_under_every_hash_seed():
    """Three processes with other hash seeds agree, at exported, edge and lowered."""
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests/support")!r}, {str(ROOT)!r}]
from codec_support import artifact
from stages.codec import fingerprint
print([fingerprint(artifact("sizes", "exported")), fingerprint(artifact("linear", "lowered"))])
"""
    seen = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for seed in ("0", "1", "77")
    }
    assert len(seen) == 1


OPS = ["add", "mul", "sub", "relu", "clamp", "sum", "reshape", "slice", "cat", "leaky_relu", "max"]


class Generated(nn.Module):
    """A network made of a list of small steps over earlier values."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.weight = nn.Parameter(torch.linspace(-1, 1, 12).view(3, 4))
        self.register_buffer("view", torch.arange(12.0).view(4, 3).t())

    def forward(self, x):
        values = [x, self.weight, self.view]
        for op, i, j, number in self.steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(self.step(op, a, b, number))
        return tuple(values[3:])

    @staticmethod
    def step(op, a, b, number):
        if op in ("add", "mul", "sub"):
            return getattr(torch, op)(a, b)
        return {
            "relu": lambda: torch.nn.functional.relu(a),
            "clamp": lambda: a.clamp(-number, number),
            "sum": lambda: a.sum(1, keepdim=True) + b * number,
            "reshape": lambda: a.reshape(4, 3).t(),
            "slice": lambda: torch.cat([a[:1], b[1:]]),
            "cat": lambda: torch.cat([a, b], 1)[:, 2:6],
            "leaky_relu": lambda: torch.nn.functional.leaky_relu(a, number),
            "max": lambda: a.max(1, keepdim=True)[0] + b,
        }[op]()


steps = st.lists(
    st.tuples(st.sampled_from(OPS), st.integers(0, 20), st.integers(0, 20), st.floats(0, 4, width=32)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_any_graph_round_trips(tmp_path_factory, drawn):
    """A generated network comes back as the same document and computes the same."""
    x = torch.linspace(-2, 2, 12).view(3, 4)
    with torch.no_grad():
        program = torch.export.export(Generated(drawn), (x,))
        for kind in ("exported", "edge"):
            source = from_exported(program, kind)
            loaded = load(save(source, tmp_path_factory.mktemp("g") / "m.etg"))
            assert encode(loaded)[0]["meaning"] == encode(source)[0]["meaning"]
            assert fingerprint_of_document(encode(loaded)[0]) == fingerprint(source)
        expected = program.module()(x)
        again = load(save(Exported(methods={"forward": program}), tmp_path_factory.mktemp("g") / "m.etg"))
        for one, other in zip(again["forward"].module()(x), expected, strict=True):
            assert torch.equal(one, other)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps, steps)
def test_other_graphs_have_other_fingerprints(one, other):
    """Two generated networks share a fingerprint only when torch.export gives them the same graph."""
    x = torch.linspace(-2, 2, 12).view(3, 4)
    programs = [torch.export.export(Generated(drawn), (x,)) for drawn in (one, other)]
    same_code = programs[0].graph_module.code == programs[1].graph_module.code
    assert (of(programs[0]) == of(programs[1])) == same_code
    assert of(copy.deepcopy(programs[0])) == of(programs[0])
