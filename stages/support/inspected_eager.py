"""Eager modules, and prepared graphs, as plain data."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from etgraph.artifact import Artifact, Inputs
from stages.support.graph_text import graph_lines, operator_counts
from stages.support.weights import weights_summary


def describe(artifact: Artifact, *, graph: bool) -> dict[str, Any]:
    """Describe each method by its parameters and the classes of its layers."""
    modules = {name: _owner(method) for name, method in artifact.methods.items()}
    named = {f"{name}.{key}": value for name, module in modules.items() for key, value in _tensors(module)}
    quantized = any(step.kind == "quantized" for step in artifact.provenance) or artifact.kind == "prepared"
    notes = ["an eager module has no graph before it is exported: run it --to exported"] if graph else []
    return {
        "notes": notes if artifact.kind == "module" else [],
        "recognised_by": _how(artifact, modules),
        "methods": {name: _method(artifact, name, module, graph) for name, module in modules.items()},
        "quantized": quantized,
        "weights": weights_summary(named if len(modules) > 1 else {k.partition(".")[2]: v for k, v in named.items()}),
    }


def _owner(method: Any) -> torch.nn.Module:
    return method if isinstance(method, torch.nn.Module) else method.__self__


def _tensors(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _how(artifact: Artifact, modules: dict[str, torch.nn.Module]) -> str:
    classes = ", ".join(dict.fromkeys(type(module).__qualname__ for module in modules.values()))
    observed = "observers or fake-quantize modules inside" if artifact.kind == "prepared" else "no observers inside"
    return f"an nn.Module of class {classes}, {observed}"


def _method(artifact: Artifact, name: str, module: torch.nn.Module, graph: bool) -> dict[str, Any]:
    parameters = inspect.signature(getattr(artifact.methods[name], "forward", artifact.methods[name])).parameters
    leaves = [type(child).__name__ for child in module.modules() if not list(child.children())]
    samples = artifact.example_inputs.get(name)
    given = _by_parameter(parameters, samples[0]) if samples else {}
    about: dict[str, Any] = {
        "inputs": [
            {"name": p.name, "optional": p.default is not p.empty, "mutated": False, **_typed(given, p.name)}
            for p in parameters.values()
        ],
        "outputs": [],
        "layers": dict(Counter(leaves).most_common()),
        "training": module.training,
    }
    if isinstance(module, torch.fx.GraphModule):
        about["operators"] = operator_counts(module.graph.nodes)
        if graph:
            about["graph"] = graph_lines(module)
    return about


def _by_parameter(parameters: Mapping[str, inspect.Parameter], sample: Inputs) -> dict[str, Any]:
    """Return the values of a sample by the names of the parameters that take them; nothing where they do not fit."""
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*sample.args, **sample.kwargs)
    except TypeError:
        return {}
    return dict(bound.arguments)


def _typed(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Describe the example that is given for a parameter."""
    if name not in given:
        return {}
    value = given[name]
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"type": "tensor", "dtype": dtype, "shape": list(value.shape), "example": True}
    return {"type": type(value).__name__, "example": True}
