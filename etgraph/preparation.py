"""From what a caller gives to a plan: nothing has run, and no calibration input was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from etgraph import planner
from etgraph.artifact import KINDS, Kind, Source
from etgraph.calibration import Calibration
from etgraph.errors import UsageError
from etgraph.held import Held
from etgraph.lookup import get_recipe, recipe_of
from etgraph.memo import Memo
from etgraph.planned import Plan, Request
from etgraph.recipes import Recipe, closest
from etgraph.registry import registry
from etgraph.targets import Target

__all__ = ["DEFAULT_RECIPE", "Asked", "calibration_of", "needs_the_backend", "planned"]

DEFAULT_RECIPE = "xnnpack_fp32"


@dataclass(frozen=True)
class Asked:
    """What a run is asked for: a recipe or a target, the kind to end at, and the way."""

    recipe: Any
    target: Target | None
    to: str
    path: str

    def chosen(self, start: str) -> Recipe:
        """Return the recipe that is meant for a program at a kind."""
        if self.target is not None:
            return recipe_of(self.target)
        if self.recipe is None and start == "executorch":
            # A finished program: nothing is left for a recipe to say.
            return get_recipe("portable")
        return get_recipe(DEFAULT_RECIPE if self.recipe is None else self.recipe)


def calibration_of(source: Any, held: Held, given: Any) -> Calibration:
    """Hold calibration inputs in whatever form they were given."""
    if given is None and isinstance(source, Source):
        given = source.calibration_inputs
    return Calibration(given, held.methods, lambda: held.artifact().example_inputs)


def planned(held: Held, asked: Asked, calibration: Calibration, memo: Memo | None) -> Plan:
    """Plan a run on a program."""
    registry.load_plugins()
    request = Request(
        start=held.kind,
        provenance=held.provenance,
        passed=held.passed,
        goal=_kind_named(asked.to),
        recipe=asked.chosen(held.kind),
        path=asked.path,
        supplied={"calibration_inputs": calibration},
        in_hand=held.artifact,
    )
    made = planner.make(request, registry.stages)
    for step in made.steps:
        if step.definition.check is not None and step.consumes == held.kind:
            step.definition.check(held.artifact())
    if asked.path == "auto" and memo is not None and not memo.refresh:
        made = _by_way_of_the_cache(made, held, memo)
    used = any(value is calibration for step in made.steps for value in step.options.values())
    if calibration.given and not used:
        made = replace(made, notes=(*made.notes, "calibration inputs were given, and no step on the way calibrates"))
    if asked.recipe is None and asked.target is None and made.steps:
        made = replace(made, notes=(f"no recipe was given, so {DEFAULT_RECIPE} is meant", *made.notes))
    if asked.target is not None:
        made = replace(made, notes=(*_about(asked.target, made), *made.notes))
    return made


def _about(target: Target, made: Plan) -> list[str]:
    """Say in which order backends take parts of a program, and what is missing here."""
    order = ", then ".join(target.backends)
    notes = [f"each takes what those before it left: {order}"] if len(target.backends) > 1 else []
    lacks = target.to_lower.missing() if needs_the_backend(made) else ()
    return [*notes, *([f"cannot be lowered here: {'; '.join(lacks)}"] if lacks else [])]


def needs_the_backend(made: Plan) -> bool:
    """Whether a plan goes as far as where something of a backend may be called: past the capture of a module."""
    return any(step.consumes != "module" for step in made.steps)


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
    if not isinstance(name, str) or name not in KINDS:
        raise UsageError(
            f"there is no kind {str(name)!r}{closest(str(name), KINDS)}", hint=f"Kinds: {', '.join(KINDS)}."
        )
    return Kind(name)
