"""A `.pte` as plain data, and what this host's runtime has of what it needs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from etgraph.artifact import Executorch
from stages.support.emitted_program import (
    DTYPES,
    EmittedMethod,
    EmittedProgram,
    emitted_program,
    instruction_lines,
    output_constants,
)
from stages.support.runtime import runtime_of_host
from stages.support.weights import LARGEST

_PROGRAM = "the identifier of ExecuTorch's program format, ET12, in its header"
_BUNDLE = "the identifier of ExecuTorch's programs bundled with inputs and expected outputs, BP08, in its header"


def describe(artifact: Executorch, *, graph: bool = False) -> dict[str, Any]:
    """Describe each method as the program states it; inputs and outputs of a `.pte` have positions, not names.

    Args:
        graph: also give each method's instructions, a line for each.
    """
    inside = emitted_program(artifact)
    methods = described_methods(artifact)
    for name, method in inside.methods.items():
        methods[name].update(_inside(method, artifact.methods[name]))
        for output, constant in zip(methods[name]["outputs"], output_constants(method.plan), strict=True):
            if constant not in (None, "None"):
                output["value"] = constant
        if graph:
            methods[name]["graph"] = instruction_lines(method.plan)
    return {
        "recognised_by": _BUNDLE if artifact.expected_outputs else _PROGRAM,
        "methods": methods,
        "quantized": any("quantize" in op for method in methods.values() for op in method["operators"]),
        "weights": _constants(inside),
        "size": {"program": artifact.nbytes, "data_files": _data_files(artifact), "sections": inside.sections},
        "host": _host(methods),
        "notes": _notes(artifact, methods),
    }


def _data_files(artifact: Executorch) -> dict[str, int]:
    return {name: sum(map(len, pieces)) for name, pieces in artifact.data_pieces.items()}


def _inside(method: EmittedMethod, stated: dict[str, Any]) -> dict[str, Any]:
    """Return what the instructions of a method add to what it states of itself."""
    calls = Counter(call.operator for call in method.calls)
    counts = {name: calls[name] for name in sorted(stated["operators"], key=lambda name: (-calls[name], name))}
    delegates = [
        {"name": f"delegate {number}", "backend": one.name, "nodes": None, "operators": {}, "bytes": one.bytes}
        for number, one in enumerate(method.delegates)
    ]
    constant = not any(chain.instructions for chain in method.plan.chains)
    return {
        "operators": counts,
        "delegates": delegates,
        "delegation": stated.get("delegation"),
        "constant": constant and not stated["inputs"],
    }


def _constants(inside: EmittedProgram) -> dict[str, Any]:
    """Summarise constants and data by name: those of a `.pte` have no names of the model."""
    found = {(one.name, one.digest): one.bytes for method in inside.methods.values() for one in method.constants}
    found |= {(f"data {one.name[:24]}", one.digest): one.bytes for one in inside.named_data}
    largest = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:LARGEST]
    return {
        "count": len(found),
        "numbers": None,
        "bytes": sum(found.values()),
        "quantized_numbers": None,
        "largest": [
            {"name": name, "dtype": None, "shape": None, "bytes": count, "place": ""} for (name, _), count in largest
        ],
    }


def _notes(artifact: Executorch, methods: dict[str, dict[str, Any]]) -> list[str]:
    notes = []
    if not artifact.debug:
        notes.append("it carries no debug information: nothing in it can be traced to lines of the model")
    if any(one["delegates"] and not one["delegation"] for one in methods.values()):
        notes.append("a .pte does not say which operators are inside of its delegates")
    return notes


def described_methods(artifact: Executorch) -> dict[str, dict[str, Any]]:
    """Return what the program states of each method."""
    return {name: _method(about) for name, about in artifact.methods.items()}


def _value(about: dict[str, Any]) -> dict[str, Any]:
    if "dtype" not in about:
        return dict(about)
    return {**about, "dtype": DTYPES.get(about["dtype"], about["dtype"])}


def _method(about: dict[str, Any]) -> dict[str, Any]:
    inputs = [{"name": str(i), **_value(value), "mutated": False} for i, value in enumerate(about["inputs"])]
    outputs = [{"name": str(i), "role": "output", **_value(value)} for i, value in enumerate(about["outputs"])]
    return {
        "inputs": inputs,
        "outputs": outputs,
        "operators": list(about["operators"]),
        "backends": list(about["backends"]),
        "arena_bytes": list(about["arena_bytes"]),
    }


def _host(methods: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Say which needed backends and kernels this host's runtime lacks; `runtime` is False where it has none."""
    host = runtime_of_host()
    if host is None:
        return {"runtime": False, "missing_backends": [], "missing_operators": []}
    backends = {backend for method in methods.values() for backend in method["backends"]}
    operators = {operator for method in methods.values() for operator in method["operators"]}
    return {
        "runtime": True,
        "missing_backends": sorted(backends - host.backends),
        "missing_operators": sorted(operators - host.operators),
    }
