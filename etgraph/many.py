"""One program for several targets: what their plans begin with in common is run once, one failure loses no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from etgraph.artifact import Artifact
from etgraph.errors import EtgraphError, Undescribable, UsageError
from etgraph.held import Held
from etgraph.job import Job
from etgraph.keys import describe_option
from etgraph.memo import Outcome
from etgraph.planned import Plan, PlannedStep
from etgraph.preparation import Asked, needs_the_backend, planned
from etgraph.result import Result
from etgraph.runner import OnEvent, StepRunner
from etgraph.targets import Target

__all__ = ["Results", "run_targets"]


class Results(Mapping[str, Result]):
    """The outcome for each target, by its name, in the order that they were asked for.

    `results[name]` raises what the run for that target ended in, where it failed; `results.failures` holds these.

    Args:
        outcomes: target name to what came of it.
    """

    def __init__(self, outcomes: Mapping[str, Result | EtgraphError]) -> None:
        self.outcomes = dict(outcomes)

    def __getitem__(self, name: str) -> Result:
        outcome = self.outcomes[name]
        if isinstance(outcome, EtgraphError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[str]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def failures(self) -> dict[str, EtgraphError]:
        """Target name to the error, for those that failed."""
        return {name: one for name, one in self.outcomes.items() if isinstance(one, EtgraphError)}

    def report(self, path: Any, told: Any = None) -> Any:
        """Write one report over all targets to a file, `.html`, `.md` or `.json`; return the path.

        Args:
            told: what is to be in it besides: target name to an `etgraph.report.Told`.
        """
        from etgraph.report import write_report

        return write_report(self, path, told)

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_results

        return show_results(self.outcomes)

    def __repr__(self) -> str:
        shown = (
            f"{name}: {'failed' if isinstance(one, EtgraphError) else 'done'}" for name, one in self.outcomes.items()
        )
        return f"<Results {', '.join(shown)}>"


def run_targets(job: Job, targets: list[Target], to: str, path: str) -> Results:
    """Plan for each target, then run the plans one after the other.

    A target that is wrong here, or whose run fails, is an error in the outcome. A source that is wrong is so for all,
    and raised.
    """
    outcomes: dict[str, Result | EtgraphError] = {}
    plans: dict[str, Plan] = {}
    for target in targets:
        try:
            made = planned(job.held, Asked(None, target, to, path), job.calibration, job.memo)
            if needs_the_backend(made):
                target.require()
            plans[target.name] = made
        except EtgraphError as error:
            outcomes[target.name] = error
    job.calibration.start()
    shared = _Shared(plans, job.memo)
    try:
        for name, made in plans.items():
            try:
                own = replace(job, on_event=_naming(job.on_event, name))
                outcomes[name] = own.run(made, shared.runner(name), release=False)
            except EtgraphError as error:
                outcomes[name] = error
    finally:
        job.calibration.release()
    return Results({target.name: outcomes[target.name] for target in targets})


def _naming(on_event: OnEvent | None, target: str) -> OnEvent | None:
    if on_event is None:
        return None
    tell = on_event
    return lambda event: tell(replace(event, target=target))


@dataclass
class _Shared:
    """Steps that several plans begin with, held in memory until the last of these has passed them."""

    plans: Mapping[str, Plan]
    memo: StepRunner | None
    waiting: Counter[str] = field(default_factory=Counter)
    held: dict[str, tuple[Held, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chains = {name: _chain(made) for name, made in self.plans.items()}
        self.waiting.update(link for chain in self.chains.values() for link in chain if link)

    def runner(self, name: str) -> StepRunner:
        """Return what runs the steps of one target."""
        return _Runner(self, name)


@dataclass
class _Runner:
    shared: _Shared
    target: str
    position: int = -1

    def step(self, planned: PlannedStep, given: Held, build: Callable[[PlannedStep, Artifact], Artifact]) -> Outcome:
        """Take what another target's run has made, or run the step and keep it for those that will want it."""
        self.position += 1
        link = self.shared.chains[self.target][self.position]
        if link in self.shared.held:
            held, owner = self.shared.held[link]
            outcome = Outcome(held, True, f"shared with {owner}")
        elif self.shared.memo is not None:
            outcome = self.shared.memo.step(planned, given, build)
        else:
            outcome = Outcome(Held.of(build(planned, given.artifact()), given.label), False, "the cache is off")
        if link:
            self.shared.waiting[link] -= 1
            if self.shared.waiting[link] > 0:
                self.shared.held.setdefault(link, (outcome.held, self.target))
            else:
                self.shared.held.pop(link, None)
        return outcome


def _chain(made: Plan) -> list[str]:
    """Name each step by all that leads to it; empty from the first step whose options cannot be described."""
    chain: list[str] = []
    link = "start"
    for step in made.steps:
        if link:
            try:
                options = [f"{name}={describe_option(name, value).digest}" for name, value in sorted(_options(step))]
                debug = " with stack traces" if step.for_debug else ""
                link = "\n".join([link, f"{step.stage}: {step.consumes} -> {step.produces}{debug}", *options])
            except (Undescribable, UsageError):
                link = ""
        chain.append(link)
    return chain


def _options(step: PlannedStep) -> list[tuple[str, Any]]:
    options = dict(step.options)
    if step.definition.key_options is not None:
        options = dict(step.definition.key_options(options))
    return list(options.items())
