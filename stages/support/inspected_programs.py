"""Exported, quantized, edge and lowered programs as plain data."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram
from torch.export.graph_signature import ArgumentSpec, InputKind, OutputKind

from etgraph.artifact import Artifact
from stages.support.graph_text import graph_lines, operator_counts
from stages.support.programs import OPERATOR_LIBRARIES, all_nodes, delegates_of, namespace_of
from stages.support.quantized_share import quantized_share
from stages.support.weights import weights_summary


def describe(artifact: Artifact, *, graph: bool) -> dict[str, Any]:
    """Describe each method's program, and the weights of all of them together."""
    programs: Mapping[str, ExportedProgram] = artifact.methods
    methods = {name: _method(program) for name, program in programs.items()}
    if graph:
        for name, program in programs.items():
            methods[name]["graph"] = graph_lines(program.graph_module)
    return {
        "recognised_by": _how(programs, methods),
        "methods": methods,
        "quantized": any(step.kind == "quantized" for step in artifact.provenance) or _has_quantize(methods),
        "weights": weights_summary(*_weights(programs)),
    }


def _how(programs: Mapping[str, ExportedProgram], methods: Mapping[str, dict[str, Any]]) -> str:
    dialects = ", ".join(dict.fromkeys(program.dialect for program in programs.values()))
    delegates = sum(len(method["delegates"]) for method in methods.values())
    libraries = sorted({op.partition(".")[0] for m in methods.values() for op in m["operators"]} & OPERATOR_LIBRARIES)
    inside = "quantize and dequantize operators" if _has_quantize(methods) else "no quantize or dequantize operators"
    if delegates:
        inside += f", {delegates} delegate{'s' if delegates > 1 else ''}"
    elif "EDGE" in dialects:
        inside += f", operators of {', '.join(libraries)}" if libraries else ", no delegate"
    return f"an ExportedProgram of dialect {dialects} with {inside}"


def _has_quantize(methods: Mapping[str, dict[str, Any]]) -> bool:
    return any(
        "quantize" in operator
        for method in methods.values()
        for operators in (method["operators"], *(delegate["operators"] for delegate in method["delegates"]))
        for operator in operators
    )


def _weights(programs: Mapping[str, ExportedProgram]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return tensors by name, and the backend of those that are in a delegate."""
    named: dict[str, Any] = {}
    places: dict[str, str] = {}
    for method, program in programs.items():
        prefix = f"{method}." if len(programs) > 1 else ""
        named.update({f"{prefix}{name}": value for name, value in _tensors(program).items()})
        for delegate in delegates_of(program):
            original = getattr(delegate, "_original_exported_program", None)
            for name, value in _tensors(original).items() if original is not None else ():
                if f"{prefix}{name}" not in named:
                    named[f"{prefix}{name}"] = value
                    places[f"{prefix}{name}"] = delegate.backend_id
    return named, places


def _tensors(program: ExportedProgram) -> dict[str, Any]:
    return {**program.state_dict, **program.constants}


def outside_bytes(programs: Mapping[str, ExportedProgram]) -> int:
    """Return how large the weights are that no delegate has taken."""
    named, places = _weights(programs)
    return int(weights_summary({name: value for name, value in named.items() if name not in places})["bytes"])


def _method(program: ExportedProgram) -> dict[str, Any]:
    calls = [node for node in all_nodes(program) if node.op == "call_function"]
    delegated = [_delegate(node) for node in calls if node.target is executorch_call_delegate]
    own = [n for n in calls if n.target is not executorch_call_delegate and n.target is not operator.getitem]
    inside = sum(delegate["nodes"] for delegate in delegated)
    signature = program.graph_signature
    written = _written_placeholders(calls) | set(signature.user_inputs_to_mutate.values())
    buffers = {name for node, name in signature.inputs_to_buffers.items() if node in written}
    return {
        "inputs": _inputs(program, written),
        "outputs": _outputs(program),
        "mutated_buffers": sorted(buffers | set(signature.buffers_to_mutate.values())),
        "symbols": {str(symbol): _range(bounds) for symbol, bounds in program.range_constraints.items()},
        "operators": operator_counts(own),
        "delegates": delegated,
        "nodes": {"delegated": inside, "others": len(own)},
        "quantization": quantized_share(program),
    }


def _written_placeholders(calls: Iterable[torch.fx.Node]) -> set[str]:
    """Return the names of placeholders that operators write to in place.

    In the TRAINING dialect mutations are still operators of the graph; later the signature states them.
    """
    written = set()
    for node in calls:
        schema = getattr(node.target, "_schema", None)
        for argument, value in zip(schema.arguments if schema is not None else (), node.args, strict=False):
            writes = argument.alias_info is not None and argument.alias_info.is_write
            if writes and isinstance(value, torch.fx.Node) and value.op == "placeholder":
                written.add(value.name)
    return written


def _range(bounds: Any) -> list[int | None]:
    """Return the smallest and the largest value of a symbol; None for no upper limit."""
    lower, upper = bounds.lower, bounds.upper
    unlimited = not upper.is_finite or int(upper) >= 2**62
    return [int(lower), None if unlimited else int(upper)]


def _described(value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        sizes = [int(size) if isinstance(size, int) else str(size) for size in value.shape]
        return {"type": "tensor", "dtype": str(value.dtype).removeprefix("torch."), "shape": sizes}
    names = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool", type(None): "none"}
    described: dict[str, Any] = {"type": names.get(type(value), type(value).__name__)}
    return described | ({"value": value} if isinstance(value, bool | int | float | str) else {})


def _inputs(program: ExportedProgram, written: set[str]) -> list[dict[str, Any]]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [
        {"name": spec.arg.name, **_argument(spec.arg, nodes), "mutated": spec.arg.name in written}
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    ]


def _outputs(program: ExportedProgram) -> list[dict[str, Any]]:
    nodes = {node.name: node for node in program.graph.nodes}
    roles = {OutputKind.USER_OUTPUT: "output", OutputKind.USER_INPUT_MUTATION: "mutated input"}
    described = []
    for spec in program.graph_signature.output_specs:
        if spec.kind not in roles:
            continue
        role = roles[spec.kind] if spec.kind is OutputKind.USER_OUTPUT else f"mutated input {spec.target}"
        described.append({"name": spec.arg.name, **_argument(spec.arg, nodes), "role": role})
    return described


def _argument(argument: ArgumentSpec, nodes: Mapping[str, torch.fx.Node]) -> dict[str, Any]:
    """Describe an argument by its node's value; a constant has no node of that name."""
    node = nodes.get(argument.name)
    return _described(node.meta.get("val") if node is not None else getattr(argument, "value", None))


def _delegate(node: torch.fx.Node) -> dict[str, Any]:
    lowered: LoweredBackendModule = getattr(node.graph.owning_module, node.args[0].target)
    original = getattr(lowered, "_original_exported_program", None)
    operators = operator_counts(n for n in all_nodes(original) if namespace_of(n.target)) if original else {}
    output = lowered.named_data_store_output
    named = sum(len(buffer) for buffer in output.buffers) if output is not None else 0
    return {
        "name": node.name,
        "backend": lowered.backend_id,
        "nodes": sum(operators.values()),
        "operators": operators,
        "bytes": len(lowered.processed_bytes) + named,
    }
