"""Recipes and targets by what a caller gives: an object, a name, one of upstream's, a list."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from etgraph.combine import combine
from etgraph.errors import UsageError
from etgraph.recipes import Recipe, closest
from etgraph.registry import registry
from etgraph.spelling import read_options, shown_with
from etgraph.targets import Target

__all__ = ["get_recipe", "get_target", "recipe_of"]


def get_recipe(given: Any, **options: Any) -> Recipe:
    """Return a recipe by name, from one of upstream's recipe objects, or as it is.

    Args:
        given: a `Recipe`, a name that `etgraph list recipes` shows, an upstream `ExportRecipe` or `RecipeType`; or a
            list of these, which are combined in that order.
        options: what the recipe can be asked to vary, such as `group_size=32`; also as part of a name:
            `"xnnpack_8da4w(group_size=64)"`.
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
    if isinstance(given, str):
        given, options = _with_written(given, options)
    if isinstance(given, str) and given in registry.recipes:
        return _built(given, options)
    for adapter in registry.adapters:
        adapted = adapter(given, options)
        if adapted is not None:
            return replace(adapted, name=shown_with(adapted.name, options))
    if isinstance(given, str):
        if given in registry.targets:
            raise UsageError(f"{given!r} is a target, and was given as a recipe", hint=f"Give target={given!r}.")
        raise UsageError(
            f"there is no recipe {given!r}{closest(given, registry.recipes)}",
            hint=f"Known: {', '.join(sorted(registry.recipes))}, and every recipe of upstream's by its name.",
        )
    raise UsageError(
        f"a {type(given).__name__} is not a recipe",
        hint="Give an etgraph.Recipe, the name of a recipe, or upstream's ExportRecipe or RecipeType.",
    )


def _with_written(text: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a name without the options that are written behind it, and all options."""
    name, written = read_options(text)
    twice = sorted(set(written) & set(options))
    if twice:
        raise UsageError(f"option {', '.join(twice)} of {name} is given twice: in {text!r}, and beside it")
    return name, {**written, **options}


def _built(name: str, options: Mapping[str, Any]) -> Recipe:
    build = registry.recipes[name].build
    _check_options(f"recipe {name}", build, options)
    built = build(**options)
    return replace(built, name=shown_with(built.name, options))


def _check_options(owner: str, build: Callable[..., Recipe], options: Mapping[str, Any]) -> None:
    known = inspect.signature(build).parameters
    for option in options:
        if option not in known:
            raise UsageError(
                f"{owner} has no option {option!r}{closest(option, known)}",
                hint=f"Its options: {', '.join(known) or 'none'}.",
            )


def get_target(given: Any) -> Target:
    """Return a target by its name, with options or without (`"...-xnnpack-8da4w(group_size=64)"`), or as it is."""
    if isinstance(given, Target):
        return given
    if not isinstance(given, str):
        raise UsageError(
            f"a {type(given).__name__} is not a target", hint="Give the name of a target, or a list of names."
        )
    registry.load_plugins()
    name, options = read_options(given)
    if name not in registry.targets:
        raise UsageError(
            f"there is no target {name!r}{closest(name, registry.targets)}", hint="`etgraph list targets` shows all."
        )
    target = registry.targets[name]
    if not options:
        return target
    build: Callable[..., Recipe] = target.build
    _check_options(f"target {name}", build, options)
    return replace(target, name=shown_with(name, options), build=functools.partial(build, **options))


def recipe_of(target: Target) -> Recipe:
    """Return the recipe of a target, under the target's name.

    Raises:
        UsageError: it cannot be made without something that this host lacks.
    """
    try:
        made = target.build()
    except UsageError:
        # Where something is known to be missing, that is the reason, in the same words as everywhere.
        target.require()
        raise
    return replace(made, name=target.name, backends=target.backends)
