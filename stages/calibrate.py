"""Show a prepared program real inputs, so that its observers see the values that it will have to represent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Prepared
from etgraph.calibration import Calibration
from etgraph.errors import UsageError

_HOW = (
    "Give calibration_inputs= to etgraph.run (--calibration on the command line): a list, a function that returns an "
    "iterable, a generator or a DataLoader of inputs like those that the program will meet. The example inputs are "
    "taken when they are given here too."
)


def _nothing_to_do(options: Mapping[str, Any], situation: etgraph.Situation) -> str:
    given: Calibration = options["calibration_inputs"]
    missing = given.missing()
    if given.given:
        if missing:
            raise UsageError(f"there are no calibration inputs for {', '.join(missing)}", hint=_HOW)
        return ""
    if situation.start == "prepared" and not _blind(situation.in_hand()):
        return "the observers of the program in hand have seen values already"
    static = options.get("static", ())
    if not static and not missing:
        return ""
    why = f"{', '.join(static)} must see real values" if static else "there are no example inputs to use instead"
    if situation.goal == "prepared":
        return f"no calibration inputs were given, and {why}: calibrate the prepared program before going on"
    raise UsageError(f"recipe {situation.recipe} needs calibration_inputs, and was given none: {why}", hint=_HOW)


def _blind(program: Any) -> bool:
    from stages.support.prepared import blind_observers

    return any(blind_observers(module) for module in program.methods.values())


@etgraph.stage(idle=_nothing_to_do, cost=2.0, reads_inputs=False)
def calibrate(program: Prepared, *, calibration_inputs: Any, static: Sequence[str] = ()) -> Prepared:
    """Run each method on its calibration inputs.

    Args:
        program: it is copied; what its observers had seen before stays seen.
        calibration_inputs: an `etgraph.calibration.Calibration`, or anything that one is made of.
        static: the quantizers that must see real values; where there is none, example inputs will do.
    """
    import torch

    from stages.support.prepared import own_copy

    del static
    samples = calibration_inputs
    if not isinstance(samples, Calibration):
        samples = Calibration(samples, program.methods)
    modules = {method: own_copy(module, share_parameters=True) for method, module in program.methods.items()}
    done, of = 0, _total(samples, modules)
    for method, module in modules.items():
        with etgraph.at(method), torch.no_grad():
            for position, sample in enumerate(samples.samples(method)):
                _run(module, sample, method, position)
                done += 1
                etgraph.progress(done, of)
    return replace(program, methods=modules)


def _total(samples: Calibration, methods: Mapping[str, Any]) -> int | None:
    total = 0
    for method in methods:
        count = samples.count(method)
        if count is None:
            return None
        total += count
    return total


def _run(module: Any, sample: etgraph.Inputs, method: str, position: int) -> None:
    from torch.utils import _pytree as pytree

    if any(_has_nan(value) for value in pytree.tree_leaves((sample.args, sample.kwargs))):
        raise UsageError(
            f"calibration input {position} of method {method!r}, {sample!r}, has NaN in it, which gives no range",
            hint="Take it out, or look at how the samples are made.",
        )
    try:
        module(*sample.args, **sample.kwargs)
    except Exception as error:
        raise UsageError(
            f"calibration input {position} of method {method!r}, {sample!r}, cannot be run: {error}",
            hint="Each sample has the positional and keyword inputs, dtypes and shapes that the program was exported "
            "for; a DataLoader that also gives labels needs them taken out.",
        ) from error


def _has_nan(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any())
