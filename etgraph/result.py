"""What a run hands back."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from etgraph.artifact import Artifact
from etgraph.errors import UsageError
from etgraph.probe import chosen_inputs, precision_of
from etgraph.registry import registry

if TYPE_CHECKING:
    # For types only: plugins that hand back a Verification load without the planner and the store.
    from etgraph.held import Held
    from etgraph.numerics import Comparison
    from etgraph.planned import Plan, PlannedStep
    from etgraph.runner import Step

__all__ = ["Result", "Verification"]


class Verification(dict[str, tuple[float, ...]]):
    """Method name to the largest absolute error of each of its outputs against the source, over all samples.

    Args:
        relative: method name to the largest error of each output relative to the largest value of that output.
        snr: method name to the signal-to-noise ratio of each output in dB, the smallest over all samples: ten times
            the logarithm of the energy of what was wanted over that of the error; infinite where there is no error.
            For programs of int8 it says more than the largest error.
        samples: method name to how many samples were compared.
    """

    def __init__(
        self,
        errors: Mapping[str, tuple[float, ...]],
        *,
        relative: Mapping[str, tuple[float, ...]],
        samples: Mapping[str, int],
        snr: Mapping[str, tuple[float, ...]] = types.MappingProxyType({}),
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(errors)
        self.relative = dict(relative)
        self.samples = dict(samples)
        self.snr = dict(snr)
        self.notes = notes

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_verification

        return show_verification(self)

    @property
    def max_error(self) -> float:
        """The largest absolute error of all."""
        return max((error for errors in self.values() for error in errors), default=0.0)

    @property
    def min_snr(self) -> float:
        """The smallest signal-to-noise ratio of all, in dB."""
        return min((ratio for ratios in self.snr.values() for ratio in ratios), default=math.inf)


@dataclass(frozen=True)
class Result:
    """The outcome of a run: the artifact that was asked for, the plan, and what became of each step.

    `cache_problems` says what went wrong with the cache and was survived.
    """

    artifact: Artifact
    plan: Plan
    steps: tuple[Step, ...]
    held: Held = field(repr=False)
    kept: Mapping[str, Artifact] = field(default_factory=dict, repr=False)
    rebuild: Callable[[str], Artifact] | None = field(default=None, repr=False)
    cache_problems: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_result

        taken = registry.services.get("delegation")
        return show_result(self, [asdict(step) for step in self.steps], taken(self.artifact) if taken else {})

    @property
    def source(self) -> Artifact:
        """What the run began with."""
        return self.held.artifact()

    @property
    def redefining(self) -> PlannedStep | None:
        """The last step that made a program which computes something else on purpose, as training does."""
        return next((step for step in reversed(self.plan.steps) if step.definition.redefines), None)

    @property
    def reference(self) -> tuple[Artifact, str]:
        """What says which outputs are right: the source, or what training made of it; and a note where it is that."""
        last = self.redefining
        if last is None:
            return self.source, ""
        note = f"compared with the {last.definition.redefines} program, which {last.stage} made of the source"
        return self[last.produces], note

    def __getitem__(self, kind: str) -> Artifact:
        """Return the program at a kind that the run passed.

        Intermediates are released while a run goes on. One that was not kept is made again from the source, by
        the same plan (`keep=` of `etgraph.run` holds on to them instead).
        """
        if kind == self.artifact.kind:
            return self.artifact
        if kind == self.held.kind and kind not in self.kept:
            return self.source
        if kind in self.kept:
            return self.kept[kind]
        if kind not in self.plan.kinds or self.rebuild is None:
            raise KeyError(f"this run did not pass {kind!r}; it went {' -> '.join(self.plan.kinds)}")
        return self.rebuild(kind)

    @property
    def delegation(self) -> dict[str, Any]:
        """Method name to what each backend took: `backends` (`name`, `delegates`, `nodes`), and `others` left."""
        found: dict[str, Any] = registry.service("delegation")(self.artifact)
        return found

    @property
    def host_problem(self) -> str:
        """Why the runtime of this host cannot execute the program; empty when it can."""
        problem: str = registry.service("host_problem")(self.artifact)
        return problem

    def save(self, path: Any) -> Any:
        """Write the artifact to a file, whole or not at all; return the path."""
        return self.artifact.save(path)

    def report(self, path: Any, told: Any = None) -> Any:
        """Write a report of the run to a file, `.html`, `.md` or `.json`; return the path.

        Args:
            told: what is to be in it besides, as an `etgraph.report.Told`: `Told(verification=result.verify())`.
        """
        from etgraph.report import write_report

        return write_report(self, path, told)

    def save_etrecord(self, path: Any) -> Any:
        """Write the ETRecord that belongs to the `.pte`, for ExecuTorch's developer tools; return the path."""
        from etgraph.records import save_etrecord

        return save_etrecord(self, path)

    def save_bundled(self, path: Any, inputs: Any = None) -> Any:
        """Write the `.pte` with inputs and expected outputs as a `.bpte`; return the path.

        Args:
            inputs: as `example_inputs` of `etgraph.run`; the example inputs when not given.
        """
        from etgraph.records import save_bundled

        return save_bundled(self, path, inputs)

    def verify(self, inputs: Any = None) -> Verification:
        """Execute the `.pte` on this host and compare it with the source program, or with the trained one.

        Args:
            inputs: as `example_inputs` of `etgraph.run`; the example inputs when not given.

        Returns:
            the largest absolute error per output, per method.
        """
        if self.artifact.kind != "executorch":
            raise UsageError(
                f"only an executorch program can be executed, and this run ended at {self.artifact.kind}",
                hint="Run it to 'executorch' first: etgraph.run(result.artifact, to='executorch').",
            )
        verify: Callable[..., Verification] = registry.service("verify")
        reference, note = self.reference
        return verify(self.artifact, reference, inputs, note=note)

    def compare(self, inputs: Any = None) -> Comparison:
        """Compute the same inputs with the source and with the program at every kind of the way.

        Where training made another program on purpose, that stands in the place of the source. Intermediates are made
        again where they were released. `etgraph.compare` looks at every step, passes too.

        Args:
            inputs: as `example_inputs` of `etgraph.run`; the example inputs when not given, else random numbers.
        """
        last = self.redefining
        made = {step.produces: step.stage for step in self.plan.steps}
        if last is not None:
            kinds = list(made)
            stages = [(made[kind], self[kind]) for kind in kinds[kinds.index(last.produces) :]]
        else:
            later = [(stage, self[kind]) for kind, stage in made.items() if kind != self.held.kind]
            stages = [("source", self.source), *later]
        probe = chosen_inputs([artifact for _, artifact in stages], inputs)
        snr = precision_of(self.plan.request.recipe.name)
        found: Comparison = registry.service("compare")(stages, probe.samples, inputs=probe.words, snr=snr)
        return self.noted(found)

    def noted(self, found: Comparison) -> Comparison:
        """Add to a comparison that it is with a trained program, where it is."""
        return replace(found, notes=(self.reference[1], *found.notes)) if self.redefining is not None else found
