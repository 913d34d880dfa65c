"""Quantizers: several as one, their names, and whether they need to see real values."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etgraph.errors import UsageError

_ACTIVATIONS = ("input_activation", "output_activation")


def one_quantizer(quantizers: Sequence[Any]) -> Any:
    """Return one quantizer that annotates what these do, in their order.

    Raises:
        UsageError: they cannot be put together.
    """
    from torchao.quantization.pt2e.quantizer import ComposableQuantizer, Quantizer

    if not quantizers:
        raise UsageError(
            "prepare was given no quantizer", hint="Give at least one, or a recipe that does not quantize."
        )
    if len(quantizers) == 1:
        return quantizers[0]
    # Core ML's quantizer is still one of torch.ao's, and these cannot be composed.
    others = [type(one).__name__ for one in quantizers if not isinstance(one, Quantizer)]
    if others:
        raise UsageError(
            f"{', '.join(others)} cannot be combined with other quantizers: only torchao's PT2E quantizers can "
            f"(given: {names_of(quantizers)})",
            hint="Quantize with one of them, and lower the quantized program for the other backend.",
        )
    return ComposableQuantizer(list(quantizers))


def names_of(quantizers: Sequence[Any]) -> str:
    """Return the class names of quantizers, for messages."""
    return ", ".join(dict.fromkeys(type(one).__name__ for one in quantizers))


def static_quantizers(quantizers: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of those that fix the range of activations ahead of time, so that they must see real values.

    A quantizer whose settings are not understood counts as one: calibrating too much costs time, calibrating with too
    little gives wrong numbers.
    """
    return tuple(type(one).__name__ for one in quantizers if _is_static(one))


def _is_static(quantizer: Any) -> bool:
    import torch

    verdicts = []
    for name, value in _settings(quantizer):
        if name in _ACTIVATIONS and value is not None:
            verdicts.append(not getattr(value, "is_dynamic", False))
        elif name in _ACTIVATIONS:
            verdicts.append(False)
        elif name == "activation_dtype":
            # Core ML's ModuleLinearQuantizerConfig: float activations mean that only weights are quantized.
            verdicts.append(not (isinstance(value, torch.dtype) and value.is_floating_point))
    return any(verdicts) if verdicts else True


def _settings(root: Any) -> Iterator[tuple[str, Any]]:
    """Walk the attributes of an object and of what they hold: name and value."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        current = pending.pop()
        if id(current) in seen or isinstance(current, type | types.FunctionType | types.ModuleType | str | bytes):
            continue
        seen.add(id(current))
        if isinstance(current, Mapping):
            pending.extend(current.values())
        elif isinstance(current, list | tuple | set | frozenset):
            pending.extend(current)
        else:
            for name, value in _attributes(current).items():
                yield name, value
                pending.append(value)


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if isinstance(name, str)]
    found = {name: getattr(value, name) for name in slots if name != "__weakref__" and hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}
