"""Several recipes as one, in a stated order: lists are joined, everything else must agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from etgraph.errors import Undescribable, UsageError
from etgraph.identity import describe
from etgraph.recipes import Deferred, Recipe, Through

__all__ = ["combine"]


class _Owned(NamedTuple):
    """A value and the recipe that it is from."""

    owner: str
    value: Any


def combine(recipes: Sequence[Recipe]) -> Recipe:
    """Return one recipe that wants what all of these want.

    Options that are lists (partitioners, passes, quantizers) are joined in the order of the recipes; mappings from
    method to list are joined method by method. All other options must be equal by value where two recipes give them;
    a recipe that leaves one open takes the other's. None of the recipes is changed.

    Raises:
        UsageError: there are none, or two contradict each other; names both, the stage, the option and the field.
    """
    if not recipes:
        raise UsageError("an empty list of recipes was given", hint="Give at least one.")
    if len(recipes) == 1:
        return recipes[0]
    names = _distinct([recipe.name for recipe in recipes])
    way, reason = _way(recipes, names)
    return Recipe(
        name="+".join(recipe.name for recipe in recipes),
        stages=_stages(recipes, names),
        through=_through(recipes),
        way=way,
        way_reason=reason,
        summary="; then ".join(recipe.summary for recipe in recipes if recipe.summary),
        backends=tuple(dict.fromkeys(backend for recipe in recipes for backend in recipe.backends)),
    )


def _distinct(names: list[str]) -> list[str]:
    """Tell recipes of one name apart by their place."""
    return [f"{name} (number {i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _way(recipes: Sequence[Recipe], names: list[str]) -> tuple[str, str]:
    wanted = {recipe.way: (name, recipe.way_reason) for recipe, name in zip(recipes, names, strict=True) if recipe.way}
    if len(wanted) > 1:
        (one, (a, why_a)), (other, (b, why_b)), *_ = wanted.items()
        raise UsageError(
            f"recipe {a} can only go the {one} way ({why_a}), and recipe {b} only the {other} way ({why_b})",
            hint="Make them go the same way, or make two programs.",
        )
    for way, (name, why) in wanted.items():
        return way, f"{name}: {why}" if why else name
    return "", ""


def _through(recipes: Sequence[Recipe]) -> tuple[Through, ...]:
    merged: dict[str, Through] = {}
    for through in (one for recipe in recipes for one in recipe.through):
        known = merged.get(through.kind)
        if known is None:
            merged[through.kind] = through
        elif known != through:
            does = known.does if through.does in known.does else f"{known.does}, then {through.does}"
            instead = known.instead if known.instead == through.instead else ""
            # Where one of them can begin anywhere, the other's beginning still binds the whole.
            merged[through.kind] = Through(through.kind, does, instead, known.at or through.at)
    return tuple(merged.values())


def _stages(recipes: Sequence[Recipe], names: list[str]) -> dict[str, dict[str, Any]]:
    order = dict.fromkeys(stage for recipe in recipes for stage in recipe.stages)
    merged: dict[str, dict[str, Any]] = {}
    for stage in order:
        merged[stage] = {}
        given: dict[str, list[_Owned]] = {}
        for recipe, name in zip(recipes, names, strict=True):
            for option, value in recipe.stages.get(stage, {}).items():
                given.setdefault(option, []).append(_Owned(name, value))
        for option, values in given.items():
            merged[stage][option] = _merged(f"{stage}.{option}", values)
    return merged


def _merged(what: str, values: list[_Owned]) -> Any:
    """Merge what several recipes give for one option; `what` names it in messages."""
    if len(values) == 1:
        return values[0].value
    made = [_Owned(owner, value.make() if isinstance(value, Deferred) else value) for owner, value in values]
    made = [one for one in made if one.value is not None]
    if len(made) < 2:
        return made[0].value if made else None
    first, *rest = made
    for other in rest:
        first = _Owned(first.owner, _both(what, first, other))
    return first.value


def _both(what: str, one: _Owned, other: _Owned) -> Any:
    a, b = one.value, other.value
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        # A named kind of tuple stays what it is: recipes mark their calibration functions so.
        return type(a)([*a, *b]) if type(a) is type(b) else [*a, *b]
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return {key: _of_key(what, key, one, other) for key in dict.fromkeys((*a, *b))}
    if any(isinstance(a, form) != isinstance(b, form) for form in (list | tuple, Mapping)):
        raise UsageError(
            f"recipe {one.owner} gives {what} as a {type(a).__name__}, and recipe {other.owner} as a "
            f"{type(b).__name__}",
            hint="Give both as a list for every method, or both as a mapping from method to list.",
        )
    conflict = _conflict(a, b)
    if conflict:
        raise UsageError(
            f"recipes {one.owner} and {other.owner} contradict each other in {what}: "
            + "; ".join(f"{field} is {x} in {one.owner} and {y} in {other.owner}" for field, x, y in conflict),
            hint="Change one of them, or make a program of each.",
        )
    return a


def _of_key(what: str, key: Any, one: _Owned, other: _Owned) -> Any:
    given = [_Owned(o.owner, o.value[key]) for o in (one, other) if key in o.value]
    return given[0].value if len(given) == 1 else _both(f"{what}[{key!r}]", *given)


def _conflict(a: Any, b: Any) -> list[tuple[str, str, str]]:
    """Return the fields in which two values differ, with both values in words; none when they are equal."""
    if a is b:
        return []
    if type(a) is type(b) and dataclasses.is_dataclass(a) and not isinstance(a, type):
        pairs = ((f.name, getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
        return [(name, _shown(x), _shown(y)) for name, x, y in pairs if not _same(x, y)]
    return [] if _same(a, b) else [("the value", _shown(a), _shown(b))]


def _same(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if isinstance(x, bool | int | float | str) or isinstance(y, bool | int | float | str):
        return type(x) is type(y) and bool(x == y)
    if _operators(x) and _operators(y):
        # Which operators to keep is a set; in what order they are named says nothing.
        return {str(op) for op in x} == {str(op) for op in y}
    try:
        return describe(x).digest == describe(y).digest
    except Undescribable:
        return False


def _operators(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(hasattr(op, "_schema") for op in value)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(_shown(one) for one in _ordered(value))}]"
    text = str(value)
    return text.partition(" object at 0x")[0].lstrip("<") if " object at 0x" in text else text


def _ordered(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=str) if isinstance(values, set | frozenset) else list(values)
