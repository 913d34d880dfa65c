"""Recipes as data: which optional stages are wanted, with which options."""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from etgraph.errors import UsageError

__all__ = ["Deferred", "Recipe", "Through", "closest", "evaluated"]


@dataclass(frozen=True)
class Deferred:
    """An option that is made when its stage is about to run, by a module-level function without arguments.

    A recipe of deferred options can be listed, planned and looked up in the cache without importing a backend, and
    each run gets objects of its own.
    """

    make: Callable[[], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.make, types.FunctionType) or self.make.__closure__:
            raise UsageError(
                f"Deferred takes a module-level function without arguments, and was given {self.make!r}",
                hint="Write `def _partitioners(): ...` beside the recipe and give Deferred(_partitioners).",
            )

    def __repr__(self) -> str:
        return f"<made by {self.make.__module__}.{self.make.__qualname__}>"


def evaluated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the deferred ones made, also those of a stage whose work another one does."""
    return {name: _made(value) for name, value in options.items()}


def _made(value: Any) -> Any:
    if isinstance(value, Deferred):
        return value.make()
    if isinstance(value, Mapping) and any(isinstance(one, Deferred) for one in value.values()):
        return evaluated(value)
    return value


@dataclass(frozen=True)
class Through:
    """A kind that the way must pass, in words: `Through("quantized", "quantizes")`.

    `instead` names a recipe that does without, for the message when this one cannot be honoured. `at` names the one
    kind that this must begin at, where not every kind before `kind` will do.
    """

    kind: str
    does: str
    instead: str = ""
    at: str = ""


@dataclass(frozen=True)
class Recipe:
    """What to do on the way, as a value.

    Args:
        name: shown in plans and messages.
        stages: stage name to its options. An attached stage runs because it is named here, in this order;
            a stage between kinds gets these options if it is on the way.
        through: kinds that the way must pass, when it leads that far.
        way: the only way that can honour this recipe (`combined`, `split`), or empty.
        way_reason: why, in words.
        summary: one line for listings.
        backends: the runtime backends that its programs need, in order of preference.
    """

    name: str
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    through: tuple[Through, ...] = ()
    way: str = ""
    way_reason: str = ""
    summary: str = ""
    backends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        frozen = {name: types.MappingProxyType(dict(options)) for name, options in self.stages.items()}
        object.__setattr__(self, "stages", types.MappingProxyType(frozen))

    def with_options(self, stage: str, **options: Any) -> Recipe:
        """Return the same recipe with more options for one stage: `r.with_options("torch_export", strict=True)`."""
        changed = {**self.stages, stage: {**self.stages.get(stage, {}), **options}}
        return replace(self, stages=changed)


def closest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` when something known is close to a mistyped word, else nothing."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]!r}?" if matches else ""
