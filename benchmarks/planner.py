"""Planner: how long does planning take, and how does it grow with the number of stages?

Null kinds in a chain with a stage from each to the next (`chain`), and two stages between each pair (`ladder`); the
plan goes through all kinds. Processor time of the one thread.

Parts: `chain`, `ladder`.
"""

from __future__ import annotations

import time

from benchmarks.asking import Ask, main, say
from benchmarks.figures import Answer, Figure, Series, exponent

COUNTS = (10, 100, 1000, 10_000)


def measure(ask: Ask) -> Answer:
    """Plan among 10 to 10,000 stages."""
    answer = Answer()
    counts = COUNTS[: 3 if ask.quick else None]
    lines = {}
    for shape, abreast in (("chain", 1), ("ladder", 2)):
        if not ask.wants(shape):
            continue
        medians = []
        for count in counts:
            say(f"planner: {shape} of {count:,} stages")
            times = _milliseconds(count, abreast, ask.times(5 if count <= 1000 else 2, quick=3))
            wanted = "<= 50" if count == 1000 and abreast == 1 else ""
            answer.figures.append(Figure("planner", f"a {shape} of {count:,} stages", times, "ms", wanted))
            medians.append(answer.figures[-1].median)
        # The first sizes are all fixed cost.
        power = exponent(counts[1:], medians[1:])
        what = f"{shape}: power of the number of stages that time grows with, from {counts[1]}"
        answer.figures.append(Figure("planner", what, (power,), "", "<= 1.3"))
        lines[shape] = medians
    if lines:
        x = tuple(map(float, counts))
        answer.series.append(Series("planner", "Planning", "stages", "ms of processor time", x, lines))
    return answer


def _stages(count: int, abreast: int) -> dict[str, object]:
    from dataclasses import dataclass

    from etgraph.artifact import Artifact
    from etgraph.declaration import declare

    kinds = []
    for number in range(count // abreast + 1):

        @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
        class Link(Artifact, kind=f"link{number}"):
            """A kind of the chain."""

        kinds.append(Link)
    stages = {}
    for number in range(count // abreast):
        for side in range(abreast):

            def step(program, *, strength=1):
                """Go on to the next kind."""
                return program

            step.__annotations__ = {"program": kinds[number], "return": kinds[number + 1]}
            name = f"step{number}" if side == 0 else f"other{number}"
            stages[name] = declare(step, name=name, cost=1.0 + side)
    return stages


def _milliseconds(count: int, abreast: int, rounds: int) -> tuple[float, ...]:
    from etgraph import planner
    from etgraph.artifact import KINDS, Kind
    from etgraph.recipes import Recipe
    from etgraph.registry import registry

    length = count // abreast
    with registry.scratch():
        known = dict(KINDS)
        stages = _stages(count, abreast)
        recipe = Recipe(name="chain", stages={f"step{length // 2}": {"strength": 2}})
        request = planner.Request(start=Kind("link0"), goal=Kind(f"link{length}"), recipe=recipe)
        times = []
        for _ in range(rounds):
            began = time.process_time()
            plan = planner.make(request, stages)
            times.append(1000 * (time.process_time() - began))
        assert len(plan.steps) == length
        KINDS.clear()
        KINDS.update(known)
    return tuple(times)


if __name__ == "__main__":
    main(measure, __doc__)
