"""What a program is, as plain data: for `etgraph inspect` and whatever else shows programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Edge, Executorch, Inputs, Lowered
from etgraph.errors import EtgraphError
from etgraph.installed import installed_version


@etgraph.service("inspect")
def inspect_artifact(artifact: Artifact, *, graph: bool = False) -> dict[str, Any]:
    """Describe an artifact as data that JSON can hold.

    Args:
        graph: also give each method's graph, a line per node with its shape and its source line.

    Returns:
        `kind`, `recognised_by`, `methods` (inputs, outputs, operators, delegates, symbols), `quantized`, `weights`
        (count, bytes, the ten largest), `compile_config`, `example_inputs`, `constant_methods`, `provenance`,
        `versions` (of what is installed here), `fingerprint`, `notes` (what cannot be shown, and why); for a `.pte`
        also `size` and `host` (what this host's runtime lacks for it).
    """
    from stages.support import inspected_eager, inspected_emitted, inspected_programs

    if isinstance(artifact, Executorch):
        about = inspected_emitted.describe(artifact, graph=graph)
    elif artifact.kind in ("module", "prepared"):
        about = inspected_eager.describe(artifact, graph=graph)
    else:
        about = inspected_programs.describe(artifact, graph=graph)
    config = artifact.compile_config if isinstance(artifact, Edge | Lowered) else None
    return {
        "kind": str(artifact.kind),
        "notes": [],
        **about,
        "compile_config": {name: _listed(value) for name, value in asdict(config).items()} if config else None,
        "example_inputs": {name: [_inputs(one) for one in given] for name, given in artifact.example_inputs.items()},
        "dynamic_shapes": {name: _shapes(value) for name, value in artifact.dynamic_shapes.items() if value},
        "constant_methods": {name: _value(value) for name, value in artifact.constant_methods.items()},
        "provenance": [
            {"stage": step.stage, "kind": step.kind, "options": dict(step.options)} for step in artifact.provenance
        ],
        "versions": {name: installed_version(name) for name in ("etgraph", "torch", "executorch", "torchao")},
        **_fingerprint(artifact),
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _inputs(inputs: Inputs) -> dict[str, Any]:
    args = [_value(value) for value in inputs.args]
    return {"args": args, "kwargs": {name: _value(value) for name, value in inputs.kwargs.items()}}


def _value(value: Any) -> Any:
    """Show a tensor by dtype and shape, containers item by item, everything else as Python shows it."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, Mapping):
        return {str(name): _value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


def _shapes(value: Any) -> str:
    """Show dynamic shapes with the ranges of their dimensions; torch leaves a lower end of 2 out."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_shapes(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_shapes, value))})"
    low, high = getattr(value, "min", None), getattr(value, "max", None)
    if isinstance(low, int) and isinstance(high, int):
        return f"{value.__name__} from {low} to {'any size' if high >= 2**62 else high}"
    return str(value)


def _fingerprint(artifact: Artifact) -> dict[str, str | None]:
    """Return the fingerprint, or why there is none: not everything that can be run can be described."""
    if artifact.kind == "module":
        why = "an eager module has one only once it is exported"
        return {"fingerprint": None, "no_fingerprint": why}
    try:
        return {"fingerprint": artifact.fingerprint, "no_fingerprint": None}
    except EtgraphError as error:
        return {"fingerprint": None, "no_fingerprint": error.problem}
