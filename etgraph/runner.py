"""Run a plan: each step once, each intermediate released after its last consumer."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from etgraph.artifact import Artifact
from etgraph.declaration import Report, reporting
from etgraph.errors import EtgraphError, StageError
from etgraph.held import Held
from etgraph.identity import describe
from etgraph.memo import Outcome
from etgraph.memory import PeakMemory
from etgraph.planned import Plan, PlannedStep
from etgraph.recipes import evaluated
from etgraph.registry import registry

__all__ = ["Event", "OnEvent", "Step", "StepRunner", "execute"]


@dataclass(frozen=True)
class Step:
    """What became of one planned step.

    Args:
        stage: the stage's name.
        consumes, produces: the kinds that it went between.
        outcome: `ran` or `reused`.
        reason: why it ran, or how it came to be reused.
        seconds: wall time.
        peak_bytes: the largest resident set of the process while it ran; 0 where it was reused.
        result_bytes: what the program that it gave takes in the cache, weights that others share included; 0 where
            it is not kept.
        built_seconds: how long the stage took when what was reused was built; 0 where it ran.
    """

    stage: str
    consumes: str
    produces: str
    outcome: str
    reason: str
    seconds: float
    peak_bytes: int = 0
    result_bytes: int = 0
    built_seconds: float = 0.0


@dataclass(frozen=True)
class Event:
    """Something that happened in a run: `step_started`, `step_progress` or `step_finished`.

    Args:
        done, of: at `step_progress`, how many pieces of its work the step has done, and of how many (None: unknown).
        target: in a run for several targets, the name of the one.
    """

    name: str
    index: int
    total: int
    planned: PlannedStep
    step: Step | None = None
    held: Held | None = field(default=None, repr=False)
    done: int = 0
    of: int | None = None
    target: str = ""

    @property
    def artifact(self) -> Artifact | None:
        """What the step gave, once it has finished; read from the cache when it was reused."""
        return self.held.artifact() if self.held is not None else None


OnEvent = Callable[[Event], None]


class StepRunner(Protocol):
    """Runs one step on what it is given, or finds what it would give; the cache is one."""

    def step(self, planned: PlannedStep, given: Held, build: Callable[[PlannedStep, Artifact], Artifact]) -> Outcome:
        """Reuse or run one step."""


def execute(
    plan: Plan,
    source: Held,
    *,
    memo: StepRunner | None = None,
    on_event: OnEvent | None = None,
    keep: Collection[str] = (),
) -> tuple[Artifact, tuple[Step, ...], dict[str, Artifact]]:
    """Run the steps of a plan on a program.

    Args:
        memo: the cache to go through, if any.
        on_event: called in this thread; an exception that it raises ends the run.
        keep: kinds of which the last artifact is kept and returned; all others are released once consumed.

    Returns:
        the last artifact, what became of each step, and the kept artifacts by kind.

    Raises:
        StageError: a stage failed; `last_good` holds what it was given. Every error of etgraph's that ends a run has
            the plan in `plan`, and in `steps` what was finished.
    """
    steps: list[Step] = []
    kept: dict[str, Artifact] = {}
    current = source
    total = len(plan.steps)
    tell = on_event or (lambda event: None)
    for index, planned in enumerate(plan.steps):
        tell(Event("step_started", index, total, planned))
        with reporting(_passing_on(tell, index, total, planned)):
            try:
                step, produced = _timed(planned, current, memo)
            except EtgraphError as error:
                error.plan, error.steps = plan, tuple(steps)
                raise
        if step.outcome == "ran":
            current.release()
        current = produced
        steps.append(step)
        if planned.produces in keep:
            kept[planned.produces] = current.artifact()
        tell(Event("step_finished", index, total, planned, step, current))
    return current.artifact(), tuple(steps), kept


def _passing_on(tell: OnEvent, index: int, total: int, planned: PlannedStep) -> Report:
    return lambda done, of: tell(Event("step_progress", index, total, planned, done=done, of=of))


def _timed(planned: PlannedStep, given: Held, memo: StepRunner | None) -> tuple[Step, Held]:
    started = time.perf_counter()
    with PeakMemory() as peak:
        outcome = _outcome(planned, given, memo, peak)
    step = Step(
        stage=planned.stage,
        consumes=planned.consumes,
        produces=planned.produces,
        outcome="reused" if outcome.reused else "ran",
        reason=outcome.reason,
        seconds=time.perf_counter() - started,
        peak_bytes=0 if outcome.reused else peak.bytes,
        result_bytes=outcome.held.kept_bytes,
        built_seconds=outcome.held.built_seconds if outcome.reused else 0.0,
    )
    return step, outcome.held


def _outcome(planned: PlannedStep, given: Held, memo: StepRunner | None, peak: PeakMemory) -> Outcome:
    def build(planned: PlannedStep, artifact: Artifact) -> Artifact:
        peak.start()
        return _run(planned, artifact)

    try:
        if memo is not None:
            return memo.step(planned, given, build)
        return Outcome(Held.of(build(planned, given.artifact()), given.label), False, "the cache is off")
    except StageError as error:
        error.last_good = given
        raise


def _run(planned: PlannedStep, given: Artifact) -> Artifact:
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
    return replace(produced, provenance=(*given.provenance, planned.provenance))


def own_copies(options: Mapping[str, Any]) -> dict[str, Any]:
    """Copy options for one use: partitioners, passes and configs keep state from one program to the next.

    A copy is used only where it can be shown to be what was copied: `deepcopy` turns an edge operator into its ATen
    operator without a word, and refuses a partitioner that holds a mapping proxy. What cannot be copied, or has no
    description, is handed over as it is.
    """
    return {name: _own_copy(value) for name, value in options.items()}


def _own_copy(value: Any) -> Any:
    try:
        copied = copy.deepcopy(value)
        same = describe(copied).digest == describe(value).digest
    except Exception:
        return value
    return copied if same else value


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
