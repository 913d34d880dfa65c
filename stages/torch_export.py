"""From eager module to exported program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import etgraph
from etgraph.artifact import Exported, Module
from etgraph.errors import UsageError


def _has_samples(model: Module) -> None:
    for method, callable_ in model.methods.items():
        if not model.example_inputs.get(method):
            raise UsageError(
                f"method {method!r} has no example inputs, and torch.export needs one sample to trace with",
                hint="Give example_inputs (on the command line: --shape 1x3x224x224, or return them with the model).",
            )
        if method == "forward" and _without_forward(callable_):
            raise UsageError(
                f"{type(callable_).__name__} has no forward",
                hint="Name its methods with their inputs: example_inputs={'encode': (...,), 'decode': (...,)}.",
            )


def _without_forward(module: Any) -> bool:
    import torch

    return getattr(type(module), "forward", None) is torch.nn.Module.forward


@etgraph.stage(cost=1.0, check=_has_samples)
def torch_export(model: Module, *, strict: bool = False, eval_mode: bool = False) -> Exported:
    """Capture each method with `torch.export.export`.

    Args:
        model: modules with at least one sample of example inputs per method.
        strict: trace with TorchDynamo; `torch.export.export` itself defaults to False.
        eval_mode: export as `model.eval()` would. The caller's module keeps its own flags in either case.
    """
    import torch

    from stages.support.eager import as_module

    _has_samples(model)
    programs = {}
    for method, callable_ in model.methods.items():
        first = model.example_inputs[method][0]
        with etgraph.at(method), torch.no_grad():
            module = as_module(callable_)
            with _evaluating(module, eval_mode):
                programs[method] = torch.export.export(
                    module,
                    first.args,
                    dict(first.kwargs) or None,
                    dynamic_shapes=model.dynamic_shapes.get(method),
                    strict=strict,
                )
            _warn_of_training(method, programs[method])
    return model.become(Exported, methods=programs)


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
    from stages.support.programs import all_nodes

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
