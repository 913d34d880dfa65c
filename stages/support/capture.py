"""Capturing eager modules with `torch.export.export`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

import etgraph
from etgraph.artifact import Module
from etgraph.errors import UsageError
from stages.support.eager import as_module
from stages.support.programs import all_nodes


def check_samples(model: Module) -> None:
    """Refuse a model that lacks what a trace needs: a sample of inputs for each method, and a forward."""
    for method, callable_ in model.methods.items():
        if not model.example_inputs.get(method):
            raise UsageError(
                f"method {method!r} has no example inputs, and torch.export needs one sample to trace with",
                hint="Give example_inputs (on the command line: --shape 1x3x224x224, or return them with the model).",
            )
        if method == "forward" and getattr(type(callable_), "forward", None) is torch.nn.Module.forward:
            raise UsageError(
                f"{type(callable_).__name__} has no forward",
                hint="Name its methods with their inputs: example_inputs={'encode': (...,), 'decode': (...,)}.",
            )


def capture(
    model: Module, *, strict: bool, eval_mode: bool, dynamic_batch_size: bool = False
) -> dict[str, ExportedProgram]:
    """Capture each method by its first sample; the modules keep their training flags.

    Args:
        model: modules with at least one sample of example inputs per method.
        strict: trace with TorchDynamo.
        eval_mode: capture as `model.eval()` would.
        dynamic_batch_size: let the first size of every tensor input vary, for methods without dynamic shapes.
    """
    check_samples(model)
    programs = {}
    for method, callable_ in model.methods.items():
        first = model.example_inputs[method][0]
        with etgraph.at(method), torch.no_grad():
            module = as_module(callable_)
            shapes = model.dynamic_shapes.get(method)
            if shapes is None and dynamic_batch_size:
                shapes = _dynamic_batch(module, first.args, first.kwargs)
            with _evaluating(module, eval_mode):
                programs[method] = torch.export.export(
                    module, first.args, dict(first.kwargs) or None, dynamic_shapes=shapes, strict=strict
                )
            _name_module_calls(programs[method])
            _warn_of_training(method, programs[method])
    return programs


def _name_module_calls(program: ExportedProgram) -> None:
    """Name each entry of `nn_module_stack` by the module's path: TorchDynamo (strict) names it by its address.

    Otherwise one model would give another program in every process.
    """
    for node in all_nodes(program):
        stack = node.meta.get("nn_module_stack")
        if stack:
            node.meta["nn_module_stack"] = {f"L__self___{path}": (path, cls) for path, cls in stack.values()}


def _dynamic_batch(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return dynamic shapes in which the first size of every tensor is one and the same dimension."""
    batch = Dim("batch", min=1)
    given = inspect.signature(module.forward).bind(*args, **kwargs).arguments

    def first(value: Any) -> Any:
        return {0: batch} if isinstance(value, torch.Tensor) and value.dim() else None

    return {name: pytree.tree_map(first, value) for name, value in given.items()}


@contextmanager
def _evaluating(module: Any, wanted: bool) -> Iterator[None]:
    """Switch to eval for the length of a trace, and give every submodule back the flag that it had."""
    flags = {name: child.training for name, child in module.named_modules()} if wanted else {}
    if wanted:
        module.eval()
    try:
        yield
    finally:
        for name, child in module.named_modules():
            if name in flags:
                child.training = flags[name]


def _warn_of_training(method: str, program: Any) -> None:
    """Say so when the captured graph behaves as in training, which is seldom meant on a device."""
    found = set()
    for node in all_nodes(program):
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            continue
        names = [argument.name for argument in schema.arguments]
        values = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
        operator = schema.name.rpartition("::")[2]
        if values.get("train") is True or (values.get("training") is True and "norm" in operator):
            found.add(operator)
    if found:
        etgraph.warn(
            f"method {method!r} was exported in training mode: {', '.join(sorted(found))} will behave as in "
            "training on the device. Call model.eval() first, or export with eval_mode=True (--eval)."
        )
