"""Carrying out plans for one program: what runs of it have in common, and what a run hands back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from etgraph.artifact import Artifact
from etgraph.calibration import Calibration
from etgraph.errors import UsageError
from etgraph.held import Held
from etgraph.memo import Memo
from etgraph.planned import Plan
from etgraph.registry import registry
from etgraph.result import Result
from etgraph.runner import OnEvent, StepRunner, execute
from etgraph.store import Cache

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """A program to run plans on, with what all of these share."""

    held: Held
    calibration: Calibration
    store: Cache | None
    memo: Memo | None
    keep: Collection[str] = ()
    on_event: OnEvent | None = None

    def run(self, made: Plan, through: StepRunner | None = None, *, release: bool = True) -> Result:
        """Carry out a plan.

        Args:
            through: runs each step; the cache where there is one, when not given.
            release: let go of calibration inputs at the end.
        """
        unknown = sorted(set(self.keep) - set(made.kinds))
        if unknown:
            raise UsageError(
                f"keep names {', '.join(unknown)}, and the way is {' -> '.join(made.kinds)}",
                hint="Keep kinds that are on the way.",
            )
        before = _state_of(self.held)

        def rebuild(kind: str) -> Artifact:
            if _state_of(self.held) != before:
                raise UsageError(
                    f"{kind!r} was released during the run, and the source has changed since, so it cannot be made "
                    "again",
                    hint=f"Pass keep=[{kind!r}] to etgraph.run to hold on to it.",
                )
            last = max(i for i, step in enumerate(made.steps) if step.produces == kind)
            again = Memo(self.store) if self.store is not None else None
            return execute(replace(made, steps=made.steps[: last + 1]), self.held, memo=again)[0]

        self.calibration.start()
        try:
            last, steps, kept = execute(
                made,
                self.held,
                memo=through or self.memo,
                on_event=self.on_event,
                # To be compared with later; made again, a trained program would be another one.
                keep={*self.keep, *(step.produces for step in made.steps if step.definition.redefines)},
            )
        finally:
            if release:
                self.calibration.release()
        problems = tuple(self.store.problems) if self.store is not None else ()
        return Result(
            artifact=last,
            plan=made,
            steps=steps,
            held=self.held,
            kept=kept,
            rebuild=rebuild,
            cache_problems=problems,
        )


def _state_of(held: Held) -> Any:
    """Return something that tells whether a source that the caller holds was written to; None for a file."""
    if held.kind != "module" and held.in_file:
        return None
    state = registry.services.get("state_of")
    return state(held.artifact()) if state is not None else None
