"""`etgraph.compare`: the same inputs through every form of a program on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from etgraph import api
from etgraph.artifact import Artifact, Inputs, Source
from etgraph.calibration import Calibration
from etgraph.errors import UsageError
from etgraph.numerics import Comparison
from etgraph.probe import chosen_inputs, precision_of
from etgraph.registry import registry
from etgraph.result import Result
from etgraph.runner import Event
from etgraph.sources import artifact_of
from etgraph.targets import Target

__all__ = ["Trace", "compare"]


class Trace:
    """Holds on to what each step of a run gives: its `on_event`.

    Args:
        passing_on: called with every event first.
    """

    def __init__(self, passing_on: Callable[[Event], None] | None = None) -> None:
        self.stages: list[tuple[str, Artifact]] = []
        self._tell = passing_on

    def __call__(self, event: Event) -> None:
        """Take an event of the run."""
        if self._tell is not None:
            self._tell(event)
        if event.name == "step_finished" and event.artifact is not None:
            self.stages.append((event.planned.stage, event.artifact))

    def compare(self, result: Result, inputs: Any = None, calibration_inputs: Any = None) -> Comparison:
        """Compare what the run went through, from the source on, or from the program that was trained on purpose."""
        stages = [("source", result.source), *self.stages]
        last = result.redefining
        if last is not None:
            stages = stages[max(i for i, (stage, _) in enumerate(stages) if stage == last.stage) :]
        calibration = Calibration(calibration_inputs, result.source.methods)
        calibration.start()
        return result.noted(_compared(stages, inputs, calibration, precision_of(result.plan.request.recipe.name)))


def compare(
    source: Any,
    other: Any = None,
    inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    target: str | Target | None = None,
    example_inputs: Any = None,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    trust: bool = False,
) -> Comparison:
    """Compute the same inputs with every form that a program takes on its way, and find where the numbers go wrong.

    Every program is run from its start state for each sample: eager and captured ones in Python, the `.pte` in the
    runtime of this host. Where outputs first leave tolerance, the nodes of that program are compared with those of
    the one before, and the first bad one is named.

    Args:
        source: anything that `etgraph.run` takes.
        other: a second program, in any form that `run` takes, to compare `source` with directly; nothing is run.
        inputs: as `example_inputs` of `etgraph.run`. When not given, the example inputs, else calibration inputs, else
            random numbers, and it is said which.
        recipe, to, target, example_inputs, path, dynamic_shapes, constant_methods, calibration_inputs, cache, trust:
            as `etgraph.run` takes them.

    Raises:
        UsageError: the request is wrong; or the source fails on these inputs.
        StageError: a stage failed.
    """
    if other is not None:
        return _two(source, other, inputs, example_inputs, trust)
    given = _with_inputs(source, example_inputs, inputs, constant_methods, trust)
    trace = Trace()
    result = api.run(
        source,
        given,
        recipe,
        to,
        target=target,
        path=path,
        dynamic_shapes=dynamic_shapes,
        constant_methods=constant_methods,
        calibration_inputs=calibration_inputs,
        cache=cache,
        on_event=trace,
        trust=trust,
    )
    if calibration_inputs is None and isinstance(source, Source):
        calibration_inputs = source.calibration_inputs
    return trace.compare(result, inputs, calibration_inputs)


def _with_inputs(
    source: Any, example_inputs: Any, inputs: Any, constant_methods: Mapping[str, Any] | None, trust: bool
) -> Any:
    """Return the example inputs to run with: a module that comes without any is exported with those to compare on."""
    if example_inputs is not None or inputs is None:
        return example_inputs
    known = artifact_of(source, trust=trust)
    return inputs if known.kind == "module" and not known.example_inputs else None


def _two(source: Any, other: Any, inputs: Any, example_inputs: Any, trust: bool) -> Comparison:
    if isinstance(other, tuple | list | Inputs):
        raise UsageError(
            f"a {type(other).__name__} was given as the second program",
            hint="Inputs have a name of their own: etgraph.compare(source, inputs=(...)).",
        )
    one = artifact_of(source, example_inputs, trust=trust)
    two = artifact_of(other, trust=trust)
    common = [method for method in one.methods if method in two.methods]
    if not common:
        raise UsageError(
            f"one program has the methods {', '.join(one.methods)}, the other {', '.join(two.methods)}",
            hint="Give two programs with a method of the same name.",
        )
    notes = tuple(
        f"method {method!r} is in one of the two alone"
        for method in {**one.methods, **two.methods}
        if method not in common
    )
    one, two = _only(one, common), _only(two, common)
    found = _compared([("source", one), ("other", two)], inputs, None, None)
    return replace(found, notes=(*notes, *found.notes))


def _only(artifact: Artifact, methods: Sequence[str]) -> Artifact:
    return replace(artifact, methods={method: artifact.methods[method] for method in methods})


def _compared(
    stages: Sequence[tuple[str, Artifact]], inputs: Any, calibration: Calibration | None, snr: float | None
) -> Comparison:
    probe = chosen_inputs([artifact for _, artifact in stages], inputs, calibration)
    found: Comparison = registry.service("compare")(stages, probe.samples, inputs=probe.words, snr=snr)
    return found
