"""Eager modules, and prepared graphs, as plain data."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import torch

from etgraph.artifact import Artifact
from stages.support.graph_text import graph_lines, operator_counts
from stages.support.weights import weights_summary


def describe(artifact: Artifact, *, graph: bool) -> dict[str, Any]:
    """Describe each method by its parameters and the classes of its layers."""
    modules = {name: _owner(method) for name, method in artifact.methods.items()}
    named = {f"{name}.{key}": value for name, module in modules.items() for key, value in _tensors(module)}
    quantized = any(step.kind == "quantized" for step in artifact.provenance) or artifact.kind == "prepared"
    return {
        "recognised_by": _how(artifact, modules),
        "methods": {name: _method(artifact.methods[name], module, graph) for name, module in modules.items()},
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


def _method(method: Any, module: torch.nn.Module, graph: bool) -> dict[str, Any]:
    parameters = inspect.signature(getattr(method, "forward", method)).parameters.values()
    leaves = [type(child).__name__ for child in module.modules() if not list(child.children())]
    about: dict[str, Any] = {
        "inputs": [{"name": p.name, "optional": p.default is not p.empty, "mutated": False} for p in parameters],
        "outputs": [],
        "layers": dict(Counter(leaves).most_common()),
        "training": module.training,
    }
    if isinstance(module, torch.fx.GraphModule):
        about["operators"] = operator_counts(module.graph.nodes)
        if graph:
            about["graph"] = graph_lines(module)
    return about
