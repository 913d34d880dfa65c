"""The calls that users make: `run`, `plan`, `detect`, `load`, `fingerprint`, `get_recipe`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from etgraph import planner
from etgraph.artifact import KINDS, Artifact, Kind, Source
from etgraph.calibration import Calibration
from etgraph.combine import combine
from etgraph.errors import UsageError
from etgraph.held import Held
from etgraph.memo import Memo, opened
from etgraph.planner import Plan, Request
from etgraph.recipes import Recipe, closest
from etgraph.registry import registry
from etgraph.result import Result
from etgraph.runner import OnEvent, execute
from etgraph.sources import artifact_of, hold, recognised

__all__ = ["DEFAULT_RECIPE", "detect", "fingerprint", "get_recipe", "load", "plan", "run"]

DEFAULT_RECIPE = "xnnpack_fp32"


def run(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
) -> Result:
    """Bring a program from the kind it is at to the kind asked for.

    Args:
        source: a module, an ExportedProgram, an EdgeProgramManager, a mapping of methods, a path, an artifact.
        example_inputs: a tuple of positional inputs, a list of such samples, `etgraph.Inputs(*args, **kwargs)`, or a
            mapping from method to one of these. The first sample is traced with; all are verified with.
        recipe: a `Recipe`, the name of one, one of upstream's, or a list of these, which are combined in that order;
            `xnnpack_fp32` when not given.
        to: the kind to end at.
        path: `auto`, `combined` or `split`.
        dynamic_shapes: as `torch.export.export` takes them, or a mapping from method to that.
        constant_methods: method name to the constant that it returns.
        calibration_inputs: samples for static quantization: a list, a function that returns an iterable, a generator,
            a DataLoader, or a mapping from method to one of these. Planning reads none of them.
        cache: True for the user's cache, an `etgraph.Cache`, or False for none.
        refresh: build everything anew, and store it.
        check_cache: build what is in the cache too, and compare; raises `CacheMismatchError`.
        keep: kinds whose artifacts stay in memory, for `result[kind]`.
        on_event: called with an `Event` as steps start, report progress and finish.
        trust: load a foreign file even if that may run code which is inside it.

    Raises:
        UsageError: the request is wrong; nothing was run.
        StageError: a stage failed; the error has its address.
    """
    store = opened(cache)
    held = hold(source, example_inputs, dynamic_shapes, constant_methods, trust=trust, cache=store)
    memo = Memo(store, refresh=refresh, check=check_cache) if store is not None else None
    calibration = _calibration(source, held, calibration_inputs)
    made = _planned(held, recipe, to, path, calibration, memo)
    unknown = sorted(set(keep) - set(made.kinds))
    if unknown:
        raise UsageError(
            f"keep names {', '.join(unknown)}, and the way is {' -> '.join(made.kinds)}",
            hint="Keep kinds that are on the way.",
        )
    before = _state_of(held)

    def rebuild(kind: str) -> Artifact:
        if _state_of(held) != before:
            raise UsageError(
                f"{kind!r} was released during the run, and the source has changed since, so it cannot be made again",
                hint=f"Pass keep=[{kind!r}] to etgraph.run to hold on to it.",
            )
        last = max(i for i, step in enumerate(made.steps) if step.produces == kind)
        again = Memo(store) if store is not None else None
        return execute(replace(made, steps=made.steps[: last + 1]), held, memo=again)[0]

    calibration.start()
    try:
        last, steps, kept = execute(made, held, memo=memo, on_event=on_event, keep=keep)
    finally:
        calibration.release()
    problems = tuple(store.problems) if store is not None else ()
    return Result(artifact=last, plan=made, steps=steps, held=held, kept=kept, rebuild=rebuild, cache_problems=problems)


def plan(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
) -> Plan:
    """Plan what `run` with the same arguments would do, and do nothing."""
    del keep, on_event
    store = opened(cache)
    held = hold(source, example_inputs, dynamic_shapes, constant_methods, trust=trust, cache=store)
    memo = Memo(store, refresh=refresh, check=check_cache) if store is not None else None
    return _planned(held, recipe, to, path, _calibration(source, held, calibration_inputs), memo)


def _state_of(held: Held) -> Any:
    """Return something that tells whether a source that the caller holds was written to; None for a file."""
    if held.kind != "module" and held.in_file:
        return None
    state = registry.services.get("state_of")
    return state(held.artifact()) if state is not None else None


def _calibration(source: Any, held: Held, given: Any) -> Calibration:
    if given is None and isinstance(source, Source):
        given = source.calibration_inputs
    return Calibration(given, held.methods, lambda: held.artifact().example_inputs)


def _planned(held: Held, recipe: Any, to: str, path: str, calibration: Calibration, memo: Memo | None) -> Plan:
    registry.load_plugins()
    request = Request(
        start=held.kind,
        provenance=held.provenance,
        passed=held.passed,
        goal=_kind_named(to),
        recipe=get_recipe(DEFAULT_RECIPE if recipe is None else recipe),
        path=path,
        supplied={"calibration_inputs": calibration},
        in_hand=held.artifact,
    )
    made = planner.make(request, registry.stages)
    for step in made.steps:
        if step.definition.check is not None and step.consumes == held.kind:
            step.definition.check(held.artifact())
    if path == "auto" and memo is not None and not memo.refresh:
        made = _by_way_of_the_cache(made, held, memo)
    used = any(value is calibration for step in made.steps for value in step.options.values())
    if calibration.given and not used:
        made = replace(made, notes=(*made.notes, "calibration inputs were given, and no step on the way calibrates"))
    if recipe is None and made.steps:
        made = replace(made, notes=(f"no recipe was given, so {DEFAULT_RECIPE} is meant", *made.notes))
    return made


def _by_way_of_the_cache(made: Plan, held: Held, memo: Memo) -> Plan:
    """Prefer another way that gives the same program, when more of its work is in the cache already."""
    ways = {step.definition.way for step in made.steps} - {""}
    if not ways or made.request.recipe.way:
        return made
    best, least = made, _remaining_cost(made, held, memo)
    for way in sorted({stage.way for stage in registry.stages.values()} - ways - {""}):
        try:
            other = planner.make(replace(made.request, path=way), registry.stages)
        except UsageError:
            continue
        cost = _remaining_cost(other, held, memo)
        if cost < least:
            note = f"path {way!r}, because more of it is in the cache; it gives the same program"
            best, least = replace(other, notes=(*other.notes, note)), cost
    return best


def _remaining_cost(made: Plan, held: Held, memo: Memo) -> float:
    """Add up what the steps cost that are not in the cache, as far as that can be known before the run."""
    current: Held | None = held
    cost = 0.0
    for step in made.steps:
        current = memo.peek(step, current) if current is not None else None
        if current is None:
            cost += step.definition.cost
    return cost


def _kind_named(name: str) -> Kind:
    if name not in KINDS:
        raise UsageError(
            f"there is no kind {str(name)!r}{closest(str(name), KINDS)}", hint=f"Kinds: {', '.join(KINDS)}."
        )
    return Kind(name)


def get_recipe(given: Any, **options: Any) -> Recipe:
    """Return a recipe by name, from one of upstream's recipe objects, or as it is.

    Args:
        given: a `Recipe`, a name that `etgraph list recipes` shows, an upstream `ExportRecipe` or `RecipeType`; or a
            list of these, which are combined in that order.
        options: what the recipe can be asked to vary, such as `group_size=32`.
    """
    if isinstance(given, list | tuple):
        if options:
            raise UsageError(
                f"options {', '.join(options)} were given for a list of recipes",
                hint="Give them to the recipe that has them: [etgraph.get_recipe(name, option=...), ...].",
            )
        return combine([get_recipe(one) for one in given])
    if isinstance(given, Recipe):
        if options:
            raise UsageError(f"options {', '.join(options)} were given for recipe {given.name}, already made")
        return given
    registry.load_plugins()
    if isinstance(given, str) and given in registry.recipes:
        return _built(given, options)
    for adapter in registry.adapters:
        adapted = adapter(given, options)
        if adapted is not None:
            return adapted
    if isinstance(given, str):
        raise UsageError(
            f"there is no recipe {given!r}{closest(given, registry.recipes)}",
            hint=f"Known: {', '.join(sorted(registry.recipes))}, and every recipe of upstream's by its name.",
        )
    raise UsageError(
        f"a {type(given).__name__} is not a recipe",
        hint="Give an etgraph.Recipe, the name of a recipe, or upstream's ExportRecipe or RecipeType.",
    )


def _built(name: str, options: Mapping[str, Any]) -> Recipe:
    build = registry.recipes[name].build
    known = inspect.signature(build).parameters
    for option in options:
        if option not in known:
            raise UsageError(
                f"recipe {name} has no option {option!r}{closest(option, known)}",
                hint=f"Its options: {', '.join(known) or 'none'}.",
            )
    return build(**options)


def detect(source: Any) -> Kind:
    """Say which kind an object or a file is; raise `UsageError` when it is none, or one that cannot be used."""
    if isinstance(source, str | os.PathLike):
        described = registry.service("describe_file")(source)
        return Kind(described.kind)
    if isinstance(source, Source):
        return detect(source.model)
    return recognised(source).kind


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Artifact:
    """Load an artifact from a file: etgraph's own, or one that torch or executorch wrote.

    Args:
        trust: load a foreign file even if that may run code which is inside it.
    """
    loaded: Artifact = registry.service("load_file")(path, trust=trust)
    return loaded


def fingerprint(source: Any) -> str:
    """Return a digest of what a program is: equal for equal programs, in every process."""
    return artifact_of(source).fingerprint
