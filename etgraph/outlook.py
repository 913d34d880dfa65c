"""What a run would reuse and what it would do, and why; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etgraph import api
from etgraph.errors import UsageError
from etgraph.held import Held
from etgraph.memo import Memo, opened
from etgraph.planned import Plan
from etgraph.sources import hold

__all__ = ["Foreseen", "outlook"]


@dataclass(frozen=True)
class Foreseen:
    """What would become of one planned step.

    Args:
        stage: the stage's name.
        consumes, produces: the kinds that it goes between.
        outcome: `reused`, `runs`, or `unknown`: what goes into it is not known before the step before it has run.
        reason: why.
    """

    stage: str
    consumes: str
    produces: str
    outcome: str
    reason: str


def outlook(
    source: Any,
    example_inputs: Any = None,
    *,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    cache: Any = True,
    refresh: bool = False,
    trust: bool = False,
    **rest: Any,
) -> tuple[Plan, tuple[Foreseen, ...]]:
    """Say for each step of a run with these arguments whether it would be reused, and why it would run if not.

    Takes the arguments of `etgraph.plan`. No stage is run.

    Raises:
        UsageError: the request is wrong, or the cache is off.
    """
    store = opened(cache)
    if store is None:
        raise UsageError(f"cache={cache!r}: without a cache nothing is reused", hint="Leave it out, or give a Cache.")
    given = {"dynamic_shapes": dynamic_shapes, "constant_methods": constant_methods, "trust": trust}
    plan = api.plan(source, example_inputs, cache=store, refresh=refresh, **given, **rest)
    memo = Memo(store, refresh=refresh)
    current: Held | None = hold(source, example_inputs, cache=store, **given)
    steps: list[Foreseen] = []
    for planned in plan.steps:
        if current is None:
            outcome = "unknown"
            reason = f"it would run after {steps[-1].stage}, whose output is not known yet"
        else:
            current, reason = memo.foresee(planned, current)
            outcome = "reused" if current is not None else "runs"
        steps.append(Foreseen(planned.stage, planned.consumes, planned.produces, outcome, reason))
    return plan, tuple(steps)
