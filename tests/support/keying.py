"""The key of one step on one program, without running it."""

from __future__ import annotations

from typing import Any

from etgraph.artifact import Artifact, Kind
from etgraph.held import Held
from etgraph.keys import Key, key_of
from etgraph.planned import PlannedStep
from etgraph.planner import _marked_for_debug
from etgraph.registry import registry


def planned(stage: str, consumes: str, **options: Any) -> PlannedStep:
    """Plan one step as a recipe with these options would."""
    registry.load_plugins()
    definition = registry.stages[stage]
    assert set(options) <= set(definition.options)
    step = PlannedStep(stage, Kind(consumes), definition.result_of(consumes), options, "asked for", definition)
    return _marked_for_debug([step])[0]


def full_key(stage: str, given: Artifact | Held, **options: Any) -> Key:
    """Return the key of a step on a program, with its parts."""
    held = given if isinstance(given, Held) else Held.of(given, "a label")
    return key_of(planned(stage, held.kind, **options), held)


def key(stage: str, given: Artifact | Held, **options: Any) -> str:
    """Return the digest of the key of a step on a program."""
    return full_key(stage, given, **options).digest
