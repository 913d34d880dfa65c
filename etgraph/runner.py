"""Run a plan: each step once, each intermediate released after its last consumer."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from etgraph.artifact import Artifact, Provenance
from etgraph.errors import EtgraphError, StageError
from etgraph.memory import PeakMemory
from etgraph.planner import Plan, PlannedStep
from etgraph.recipes import evaluated
from etgraph.registry import registry

__all__ = ["Event", "Step", "execute"]


@dataclass(frozen=True)
class Step:
    """What became of one planned step.

    Args:
        stage: the stage's name.
        consumes, produces: the kinds that it went between.
        outcome: `ran` or `reused`.
        reason: why it ran or how it came to be reused, in words.
        seconds: wall time.
        peak_bytes: the largest resident set of the process while it ran; 0 where it was reused.
    """

    stage: str
    consumes: str
    produces: str
    outcome: str
    reason: str
    seconds: float
    peak_bytes: int = 0


@dataclass(frozen=True)
class Event:
    """Something that happened in a run: `step_started`, `step_finished`, or `artifact` (which carries it)."""

    name: str
    index: int
    total: int
    planned: PlannedStep
    step: Step | None = None
    artifact: Artifact | None = field(default=None, repr=False)


OnEvent = Callable[[Event], None]


def execute(
    plan: Plan,
    source: Artifact,
    *,
    on_event: OnEvent | None = None,
    keep: Collection[str] = (),
) -> tuple[Artifact, tuple[Step, ...], dict[str, Artifact]]:
    """Run the steps of a plan on an artifact.

    Args:
        on_event: called in this thread; an exception that it raises ends the run.
        keep: kinds of which the last artifact is kept and returned; all others are released once consumed.

    Returns:
        the last artifact, what became of each step, and the kept artifacts by kind.
    """
    steps: list[Step] = []
    kept: dict[str, Artifact] = {}
    current = source
    total = len(plan.steps)
    tell = on_event or (lambda event: None)
    for index, planned in enumerate(plan.steps):
        tell(Event("step_started", index, total, planned))
        started = time.perf_counter()
        with PeakMemory() as peak:
            current = _ran(planned, current)
        seconds = time.perf_counter() - started
        step = Step(
            stage=planned.stage,
            consumes=planned.consumes,
            produces=planned.produces,
            outcome="ran",
            reason="the cache is off",
            seconds=seconds,
            peak_bytes=peak.bytes,
        )
        steps.append(step)
        tell(Event("step_finished", index, total, planned, step))
        tell(Event("artifact", index, total, planned, step, current))
        if planned.produces in keep:
            kept[planned.produces] = current
    return current, tuple(steps), kept


def _ran(planned: PlannedStep, given: Artifact) -> Artifact:
    """Run one stage on its input; anything that goes wrong inside becomes a `StageError` with an address."""
    options = own_copies(evaluated(planned.options))
    try:
        produced = planned.definition(given, **options)
    except EtgraphError:
        raise
    except Exception as error:
        raise failure(planned, given, error) from error
    wanted = planned.definition.result_of(given.kind)
    if not isinstance(produced, Artifact) or produced.kind != wanted:
        got = f"an artifact of kind {produced.kind}" if isinstance(produced, Artifact) else repr(type(produced))
        raise StageError(
            f"it declares that it returns {wanted}, and returned {got}",
            stage=planned.stage,
            hint="Correct the return value or the annotation of the stage.",
        )
    told = tuple((name, str(v)) for name, v in options.items() if isinstance(v, bool | int | float | str))
    entry = Provenance(stage=planned.stage, kind=wanted, options=told)
    return replace(produced, provenance=(*given.provenance, entry))


def own_copies(options: Mapping[str, Any]) -> dict[str, Any]:
    """Copy options for one use: partitioners, passes and configs keep state from one program to the next.

    What cannot be copied (a generator, a data loader with workers) is handed over as it is.
    """
    copied = {}
    for name, value in options.items():
        try:
            copied[name] = copy.deepcopy(value)
        except Exception:
            copied[name] = value
    return copied


def failure(planned: PlannedStep, given: Artifact, error: Exception) -> StageError:
    """Turn what a stage raised into an error with the method, the node and the model's source line."""
    explain = registry.services.get("explain_failure")
    address: dict[str, str] = {}
    if explain is not None:
        try:
            address = explain(given, error)
        except Exception:
            # A failure to explain must not hide the failure that is to be explained.
            address = {}
    address["method"] = getattr(error, "etgraph_method", "") or address.get("method", "")
    problem = address.pop("problem", "") or f"{type(error).__name__}: {error}".strip()
    return StageError(problem, stage=planned.stage, **address)
