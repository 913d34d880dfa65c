"""Weights of two programs compared by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from etgraph.artifact import Artifact
from etgraph.difference import ProgramChange
from stages.support.programs import delegates_of

__all__ = ["changed_weights", "weights_of"]


def weights_of(artifact: Artifact) -> dict[str, torch.Tensor]:
    """Return parameters, buffers and constants by name, those that delegates have taken too."""
    several = len(artifact.methods) > 1
    found: dict[str, torch.Tensor] = {}
    for method, held in artifact.methods.items():
        for name, value in _tensors(held):
            if isinstance(value, torch.Tensor):
                found.setdefault(f"{method}.{name}" if several else name, value)
    return found


def _tensors(held: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(held, torch.export.ExportedProgram):
        yield from held.state_dict.items()
        yield from held.constants.items()
        for delegate in delegates_of(held):
            original = getattr(delegate, "_original_exported_program", None)
            if original is not None:
                yield from _tensors(original)
    else:
        owner = held if isinstance(held, torch.nn.Module) else held.__self__
        yield from owner.named_parameters()
        yield from owner.named_buffers()


def changed_weights(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> Iterator[ProgramChange]:
    """Compare tensors by name: gone, added, of another dtype or shape, or with other numbers."""
    for name in dict.fromkeys([*a, *b]):
        one, other = a.get(name), b.get(name)
        before = None if one is None else _typed(one)
        after = None if other is None else _typed(other)
        if before != after:
            yield ProgramChange("weights", "", name, before, after)
        elif one is not None and other is not None:
            told = _numbers(one, other)
            if told:
                yield ProgramChange("weights", "", name, before, after, told)


def _typed(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"


def _numbers(one: torch.Tensor, other: torch.Tensor) -> str:
    """Say how far two tensors of one dtype and shape are apart; nothing where they hold the same."""
    if one.device.type == "meta" or other.device.type == "meta" or one is other:
        return ""
    a, b = one.detach().contiguous(), other.detach().contiguous()
    if torch.equal(a, b):
        return ""
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    a, b = a.double().flatten(), b.double().flatten()
    unequal = (a != b) & ~(a.isnan() & b.isnan())
    if not unequal.any():
        return ""
    gap = (a[unequal] - b[unequal]).abs().max().item()
    return f"{int(unequal.sum()):,} of {a.numel():,} numbers, by at most {gap:.3g}"
