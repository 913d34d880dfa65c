"""Weights as a summary: how many, how large, which are the largest."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import torch

LARGEST = 10


def weights_summary(
    named: Mapping[str, torch.Tensor], places: Mapping[str, str] = types.MappingProxyType({})
) -> dict[str, Any]:
    """Count tensors and bytes. A storage that several names share is counted once in `bytes`.

    Args:
        named: parameters, buffers and constants, by name; what is no tensor is left out.
        places: the names of those that a delegate has taken, to its backend.
    """
    tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
    storages: dict[Any, int] = {}
    for value in tensors.values():
        storage = value.untyped_storage()
        # A fake or meta tensor has no address, and then no storage to share.
        address = storage.data_ptr() if value.device.type != "meta" else 0
        storages[address or id(value)] = storage.nbytes()
    largest = sorted(tensors.items(), key=lambda item: (-item[1].nbytes, item[0]))[:LARGEST]
    return {
        "count": len(tensors),
        "numbers": sum(value.numel() for value in tensors.values()),
        "bytes": sum(storages.values()),
        "quantized_numbers": sum(value.numel() for value in tensors.values() if _in_few_bits(value)),
        "largest": [
            {
                "name": name,
                "dtype": str(value.dtype).removeprefix("torch."),
                "shape": list(value.shape),
                "bytes": value.nbytes,
                "place": places.get(name, ""),
            }
            for name, value in largest
        ],
    }


def _in_few_bits(value: torch.Tensor) -> bool:
    """Whether numbers are kept in 8 bits or fewer; truth values are none."""
    return value.dtype is not torch.bool and value.element_size() == 1 and value.dim() > 0
