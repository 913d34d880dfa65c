"""A `.pte` as plain data, and what this host's runtime has of what it needs."""

from __future__ import annotations

from typing import Any

from etgraph.artifact import Executorch
from stages.support.runtime import runtime_of_host


def describe(artifact: Executorch) -> dict[str, Any]:
    """Describe each method as the program states it; inputs and outputs of a `.pte` have positions, not names."""
    data = {name: sum(map(len, pieces)) for name, pieces in artifact.data_pieces.items()}
    methods = described_methods(artifact)
    return {
        "recognised_by": "the identifier of ExecuTorch's program format, ET12, in its header",
        "methods": methods,
        "quantized": any("quantize" in op for method in methods.values() for op in method["operators"]),
        "weights": None,
        "size": {"program": sum(map(len, artifact.pieces)), "data_files": data},
        "host": _host(methods),
    }


def described_methods(artifact: Executorch) -> dict[str, dict[str, Any]]:
    """Return what the program states of each method."""
    return {name: _method(about) for name, about in artifact.methods.items()}


#: What the schema of a `.pte` calls dtypes, in torch's words.
_DTYPES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}


def _value(about: dict[str, Any]) -> dict[str, Any]:
    if "dtype" not in about:
        return dict(about)
    return {**about, "dtype": _DTYPES.get(about["dtype"], about["dtype"])}


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
