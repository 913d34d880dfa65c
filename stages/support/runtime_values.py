"""What the nodes of an edge or lowered program are in the runtime, from an ETDump with the values in it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram

from etgraph.artifact import Executorch, Inputs
from stages.support.alignment import operator_of
from stages.support.executing import cloned, leaves_of, one_data_file, refused
from stages.support.interpreting import Flow, FlowStep, flow_of, run_through
from stages.support.node_values import Compared

#: Room for the values of a run, beside which the runtime keeps its own: it refuses to log what does not fit.
_SLACK = 1 << 20


def compare_in_runtime(before: ExportedProgram, program: Executorch, method: str, sample: Inputs) -> Compared:
    """Compare what the runtime computes, instruction by instruction, with the program that was emitted."""
    flow = flow_of(before, open_delegates=False)
    values: dict[str, Any] = {}

    def keep(key: str, value: Any) -> None:
        if isinstance(value, torch.Tensor) and key in flow.steps:
            values[key] = value.detach().clone()

    run_through(before, sample, keep)
    room = sum(value.nbytes for value in values.values())
    compared = Compared(flow, flow, {key: key for key in flow.steps}, {})
    for key, value in _values_in_runtime(before, flow, program, method, sample, 3 * room + _SLACK).items():
        if key in values:
            compared.compare(key, value, values[key])
    return compared


def _values_in_runtime(
    before: ExportedProgram, flow: Flow, program: Executorch, method: str, sample: Inputs, room: int
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    handles = (program.debug.get("debug_handle_map") or {}).get(method, {})
    events = list(_events(program, method, sample, room))
    delegates = [step for step in flow.steps.values() if step.node.target is executorch_call_delegate]
    called = [event for event in events if event.name == "DELEGATE_CALL"]
    if len(delegates) == len(called):
        for step, event in zip(delegates, called, strict=True):
            found.update(_of_delegate(before, flow, step, event.debug_data))
    taken: set[str] = set()
    for event in events:
        if not event.name.startswith("native_call_"):
            continue
        wanted = _handles(handles, event._instruction_id)
        name = event.name.removeprefix("native_call_").partition(".")[0]
        for step in flow.steps.values():
            own = step.node.meta.get("debug_handle")
            if step.key not in taken and own in wanted and operator_of(step).rpartition(".")[2] == name:
                taken.add(step.key)
                found.update(_of_operator(flow, step, event.debug_data))
                break
    return found


def _handles(handles: Mapping[Any, Any], instruction: int) -> tuple[int, ...]:
    found = handles.get(instruction, handles.get(str(instruction), ()))
    return (found,) if isinstance(found, int) else tuple(found)


def _of_operator(flow: Flow, step: FlowStep, data: list[Any]) -> dict[str, Any]:
    return _spread(flow, step, data) if len(data) > 1 else {step.key: data[0]} if data else {}


def _of_delegate(before: ExportedProgram, flow: Flow, step: FlowStep, data: list[Any]) -> dict[str, Any]:
    """Take the values of a delegate call apart: what goes in, then what comes out."""
    inner = getattr(step.node.graph.owning_module, step.node.args[0].target).original_module
    outputs = len(inner.graph_signature.user_outputs)
    found = dict(zip(step.inputs, data[: len(data) - outputs], strict=False))
    return {**found, **_spread(flow, step, data[len(data) - outputs :])}


def _spread(flow: Flow, step: FlowStep, values: list[Any]) -> dict[str, Any]:
    """Give the outputs of one node to the nodes that pick them."""
    return {
        other.key: values[other.node.args[1]]
        for other in flow.steps.values()
        if other.inputs == (step.key,) and "getitem" in str(other.node.target) and other.node.args[1] < len(values)
    }


def _events(program: Executorch, method: str, sample: Inputs, room: int) -> Iterator[Any]:
    from executorch.devtools import Inspector
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    buffer = program.buffer
    module = _load_for_executorch_from_buffer(
        buffer, data_map_buffer=one_data_file(program), enable_etdump=True, debug_buffer_size=room
    )
    try:
        module.run_method(method, tuple(leaves_of(cloned(sample))))
    except RuntimeError as error:
        raise refused(program, method, error) from error
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        etdump, values = str(Path(folder) / "etdump"), str(Path(folder) / "values")
        module.write_etdump_result_to_file(etdump, values)
        inspector = Inspector(etdump_path=etdump, debug_buffer_path=values)
    for block in inspector.event_blocks:
        if block.name == "Execute":
            yield from block.events
