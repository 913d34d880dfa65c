"""Bytes of modules and of exported, quantized, edge and lowered programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from etgraph.artifact import Artifact
from stages.support.programs import delegates_of


def parts(artifact: Artifact) -> list[dict[str, Any]]:
    """Return each weight, constant and delegate of an artifact; one that methods share is nobody's alone."""
    found: dict[Any, dict[str, Any]] = {}
    delegates: list[dict[str, Any]] = []
    for method, program in artifact.methods.items():
        for section, name, value in _tensors(program):
            address = _address(value)
            known = found.get(address)
            if known is not None:
                known["method"] = known["method"] if known["method"] == method else ""
                continue
            size = value.untyped_storage().nbytes()
            found[address] = {"method": method, "section": section, "name": name, "bytes": size}
        if isinstance(program, torch.export.ExportedProgram):
            delegates += _delegates(method, program)
    return [*found.values(), *delegates]


def _address(value: torch.Tensor) -> Any:
    """Return what two names of one storage have in common; a fake or meta tensor shares with none."""
    return (value.device.type != "meta" and value.untyped_storage().data_ptr()) or ("alone", id(value))


def _tensors(program: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
    named: Mapping[str, Mapping[str, Any]]
    if isinstance(program, torch.export.ExportedProgram):
        named = {"weights": program.state_dict, "constants": program.constants}
    else:
        module = program if isinstance(program, torch.nn.Module) else program.__self__
        named = {"weights": {**dict(module.named_parameters()), **dict(module.named_buffers())}}
    for section, tensors in named.items():
        for name, value in tensors.items():
            if isinstance(value, torch.Tensor):
                yield section, name, value


def _delegates(method: str, program: torch.export.ExportedProgram) -> Iterator[dict[str, Any]]:
    for number, lowered in enumerate(delegates_of(program)):
        name = f"{lowered.backend_id} {number}"
        output = lowered.named_data_store_output
        weights = sum(len(buffer) for buffer in output.buffers) if output is not None else 0
        yield {"method": method, "section": "delegates", "name": name, "bytes": len(lowered.processed_bytes)}
        yield {"method": method, "section": "delegate weights", "name": f"weights of {name}", "bytes": weights}
