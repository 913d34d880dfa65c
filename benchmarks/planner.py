"""How long does planning take, by the number of stages?

Null kinds in a chain, a stage from each to the next; the plan uses all of them. Processor time of the one thread.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.common import Figure, show


def _stages(count: int) -> dict[str, object]:
    from dataclasses import dataclass

    from etgraph.artifact import Artifact
    from etgraph.declaration import declare

    kinds = []
    for number in range(count + 1):

        @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
        class Link(Artifact, kind=f"link{number}"):
            """A kind of the chain."""

        kinds.append(Link)
    stages = {}
    for number in range(count):

        def step(program, *, strength=1):
            """Go on to the next kind."""
            return program

        step.__annotations__ = {"program": kinds[number], "return": kinds[number + 1]}
        stages[f"step{number}"] = declare(step, name=f"step{number}")
    return stages


def _seconds(count: int) -> float:
    from etgraph import planner
    from etgraph.artifact import KINDS, Kind
    from etgraph.recipes import Recipe
    from etgraph.registry import registry

    with registry.scratch():
        known = dict(KINDS)
        stages = _stages(count)
        recipe = Recipe(name="chain", stages={f"step{count // 2}": {"strength": 2}})
        request = planner.Request(start=Kind("link0"), goal=Kind(f"link{count}"), recipe=recipe)
        times = []
        for _ in range(5 if count <= 1000 else 2):
            began = time.process_time()
            plan = planner.make(request, stages)
            times.append(time.process_time() - began)
        assert len(plan.steps) == count
        KINDS.clear()
        KINDS.update(known)
    return statistics.median(times)


def measure() -> list[Figure]:
    """Plan chains of 10 to 10,000 stages."""
    return [
        Figure(f"planning a chain of {count:,} stages", _seconds(count) * 1000, "ms", "<= 50" if count == 1000 else "")
        for count in (10, 100, 1000, 10_000)
    ]


if __name__ == "__main__":
    show(measure())
