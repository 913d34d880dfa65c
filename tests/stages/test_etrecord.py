"""ETRecords are those that upstream makes, also of stages that were served from the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import Inspector
from executorch.devtools.etrecord import parse_etrecord
from executorch.devtools.inspector._inspector_utils import propagate_back_debug_handle
from executorch.exir import to_edge_transform_and_lower
from faults import lose_clamp, recipe_with
from models import made

import etgraph


def handles(program: Any) -> list[tuple[str, Any]]:
    return [(node.name, node.meta.get("debug_handle")) for node in program.graph.nodes]


def maps(record: Any) -> tuple[Any, ...]:
    return record._debug_handle_map, record._delegate_map, record._instruction_id_to_num_outs_map


@pytest.fixture
def upstream(tmp_path: Path) -> Any:
    model, inputs, _ = made("conv")
    exported = torch.export.export(model, inputs)
    manager = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()], generate_etrecord=True)
    manager = manager.to_executorch()
    manager.get_etrecord().save(tmp_path / "upstream.etrecord")
    return manager, parse_etrecord(str(tmp_path / "upstream.etrecord"))


def test_a_record_is_that_of_upstreams_call_also_from_the_cache(tmp_path: Path, upstream: Any) -> None:
    manager, wanted = upstream
    model, inputs, _ = made("conv")
    for outcome in ("ran", "reused"):
        path = tmp_path / f"{outcome}.etrecord"
        result = etgraph.run(model, inputs, etrecord=path)
        assert {step.outcome for step in result.steps} == {outcome}
        assert result.artifact.buffer == manager.buffer
        record = parse_etrecord(str(path))
        assert handles(record.edge_dialect_program) == handles(wanted.edge_dialect_program)
        assert maps(record) == maps(wanted)
        assert [n.name for n in record.exported_program.graph.nodes] == [
            n.name for n in wanted.exported_program.graph.nodes
        ]
        # The exported program is the one that nodes of the edge program say they come from.
        assert propagate_back_debug_handle(record.exported_program, record.export_graph_id, record.edge_dialect_program)
        assert torch.equal(record._representative_inputs[0], inputs[0])


def test_the_inspector_finds_operators_and_lines_by_it(tmp_path: Path) -> None:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    model, inputs, _ = made("conv")
    result = etgraph.run(model, inputs, etrecord=tmp_path / "m.etrecord")
    buffer = result.artifact.buffer
    module = _load_for_executorch_from_buffer(buffer, enable_etdump=True)
    module.forward(inputs)
    module.write_etdump_result_to_file(str(tmp_path / "etdump"))
    inspector = Inspector(etdump_path=str(tmp_path / "etdump"), etrecord=str(tmp_path / "m.etrecord"))
    events = [event for block in inspector.event_blocks if block.name == "Execute" for event in block.events]
    (mean,) = [event for event in events if event.name == "native_call_mean.out"]
    assert mean.op_types == ["aten.mean.dim"]
    assert "return self.head(x.mean((2, 3)))" in next(iter(mean.stack_traces.values()))
    delegate = next(event for event in events if event.name == "DELEGATE_CALL")
    assert "aten.convolution.default" in delegate.op_types


def test_the_split_way_records_the_program_that_was_lowered(tmp_path: Path) -> None:
    model, inputs, _ = made("conv")
    result = etgraph.run(model, inputs, path="split", etrecord=tmp_path / "m.etrecord")
    record = parse_etrecord(str(tmp_path / "m.etrecord"))
    assert set(handles(record.edge_dialect_program)) >= set(handles(result["edge"].methods["forward"]))


def test_several_methods_and_passes_are_all_there(tmp_path: Path) -> None:
    model, inputs, rest = made("methods")
    etgraph.run(model, inputs, etrecord=tmp_path / "m.etrecord", **rest)
    record = parse_etrecord(str(tmp_path / "m.etrecord"))
    assert set(record.edge_dialect_program) == {"encode", "decode"}
    assert set(record._debug_handle_map) >= {"encode", "decode"}
    assert record.exported_program is not None
    assert len([name for name in record.graph_map if name.startswith("exported/")]) == 1

    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe=recipe_with(lose_clamp), etrecord=tmp_path / "p.etrecord")
    changed = parse_etrecord(str(tmp_path / "p.etrecord")).graph_map["edge_after_transform/forward"]
    (clamp, _) = [node for node in changed.graph.nodes if "hardtanh" in str(node.target)]
    assert len(clamp.args) + len(clamp.kwargs) == 1


def test_programs_that_begin_later_have_records_too(tmp_path: Path) -> None:
    model, inputs, _ = made("conv")
    for kind in ("edge", "lowered"):
        artifact = etgraph.run(model, inputs, to=kind).artifact
        before = artifact.fingerprint
        etgraph.run(artifact, etrecord=tmp_path / f"{kind}.etrecord")
        assert artifact.fingerprint == before
        record = parse_etrecord(str(tmp_path / f"{kind}.etrecord"))
        assert record.edge_dialect_program is not None
        assert record.exported_program is None


def test_a_failure_to_write_is_a_warning_and_the_program_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    model, inputs, _ = made("conv")

    def refuse(*paths: Any) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "m.etrecord"
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(etgraph.EtgraphWarning, match="m.etrecord was not written"):
        result = etgraph.run(model, inputs, recipe="portable", etrecord=path, cache=False)
    assert result.artifact.nbytes > 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"etrecord": "nowhere/m.etrecord"}, "the folder nowhere does not exist"),
        ({"etrecord": 3}, "etrecord is 3"),
        ({"etrecord": "m.etrecord", "to": "edge"}, "stops before there is one"),
        ({"bundled": "m.bpte", "target": ["linux-x86_64-xnnpack-fp32"]}, "make a program each"),
    ],
)
def test_wrong_requests_are_refused_before_any_work(arguments: Any, expected: str) -> None:
    model, inputs, _ = made("conv")
    events: list[Any] = []
    with pytest.raises(etgraph.UsageError, match=expected):
        etgraph.run(model, inputs, on_event=events.append, **arguments)
    assert events == []


def test_a_pte_has_no_record(tmp_path: Path) -> None:
    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable").save(tmp_path / "m.pte")
    with pytest.raises(etgraph.UsageError, match="keeps no graphs"):
        etgraph.run(tmp_path / "m.pte").save_etrecord(tmp_path / "m.etrecord")
