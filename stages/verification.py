"""Execute a `.pte` in the ExecuTorch runtime of this host and compare it with the program that it came from."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs, Prepared
from etgraph.errors import UsageError
from etgraph.inputs import samples_by_method
from etgraph.result import Verification

if TYPE_CHECKING:
    from etgraph.numerics import Gap
    from stages.support.executing import Call, InRuntime


@etgraph.service("verify")
def verify(program: Executorch, source: Artifact, inputs: Any = None, *, note: str = "") -> Verification:
    """Compare a `.pte` with its source on inputs; the example inputs when none are given.

    Args:
        note: what the source is, where that has to be said with the result.

    Raises:
        BackendUnavailableError: this host's runtime lacks a backend or a kernel that the program needs.
        UsageError: there is nothing to compare with, or no inputs to do it on.
    """
    if isinstance(source, Executorch) and source.expected_outputs and inputs is None:
        return _verified_by_bundle(source)
    if isinstance(source, Executorch):
        raise UsageError(
            f"the run began with a program at {source.kind}, so there is nothing to compare its outputs with",
            hint="Run from the module, or from a program of any other kind.",
        )
    from stages.support.executing import InRuntime, in_python
    from stages.support.runtime import check_host

    samples = _samples(program, source, inputs)
    check_host(program)
    found: dict[str, list[list[Gap]]] = {}
    notes: list[str] = [note] if note else []
    if isinstance(source, Prepared) and not note:
        notes.append("compared with the prepared program, which the run began with")
    runner = InRuntime(program)
    evaluating = any(
        step.stage == "torch_export" and ("eval_mode", "True") in step.options for step in program.provenance
    )
    for method, given in samples.items():
        reference = in_python(source, method, eval_mode=evaluating)
        found[method] = [_compared(method, sample, reference, runner, notes) for sample in given]
    return _verification(found, notes)


def _verified_by_bundle(program: Executorch) -> Verification:
    """Compare a bundled program with the outputs that it brings for its own inputs."""
    from stages.support.executing import InRuntime
    from stages.support.gaps import gap_between
    from stages.support.runtime import check_host

    check_host(program)
    runner = InRuntime(program)
    found = {
        method: [
            [gap_between(got, wanted) for got, wanted in zip(runner(method, sample), outputs, strict=True)]
            for sample, outputs in zip(program.example_inputs[method], expected, strict=True)
        ]
        for method, expected in program.expected_outputs.items()
    }
    return _verification(found, ["compared with the outputs that the bundled program brings"])


def _verification(found: Mapping[str, list[list[Gap]]], notes: list[str]) -> Verification:
    """Take the worst of each output over the samples."""
    worst = {
        method: [functools.reduce(lambda one, other: one.worst(other), column) for column in zip(*gaps, strict=True)]
        for method, gaps in found.items()
    }
    return Verification(
        {method: tuple(gap.absolute for gap in gaps) for method, gaps in worst.items()},
        relative={method: tuple(gap.relative for gap in gaps) for method, gaps in worst.items()},
        snr={method: tuple(gap.snr for gap in gaps) for method, gaps in worst.items()},
        samples={method: len(gaps) for method, gaps in found.items()},
        notes=tuple(dict.fromkeys(notes)),
    )


def _samples(program: Executorch, source: Artifact, inputs: Any) -> dict[str, tuple[Inputs, ...]]:
    from stages.support.executing import in_order_of_export

    given: Mapping[str, tuple[Inputs, ...]]
    if inputs is not None:
        given = samples_by_method(inputs, program.methods)
    else:
        given = source.example_inputs or program.example_inputs
    missing = sorted(set(program.methods) - set(given)) if inputs is None else []
    if missing or not given:
        raise UsageError(
            f"there are no example inputs for {', '.join(missing) or 'any method'} to verify with",
            hint="Give inputs: result.verify(inputs), or example_inputs to etgraph.run.",
        )
    return {method: in_order_of_export(samples, source, method) for method, samples in given.items()}


def _compared(method: str, sample: Inputs, reference: Call, runner: InRuntime, notes: list[str]) -> list[Gap]:
    """Return how far each output is off for one sample."""
    from stages.support.executing import check_layout, mutated_before_outputs
    from stages.support.gaps import gap_between

    check_layout(method, sample, runner.program)
    wanted = reference(sample)
    got = runner(method, sample)
    mutated = mutated_before_outputs(runner.program, method, len(got), len(wanted))
    if mutated:
        notes.append(
            f"method {method!r} of the .pte returns {len(mutated)} more: {', '.join(mutated)}, before its outputs"
        )
    return [gap_between(a, b) for a, b in zip(got[len(mutated) :], wanted, strict=True)]
