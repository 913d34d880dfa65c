"""Nodes that were compared, in words and figures for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate

from etgraph.numerics import NodeNumbers, Tolerance
from stages.support.alignment import keeps_values
from stages.support.first_bad import Found
from stages.support.graph_text import target_name
from stages.support.interpreting import Flow, FlowStep, flow_of
from stages.support.node_values import Compared, quantizes
from stages.support.source_lines import line_of

#: A node that loses this many dB or fewer has not gone wrong by itself.
_LITTLE = 12.0


def node_numbers(compared: Compared, method: str, tolerance: Tolerance) -> dict[str, NodeNumbers]:
    """Describe every step that could be compared, and every other that computes something, in order."""
    numbers = {}
    for key, step in compared.after.steps.items():
        gap = compared.gaps.get(key)
        if gap is None and step.node.op != "call_function":
            continue
        other = compared.before.steps.get(compared.found.get(key, "")) if compared.before else None
        scale, zero_point = _scale_of(compared, step)
        numbers[key] = NodeNumbers(
            method=method,
            node=key,
            operator=operator_words(step),
            counterpart=compared.found.get(key, "") if gap is not None else "",
            call=_call(step),
            counterpart_call=_call(other) if other is not None and _called_otherwise(step, other) else "",
            source_line=_line(compared, step),
            scale=scale,
            zero_point=zero_point,
            gap=gap,
            within=tolerance.holds_for(gap) if gap is not None else None,
        )
    return numbers


def failing_node(program: Any, key: str, method: str) -> NodeNumbers:
    """Describe a node that could not be executed."""
    flow = flow_of(program)
    step = flow.steps[key]
    compared = Compared(None, flow, {}, {})
    plain = [one for one in step.node.args[1:3] if isinstance(one, int | float)]
    scale, zero_point = ((float(plain[0]),), (float(plain[1]),)) if quantizes(step) and len(plain) == 2 else ((), ())
    return NodeNumbers(
        method, key, operator_words(step), "", _call(step), "", _line(compared, step), scale, zero_point, None, False
    )


def operator_words(step: FlowStep) -> str:
    """Return what a step calls; of a delegate its backend and its content; of a weight or buffer its name."""
    if step.node.target is executorch_call_delegate:
        lowered = getattr(step.node.graph.owning_module, step.node.args[0].target)
        nodes = lowered.original_module.graph.nodes
        inside = dict.fromkeys(target_name(node.target) for node in nodes if node.op == "call_function")
        return f"{lowered.backend_id}: {', '.join(inside)}"
    if step.node.op == "call_function":
        return target_name(step.node.target)
    return f"{step.node.op} {step.holds}".strip()


def _call(step: FlowStep) -> str:
    if step.node.op != "call_function" or step.node.target is executorch_call_delegate:
        return ""
    shown = [*map(str, step.node.args), *(f"{name}={value}" for name, value in step.node.kwargs.items())]
    return f"{target_name(step.node.target)}({', '.join(shown)})"


def _called_otherwise(step: FlowStep, other: FlowStep) -> bool:
    """Whether two steps call different operators, or one with different plain values."""
    return (operator_words(step), _plain(step.node)) != (operator_words(other), _plain(other.node))


def _plain(node: torch.fx.Node) -> list[str]:
    values = [*node.args, *node.kwargs.values()]
    return [str(float(v) if type(v) is int else v) for v in values if not isinstance(v, torch.fx.Node | list | tuple)]


def _scale_of(compared: Compared, step: FlowStep) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return a step's own scale and zero point, or those that its output is quantized with."""
    keys = [step.key, *(other.key for other in users(compared.after, step.key) if keeps_values(other))]
    found = next((compared.scales[key] for key in keys if key in compared.scales), None)
    return (_ends(found[0]), _ends(found[1])) if found is not None else ((), ())


def _ends(values: torch.Tensor) -> tuple[float, ...]:
    """Return one number, or the smallest and the largest."""
    if not values.numel():
        return ()
    return tuple(dict.fromkeys((float(values.min()), float(values.max()))))


def users(flow: Flow, key: str) -> list[FlowStep]:
    """Return the steps that take a value."""
    return [step for step in flow.steps.values() if key in step.inputs]


def _line(compared: Compared, step: FlowStep) -> str:
    """Return the line of the model: a step's own, of what it is made from, of who uses it, of what it uses."""
    own = _own_line(step)
    if own:
        return own
    known: Iterable[Any] = compared.before.steps.values() if compared.before else ()
    origin = compared.found.get(step.key) or compared.groups.get(step.key)
    related = [
        *(other for other in known if other.key == origin),
        *users(compared.after, step.key),
        *(compared.after.steps[key] for key in step.inputs if key in compared.after.steps),
    ]
    return next(filter(None, map(_own_line, related)), "")


def _own_line(step: FlowStep) -> str:
    if step.node.target is executorch_call_delegate:
        lowered = getattr(step.node.graph.owning_module, step.node.args[0].target)
        lines = (line_of(node.meta.get("stack_trace") or "") for node in lowered.original_module.graph.nodes)
        return next(filter(None, lines), "")
    return line_of(step.node.meta.get("stack_trace") or "")


def words(compared: Compared, numbers: dict[str, NodeNumbers], found: Found, kinds: tuple[str, str]) -> str:
    """Say in a sentence where the numbers go wrong.

    Args:
        kinds: before and after.
    """
    before, after = kinds
    if found.key is not None:
        node = numbers.get(found.key)
        operator = operator_words(compared.after.steps[found.key])
        if node is not None and node.gap is not None:
            return (
                f"node {found.key} ({operator}) is the first that is off, by {node.gap.absolute:.1e} "
                f"({node.gap.snr:.1f} dB), from {node.counterpart} of {before}{_gradual(compared, found.key)}"
            )
        return (
            f"node {found.key} ({operator}) has no counterpart in {before}: what goes into it is right, and what "
            "comes out of it is not"
        )
    moved = _moved(compared, found)
    if moved:
        return f"every node that can be compared is right, and outputs are exchanged: {'; '.join(moved)}"
    return f"every node that can be compared with {before} is within tolerance; the errors add up over {after}"


def _gradual(compared: Compared, key: str) -> str:
    """Say where a node is off little more than what goes into it: the error has grown over many nodes."""
    into = [compared.gaps[one].snr for one in compared.after.steps[key].inputs if one in compared.gaps]
    least = min(into, default=math.inf)
    if least - compared.gaps[key].snr > _LITTLE:
        return ""
    return f". The error grows gradually: what goes into it is at {least:.1f} dB already, and within tolerance"


def _moved(compared: Compared, found: Found) -> list[str]:
    """Say of each output whose node is right which output that node was before."""
    if compared.before is None:
        return []
    moved = []
    for number in found.swapped:
        key = compared.after.outputs[number]
        origin = compared.found.get(key or "")
        was = compared.before.outputs.index(origin) if origin in compared.before.outputs else None
        if origin is not None and was is not None and compared.before.outputs[number] != origin:
            moved.append(f"output {number} is node {key}, which was output {was}")
        elif origin is not None and number < len(compared.before.outputs) and was is None:
            moved.append(f"output {number} is node {key}, and was {compared.before.outputs[number]}")
    return moved
