"""Train a program with fake quantization in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Prepared
from etgraph.errors import Undescribable, UsageError


def _nothing_to_do(options: Mapping[str, Any], situation: etgraph.Situation) -> str:
    if options.get("train_fn") is not None:
        return ""
    if situation.start == "prepared" and not _untrained(situation.in_hand()):
        return "there is no train_fn, and the program in hand has seen values already"
    if situation.goal == "prepared":
        return "there is no train_fn: train the prepared program before going on"
    raise UsageError(
        f"recipe {situation.recipe} is for quantization-aware training, and has no train_fn",
        hint="Give it a function that trains a prepared torch.fx.GraphModule; or stop at 'prepared', train that, and "
        "go on from it.",
    )


def _untrained(program: Any) -> bool:
    from stages.support.prepared import blind_observers

    return any(blind_observers(module) for module in program.methods.values())


def _declared_only(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take what a training function says that it depends on; its code alone does not tell what data it reads."""
    function = options.get("train_fn")
    if function is not None and not hasattr(function, "__etgraph_fingerprint__"):
        raise Undescribable(
            "its code does not say which data it reads",
            path="train_fn",
            type_name=type(function).__qualname__,
            hint="Set an attribute __etgraph_fingerprint__ on the function that names its data and their version, "
            "and the trained program can be reused.",
        )
    return options


@etgraph.stage(idle=_nothing_to_do, key_options=_declared_only, cost=10.0, reads_inputs=False, redefines="trained")
def train(program: Prepared, *, train_fn: Callable[[Any], Any] | None = None) -> Prepared:
    """Give each method's prepared graph module, in training mode and with weights of its own, to a function.

    Args:
        program: it is copied, weights included.
        train_fn: trains the `torch.fx.GraphModule` that it is given, in place. What it returns is not used.
    """
    from torchao.quantization.pt2e import (
        allow_exported_model_train_eval,
        move_exported_model_to_eval,
        move_exported_model_to_train,
    )

    from stages.support.prepared import own_copy

    if train_fn is None:
        raise UsageError("train was given no train_fn", hint="Give a function that trains a torch.fx.GraphModule.")
    modules = {}
    for method, module in program.methods.items():
        with etgraph.at(method):
            trained = own_copy(module, share_parameters=False)
            allow_exported_model_train_eval(trained)
            move_exported_model_to_train(trained)
            train_fn(trained)
            move_exported_model_to_eval(trained)
        modules[method] = trained
    return replace(program, methods=modules)
