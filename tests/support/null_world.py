"""Null kinds and stages: an engine without torch, whose programs are plain numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import etgraph
from etgraph.artifact import Artifact
from etgraph.recipes import Recipe, Through
from etgraph.registry import Registry, registry


@contextmanager
def null_world() -> Iterator[Registry]:
    """Register the null kinds and stages, and nothing else, for the length of a block."""
    with registry.scratch() as world:
        world.stages.clear()
        _declare()
        yield world


def _declare() -> None:
    @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
    class Seed(Artifact, kind="seed"):
        """The first kind."""

    @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
    class Sprout(Artifact, kind="sprout"):
        """The second kind."""

    @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
    class Flower(Artifact, kind="flower"):
        """Off the shortest way, as a quantized program is."""

    @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
    class Fruit(Artifact, kind="fruit"):
        """The last kind."""

    def grown(plant, kind, by):
        return plant.become(kind, methods={m: [*v, by] for m, v in plant.methods.items()})

    # The annotations are evaluated where they are written: these kinds are local to this function.
    def stage(**declaration):
        def register(function):
            function.__globals__.update(Seed=Seed, Sprout=Sprout, Flower=Flower, Fruit=Fruit)
            return etgraph.stage(**declaration)(function)

        return register

    @stage()
    def germinate(plant: Seed) -> Sprout:
        """Begin."""
        return grown(plant, Sprout, "germinate")

    @stage(on_request=True)
    def water(plant: Sprout, *, litres: int = 1) -> Sprout:
        """Stay a sprout."""
        return replace(plant, methods={m: [*v, f"water {litres}"] for m, v in plant.methods.items()})

    @stage(on_request=True)
    def bloom(plant: Sprout, *, colour: str) -> Flower:
        """Take the long way."""
        return grown(plant, Flower, f"bloom {colour}")

    @stage(cost=2.0)
    def ripen(plant: Sprout | Flower) -> Fruit:
        """End."""
        return grown(plant, Fruit, "ripen")

    @stage(way="express", on_request=True, cost=9.0, covers=("water",), note="one step")
    def grow_at_once(plant: Seed, *, water: dict | None = None) -> Fruit:
        """Skip all that is between."""
        return grown(plant, Fruit, f"grow_at_once {water}")

    @stage()
    def sift(plant: Sprout, *, mesh: int) -> Sprout:
        """Change nothing."""
        return plant.become(Sprout, methods=dict(plant.methods))

    @stage()
    def moody(plant: Sprout, *, mood: str) -> Sprout:
        """Fail as asked."""
        if mood == "bad":
            raise RuntimeError("bad mood")
        return plant.become(Sprout, methods=dict(plant.methods))

    def dice(plant: Sprout) -> Sprout:
        """Give something else each time, and say that it does not."""
        return plant.become(Sprout, methods={"forward": [str(random.random())]})

    dice.__etgraph_fingerprint__ = "thrown"
    stage()(dice)

    @stage()
    def grumble(plant: Sprout) -> Sprout:
        """Tell something."""
        etgraph.warn("leaves are yellow")
        return plant.become(Sprout, methods=dict(plant.methods))

    for kind in (Seed, Sprout, Flower, Fruit):
        etgraph.codec(
            kind.kind,
            encode=lambda plant: ({"methods": {m: list(v) for m, v in plant.methods.items()}}, {}),
            decode=lambda document, blobs, kind=kind: kind(methods=document["methods"]),
        )


def pourer(litres: int):
    """Make a stage that captures a value."""

    def pour(plant: Sprout) -> Sprout:  # noqa: F821
        """Water by what was captured."""
        return plant.become(type(plant), methods={"forward": [f"poured {litres}"]})

    return pour


def seed(**methods: list[str]) -> Artifact:
    """Make a seed; with one method by default."""
    from etgraph.artifact import KINDS

    return KINDS["seed"](methods=methods or {"forward": []})


PLAIN = Recipe(name="plain")
FLOWERING = Recipe(
    name="flowering",
    stages={"bloom": {"colour": "red"}},
    through=(Through("flower", "blooms", instead="plain"),),
)
