"""Comparing the nodes of a program with those of the form of it before, while it runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch

from etgraph.artifact import Artifact, Inputs
from etgraph.numerics import Gap
from stages.support.alignment import counterparts, groups_of, operator_of
from stages.support.gaps import gap_between
from stages.support.interpreting import Flow, FlowStep, flow_of, run_through


class Compared:
    """The nodes of a program beside those of the form of it before, on one sample.

    Args:
        before: the flow before; None where that is an eager module.
        after: the flow after.
        found: key of `after` to what it is compared with.
        groups: key of `after` to what it was made from.
        gaps: key of `after` to how far its value is off.
        scales: key of `after` to scale and zero point, of quantize and dequantize operators.
    """

    def __init__(self, before: Flow | None, after: Flow, found: Mapping[str, str], groups: Mapping[str, str]) -> None:
        self.before = before
        self.after = after
        self.found = found
        self.groups = groups
        self.gaps: dict[str, Gap] = {}
        self.scales: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def run(self, program: Any, sample: Inputs, wanted: Mapping[str, Any]) -> Compared:
        """Run the program after, and compare each value with that of its counterpart as soon as it is there."""
        scales = _Scales(self.after)

        def see(key: str, value: Any) -> None:
            scales.see(key, value)
            other = wanted.get(self.found.get(key, ""))
            if other is not None:
                real = other.is_floating_point() and isinstance(value, torch.Tensor)
                self.compare(key, scales.real(key, value) if real else value, other)

        run_through(program, sample, see)
        self.scales = scales.found
        return self

    def compare(self, key: str, value: Any, other: Any) -> None:
        """Compare two values, where they are tensors of one shape and both of them real or whole numbers."""
        if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor) or value.shape != other.shape:
            return
        if value.is_floating_point() == other.is_floating_point():
            self.gaps[key] = gap_between(value, other)


def compare_captured(before: Any, after: Any, sample: Inputs) -> Compared:
    """Compare two captured programs node by node."""
    flow, later = flow_of(before), flow_of(after)
    found = counterparts(flow, later)
    needed = set(found.values())
    values: dict[str, Any] = {}

    scales = _Scales(flow)

    def keep(key: str, value: Any) -> None:
        scales.see(key, value)
        if key in needed and isinstance(value, torch.Tensor):
            values[key] = scales.real(key, value).detach().clone()

    run_through(before, sample, keep)
    return Compared(flow, later, found, groups_of(flow, later)).run(after, sample, values)


def compare_with_eager(module: Artifact, method: str, after: Any, call: Any, sample: Inputs) -> Compared:
    """Compare an exported program with the eager module that it was captured from: the outputs of its submodules."""
    held = module.methods[method]
    owner = getattr(held, "__self__", held)
    values: dict[str, Any] = {}
    calls: dict[str, int] = defaultdict(int)

    def hook_for(path: str) -> Any:
        def hook(child: Any, args: Any, output: Any) -> None:
            key = path if not calls[path] else f"{path}@{calls[path]}"
            calls[path] += 1
            if isinstance(output, torch.Tensor):
                values[key] = output.detach().clone()

        return hook

    hooks = [child.register_forward_hook(hook_for(path)) for path, child in owner.named_modules() if path]
    try:
        call(sample)
    finally:
        for hook in hooks:
            hook.remove()
    flow = flow_of(after)
    groups = {key: path for key, step in flow.steps.items() if (path := _module_of(step))}
    found = {path: key for key, path in groups.items() if path in values}
    aligned = {key: path for path, key in found.items()}
    for key, step in flow.steps.items():
        if step.holds:
            weight = _held_in(owner, step.holds)
            if weight is not None:
                aligned[key] = values[step.holds] = step.holds
                values[step.holds] = weight
    return Compared(None, flow, aligned, groups).run(after, sample, values)


def _module_of(step: FlowStep) -> str:
    """Return the innermost submodule that a node comes from, as `layers.0.linear`, with `@1` for its second call."""
    stack = step.node.meta.get("nn_module_stack") or {}
    paths = [key for key, _ in stack.values()] if stack else []
    return str(paths[-1]) if paths else ""


def _held_in(owner: Any, name: str) -> Any:
    found = dict(owner.named_parameters(remove_duplicate=False)) | dict(owner.named_buffers(remove_duplicate=False))
    return found.get(name)


# -- scales ------------------------------------------------------------------------------------------------------------


class _Scales:
    """Scales and zero points of the quantize and dequantize operators of a flow, as they come by in a run."""

    def __init__(self, flow: Flow) -> None:
        self.steps = {key: step for key, step in flow.steps.items() if quantizes(step)}
        self.wanted = {one for step in self.steps.values() for one in step.inputs[1:]}
        self.known: dict[str, Any] = {}
        self.found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def see(self, key: str, value: Any) -> None:
        """Take a value of the run."""
        if key in self.wanted:
            self.known[key] = value
        if key in self.steps:
            scale = _scale(self.steps[key], self.known)
            if scale is not None:
                self.found[key] = scale

    def real(self, key: str, value: torch.Tensor) -> torch.Tensor:
        """Return the numbers that whole ones stand for, where they come from a quantize operator."""
        if key not in self.found or value.is_floating_point():
            return value
        scale, zero_point = self.found[key]
        if operator_of(self.steps[key]).endswith("per_channel"):
            shape = [1] * value.dim()
            shape[int(self.steps[key].node.args[3])] = -1
            scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
        return (value.to(torch.float64) - zero_point) * scale


def quantizes(step: FlowStep) -> bool:
    """Whether a step quantizes or dequantizes with a scale."""
    name = operator_of(step)
    return name.startswith("quantized_decomposed.") and "quantize_per_" in name


def _scale(step: FlowStep, known: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return scale and zero point that a quantize or dequantize operator is called with."""
    arguments, nodes = [], iter(step.inputs[1:])
    for argument in step.node.args[1:3]:
        value = known.get(next(nodes, "")) if isinstance(argument, torch.fx.Node) else argument
        if value is None:
            return None
        arguments.append(torch.as_tensor(value, dtype=torch.float64).detach())
    return (arguments[0], arguments[1]) if len(arguments) == 2 else None
