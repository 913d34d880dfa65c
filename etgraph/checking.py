"""`etgraph.check`: what a recipe's backends would take of a program, and why not the rest."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from etgraph import api
from etgraph.artifact import Artifact
from etgraph.delegation import DelegationCheck
from etgraph.errors import EtgraphError, UsageError
from etgraph.lookup import get_recipe, get_target, recipe_of
from etgraph.preparation import DEFAULT_RECIPE
from etgraph.recipes import Recipe, evaluated
from etgraph.registry import registry
from etgraph.runner import Event, OnEvent, Step, own_copies
from etgraph.sources import artifact_of
from etgraph.targets import Target

__all__ = ["check"]

#: What an edge program is made from.
_EXPORTED = ("exported", "quantized")


def check(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    *,
    target: str | Target | None = None,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    elsewhere: bool = True,
    cache: Any = True,
    refresh: bool = False,
    on_event: OnEvent | None = None,
    trust: bool = False,
) -> DelegationCheck:
    """Say which operators each backend of a recipe would take of a program, and why not the others.

    It goes as far as the edge program, through the cache like `etgraph.run`, and asks the partitioners. No backend
    compiles anything. Of a lowered program it shows what was taken, and gives reasons for what remains.

    Args:
        elsewhere: also ask the backends of other targets that can be lowered here about what is left.

    The other arguments are those of `etgraph.run`.

    Raises:
        UsageError: the request is wrong; nothing was run.
        StageError: a stage on the way to the edge program failed; the error has its address.
    """
    if target is not None and recipe is not None:
        raise UsageError("recipe and target were both given, and a target is a recipe", hint="Give one of the two.")
    hardware = _one_target(target)
    if hardware is not None:
        hardware.require()
    wanted = recipe_of(hardware) if hardware is not None else get_recipe(DEFAULT_RECIPE if recipe is None else recipe)
    meant = (f"no recipe was given, so {DEFAULT_RECIPE} is meant",) if recipe is None and target is None else ()
    given = {
        "example_inputs": example_inputs,
        "dynamic_shapes": dynamic_shapes,
        "constant_methods": constant_methods,
        "calibration_inputs": calibration_inputs,
        "cache": cache,
        "refresh": refresh,
        "on_event": on_event,
        "trust": trust,
    }
    kind = api.detect(source)
    how = _lowering_of(wanted, kind)
    if how == "to_operator_library":
        return _library(source, kind, wanted, given)
    found = _partitioners(source, kind, wanted, how, given, elsewhere)
    return replace(found, notes=(*meant, *found.notes))


def _one_target(target: Any) -> Target | None:
    if isinstance(target, list | tuple):
        raise UsageError(f"check looks at one target, and {len(target)} were given", hint="Call it for each.")
    return None if target is None else get_target(target)


def _lowering_of(recipe: Recipe, kind: str) -> str:
    """Return the stage of a recipe that says what is delegated: by partitioners, or into an operator library."""
    if kind == "executorch":
        raise UsageError(
            "a .pte has no operators left that a backend could take",
            hint="`etgraph inspect` shows its backends. Check the module or the program that it was made from.",
        )
    for stage in ("to_operator_library", "to_backend", "to_edge_transform_and_lower"):
        if stage in recipe.stages:
            return stage
    own = [name for name in recipe.stages if registry.stage(name).produces == "lowered"]
    raise UsageError(
        f"recipe {recipe.name} lowers by stage {own[0]}, which names no partitioners"
        if own
        else f"recipe {recipe.name} delegates nothing: every operator runs on portable kernels",
        hint="Check a recipe or a target with backends: `etgraph list recipes`, `etgraph list targets`.",
    )


def _partitioners(
    source: Any, kind: str, recipe: Recipe, stage: str, given: Mapping[str, Any], elsewhere: bool
) -> DelegationCheck:
    steps: tuple[Step, ...] = ()
    before: list[Callable[[], Artifact]] = []
    if kind == "lowered":
        program: Artifact = artifact_of(source, given["example_inputs"], trust=given["trust"])
        notes: tuple[str, ...] = ("the program is lowered already: the reasons are for what remains of it",)
    else:
        watching = _watching(given["on_event"], before)
        result = api.run(source, recipe=recipe, to="edge", **{**given, "on_event": watching})
        program, steps, notes = result.artifact, result.steps, result.plan.notes
        if not before and kind in _EXPORTED:
            before.append(lambda: result.source)
    options = own_copies(evaluated({"partitioners": recipe.stages[stage]["partitioners"]}))
    others = functools.partial(_others, recipe) if elsewhere else dict
    methods, said = registry.service("check_partitioners")(
        program, options["partitioners"], others, before[-1] if before else None
    )
    return DelegationCheck(kind, recipe.name, methods, steps, (*notes, *said))


def _watching(on_event: OnEvent | None, before: list[Callable[[], Artifact]]) -> OnEvent:
    """Note how to have the program from which the edge program is made; it is loaded only where it is asked for."""

    def watch(event: Event) -> None:
        if event.name == "step_finished" and event.held is not None and event.planned.produces in _EXPORTED:
            before.append(event.held.artifact)
        if on_event is not None:
            on_event(event)

    return watch


def _others(recipe: Recipe) -> dict[str, Any]:
    """Return partitioners of backends that a recipe does not use, for each that can be lowered for here."""
    found: dict[str, Any] = {}
    for backend, target in _targets_by_backend(recipe).items():
        try:
            with _root_logger_kept():
                stages = recipe_of(target).stages
                lowering = stages.get("to_backend") or stages["to_edge_transform_and_lower"]
                partitioners = evaluated(lowering)["partitioners"]
        except (EtgraphError, ImportError, KeyError):
            # It has no partitioners, or cannot be made here after all.
            continue
        if isinstance(partitioners, list | tuple) and partitioners:
            found[f"{target.name} ({backend})"] = partitioners
    return found


def _targets_by_backend(recipe: Recipe) -> dict[str, Target]:
    """Choose a target for each backend that a recipe does not use: one of the same precision where there is one."""
    precision = next((word for word in ("int8", "fp16") if word in recipe.name), "fp32")
    chosen: dict[str, Target] = {}
    for target in registry.targets.values():
        backend = target.backends[0]
        if backend in recipe.backends or target.to_lower.missing():
            continue
        if backend not in chosen or (target.precision == precision != chosen[backend].precision):
            chosen[backend] = target
    return chosen


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what backends do to the root logger when they are imported: Vulkan's sets its level, XNNPACK's a handler.

    (executorch 1.5; nobody asked for these backends.)
    """
    level, handlers = logging.root.level, logging.root.handlers[:]
    try:
        yield
    finally:
        logging.root.setLevel(level)
        logging.root.handlers[:] = handlers


def _library(source: Any, kind: str, recipe: Recipe, given: Mapping[str, Any]) -> DelegationCheck:
    if kind == "lowered":
        raise UsageError(
            f"the program is lowered already, and what recipe {recipe.name} rewrote cannot be told from it",
            hint="`etgraph inspect` shows its operators. Check the edge program that it was made from.",
        )
    library = recipe.stages["to_operator_library"]["library"]
    result = api.run(source, recipe=recipe, to="lowered", keep=["edge"], **given)
    methods = registry.service("check_library")(result["edge"], result.artifact, library, "to_operator_library")
    return DelegationCheck(kind, recipe.name, methods, result.steps, result.plan.notes)
