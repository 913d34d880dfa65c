"""torchao's `quantize_` on eager modules, and its configurations from plain data."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

import etgraph
from etgraph.errors import UsageError
from etgraph.recipes import closest

_SETTINGS = ("weight_bits", "group_size", "activations", "multiple_of")


def quantize_modules(
    methods: Mapping[str, Any], config: Any, filter_fn: Callable[[Any, str], bool] | None, *, in_place: bool
) -> dict[str, Any]:
    """Return modules (or bound methods of modules) with quantized weights; a module of several methods is done once.

    Of a mapping with `group_size` or `multiple_of`, layers whose number of input features one of them does not divide
    are left in float, with a warning that names them: torchao, or the backend, would fail at the first.
    """
    from torchao.quantization import quantize_
    from torchao.utils import unwrap_tensor_subclass

    # One deepcopy over all methods, so that modules and weights that they share stay shared.
    own = dict(methods) if in_place else copy.deepcopy(dict(methods))
    owners = {id(owner): owner for owner in map(_owner, own.values())}
    settings = config if isinstance(config, Mapping) else {}
    group_size, multiple_of = settings.get("group_size"), settings.get("multiple_of")
    for owner in owners.values():
        fitting = _Fitting(filter_fn, group_size, multiple_of)
        quantize_(owner, torchao_config(config), fitting if group_size or multiple_of else filter_fn)
        fitting.warn()
        # As upstream does: exported with the subclass left in, XNNPACK took weight-only layers and computed noise.
        unwrap_tensor_subclass(owner)
    return own


class _Fitting:
    """A filter that also leaves out layers whose input features the group size or `multiple_of` does not divide."""

    def __init__(
        self, filter_fn: Callable[[Any, str], bool] | None, group_size: int | None, multiple_of: int | None
    ) -> None:
        from torchao.quantization import quantize_

        self.wanted = filter_fn or inspect.signature(quantize_).parameters["filter_fn"].default
        self.group_size = group_size
        self.multiple_of = multiple_of
        self.left: dict[str, int] = {}
        self.odd: dict[str, int] = {}

    def __call__(self, module: Any, name: str) -> bool:
        if not self.wanted(module, name):
            return False
        features = module.weight.shape[-1]
        if self.multiple_of and features % self.multiple_of:
            self.odd[name] = features
            return False
        if self.group_size and features % self.group_size:
            self.left[name] = features
            return False
        return True

    def warn(self) -> None:
        """Name what was left out."""
        if self.left:
            etgraph.warn(
                f"group_size {self.group_size} does not divide the input features of {_shown(self.left)}: left in "
                "float; a smaller group_size, or None for one scale per output channel, takes them too"
            )
        if self.odd:
            etgraph.warn(
                f"the backend takes such weights where the input features are a multiple of {self.multiple_of}, which "
                f"those of {_shown(self.odd)} are not: left in float; 8-bit weights take them too"
            )


def _shown(left: Mapping[str, int]) -> str:
    shown = [f"{name or 'the module itself'} ({features})" for name, features in list(left.items())[:3]]
    return ", ".join(shown) + (f" and {len(left) - 3} more" if len(left) > 3 else "")


def _owner(method: Any) -> torch.nn.Module:
    owner: torch.nn.Module = method.__self__ if isinstance(method, types.MethodType) else method
    return owner


def packed_weights(methods: Mapping[str, Any]) -> dict[str, str]:
    """Return the tensors of modules that are of torchao's own kinds, by name: their type."""
    from torch.nn.utils.parametrize import is_parametrized
    from torchao.utils import TorchAOBaseTensor

    found = {}
    for owner in map(_owner, methods.values()):
        for name, module in owner.named_modules():
            own = [*dict(module.named_parameters(recurse=False)), *dict(module.named_buffers(recurse=False))]
            for tensor in (*own, *(module.parametrizations if is_parametrized(module) else ())):
                value = getattr(module, tensor)
                if isinstance(value, TorchAOBaseTensor):
                    found[f"{name}.{tensor}".lstrip(".")] = type(value).__name__
    return found


def torchao_config(config: Any) -> Any:
    """Return the torchao configuration that a mapping of settings stands for; a configuration is returned as it is."""
    if not isinstance(config, Mapping):
        return config
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerAxis, PerGroup

    for name in config:
        if name not in _SETTINGS:
            raise UsageError(
                f"weights cannot be quantized with a setting {name!r}{closest(name, _SETTINGS)}",
                hint=f"Settings: {', '.join(_SETTINGS)}.",
            )
    bits, group_size, activations = (config.get(name) for name in _SETTINGS[:3])
    if bits not in range(1, 9):
        raise UsageError(f"weight_bits is {bits!r}", hint="Give a whole number from 1 to 8.")
    if group_size is not None and (not isinstance(group_size, int) or group_size < 1):
        raise UsageError(
            f"group_size is {group_size!r}", hint="Give a whole number, or None for one scale per channel."
        )
    granularity = PerAxis(0) if group_size is None else PerGroup(group_size)
    dtype = getattr(torch, f"int{bits}")
    if activations == "int8_dynamic":
        return Int8DynamicActivationIntxWeightConfig(weight_dtype=dtype, weight_granularity=granularity)
    if activations is not None:
        raise UsageError(f"activations is {activations!r}", hint="Give 'int8_dynamic', or None.")
    return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


class QuantizeWeights:
    """A source transform that quantizes weights, for a recipe that goes on to quantize the exported program too."""

    def __init__(self, config: Any, filter_fn: Callable[[Any, str], bool] | None) -> None:
        self.config = config
        self.filter_fn = filter_fn

    def __call__(self, module: Any) -> Any:
        """Quantize in place; the stage that calls this copies."""
        return quantize_modules({"module": module}, self.config, self.filter_fn, in_place=True)["module"]
