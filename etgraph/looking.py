"""Looking inside: what a recipe's backends would take of a program and why not the rest; how two programs differ."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from etgraph import api
from etgraph.artifact import Artifact
from etgraph.delegation import DelegationCheck
from etgraph.difference import TOPICS, Difference, ProgramChange, Side
from etgraph.errors import EtgraphError, Undescribable, UsageError
from etgraph.held import identity_of
from etgraph.identity import differences
from etgraph.lookup import get_recipe, get_target, recipe_of
from etgraph.preparation import DEFAULT_RECIPE
from etgraph.recipes import Recipe, evaluated
from etgraph.registry import registry
from etgraph.runner import Event, OnEvent, Step, own_copies
from etgraph.sources import artifact_of
from etgraph.targets import Target

__all__ = ["check", "diff"]

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


def diff(a: Any, b: Any, *, names: tuple[str, str] | None = None, trust: bool = False) -> Difference:
    """Compare two programs of any kinds, each given as anything that `etgraph.run` takes.

    Args:
        names: what to call them; paths are called by themselves, everything else `a` and `b`.
        trust: load foreign files even if that may run code which is inside them.

    Returns:
        operators added and gone, moved into or out of delegates, or called with other constants; weights, inputs,
        outputs, options, sizes and versions that changed. It is `same` where nothing did.
    """
    called = names or (_called(a, "a"), _called(b, "b"))
    first, second = artifact_of(a, trust=trust), artifact_of(b, trust=trust)
    sides = _side(called[0], first), _side(called[1], second)
    if sides[0].fingerprint and sides[0].fingerprint == sides[1].fingerprint:
        return Difference(*sides, ())
    changes, notes = registry.service("differences")(first, second)
    if first.kind == second.kind == "module":
        changes += _code(first, second, notes)
    changes += _versions(a, b)
    if not changes and sides[0].fingerprint and sides[1].fingerprint:
        # Never to be called equal: something that enters the fingerprint is not among what is compared.
        changes.append(ProgramChange("bytes", "", "fingerprint", sides[0].fingerprint, sides[1].fingerprint))
    order = list(TOPICS)
    return Difference(*sides, tuple(sorted(changes, key=lambda change: order.index(change.topic))), tuple(notes))


def _called(given: Any, otherwise: str) -> str:
    return os.fspath(given) if isinstance(given, str | os.PathLike) else otherwise


def _side(name: str, artifact: Artifact) -> Side:
    try:
        return Side(name, str(artifact.kind), artifact.fingerprint)
    except EtgraphError as error:
        return Side(name, str(artifact.kind), "", error.problem)


def _code(a: Artifact, b: Artifact, notes: list[str]) -> list[ProgramChange]:
    """Compare eager models by what the cache knows them by: their code, and what they hold besides weights."""
    try:
        before, after = (_parts(one) for one in (a, b))
    except (Undescribable, UsageError) as error:
        notes.append(f"the code of the models is not compared: {error.problem}")
        return []
    # Weights are compared number by number.
    return [
        ProgramChange("code", "", one.path.removesuffix("(code)") or one.path, one.old, one.new)
        for one in differences(before, after)
        if not (one.old or one.new or "").startswith(("Parameter ", "Tensor ", "Buffer "))
    ]


def _parts(artifact: Artifact) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, description in identity_of(artifact).items():
        found.update(description.parts(name))
    return found


def _versions(a: Any, b: Any) -> list[ProgramChange]:
    """Compare the versions that two files of etgraph's were written with."""
    known = [registry.service("file_versions")(one) if isinstance(one, str | os.PathLike) else {} for one in (a, b)]
    if not all(known):
        return []
    names = dict.fromkeys([*known[0], *known[1]])
    return [
        ProgramChange("versions", "", name, known[0].get(name), known[1].get(name))
        for name in names
        if known[0].get(name) != known[1].get(name)
    ]
