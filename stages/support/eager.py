"""Eager models: what may be exported, and how a method other than `forward` is."""

from __future__ import annotations

import copy
import types
from typing import Any

import torch


def as_module(method: Any) -> torch.nn.Module:
    """Return a module whose `forward` is the method; a bound method keeps the names of its module's weights.

    The module that a bound method belongs to is not touched: the view shares its weights and is of a class made
    for it, whose `forward` is that method.
    """
    if isinstance(method, torch.nn.Module):
        return method
    assert isinstance(method, types.MethodType)
    owner = method.__self__
    view = copy.copy(owner)
    cls = type(owner)
    # Object.__setattr__: nn.Module's own would look for a parameter or submodule of that name.
    object.__setattr__(view, "__class__", type(cls.__name__, (cls,), {"forward": _as_forward(method.__func__)}))
    return view


def _as_forward(function: Any) -> Any:
    """Return a function under the name `forward`: torch keeps the source lines of frames of that name alone."""
    if not isinstance(function, types.FunctionType):
        return function
    code = function.__code__.replace(co_name="forward")
    named = types.FunctionType(code, function.__globals__, "forward", function.__defaults__, function.__closure__)
    named.__kwdefaults__ = function.__kwdefaults__
    named.__annotations__ = function.__annotations__
    named.__module__, named.__doc__ = function.__module__, function.__doc__
    return named


def is_method_of_module(value: Any) -> bool:
    """Whether a value is a bound method of an `nn.Module`."""
    return isinstance(value, types.MethodType) and isinstance(value.__self__, torch.nn.Module)
