"""Verification as the command line judges and shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.output import Output
from etgraph.errors import BackendUnavailableError, UsageError
from etgraph.words import table

if TYPE_CHECKING:
    from etgraph.result import Result, Verification

__all__ = ["require_inputs", "show_verification", "verify"]


def require_inputs(source: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse `--verify` before any work when there is nothing to verify with."""
    if "example_inputs" in arguments:
        return
    from etgraph.sources import artifact_of

    artifact = artifact_of(source, trust=arguments.get("trust", False))
    missing = [method for method in artifact.methods if not artifact.example_inputs.get(method)]
    if missing:
        raise UsageError(
            f"--verify needs example inputs, and there are none for {', '.join(missing)}",
            hint="Give --shape 1x3x224x224 or --inputs, or return the inputs with the model.",
        )


def verify(output: Output, result: Result, snr: float | None = None) -> dict[str, Any]:
    """Execute the `.pte` on this host and compare; return the outcome as JSON-able data.

    An output is right too when its signal-to-noise ratio reaches `snr`, in dB, which a target says for its precision.
    A program that this host cannot execute is no failure: `done` is then false, with the reason.
    """
    try:
        with runtime_log_hidden(verbose=output.verbose):
            found = result.verify()
    except BackendUnavailableError as error:
        output.warn(f"not verified: {error.problem}")
        return {"done": False, "passed": None, "reason": error.problem}
    return _judged(found, snr)


def _judged(found: Verification, wanted: float | None) -> dict[str, Any]:
    from etgraph.numerics import Tolerance

    tolerance = Tolerance(snr=wanted)
    methods: dict[str, dict[str, Any]] = {
        method: {
            "outputs": [
                {
                    "max_absolute_error": a,
                    "max_relative_error": r,
                    "snr": ratio,
                    "passed": tolerance.holds(a, r, ratio),
                }
                for a, r, ratio in zip(errors, found.relative[method], found.snr[method], strict=True)
            ],
            "samples": found.samples[method],
        }
        for method, errors in found.items()
    }
    return {
        "done": True,
        "passed": all(one["passed"] for method in methods.values() for one in method["outputs"]),
        "tolerance": asdict(tolerance),
        "methods": methods,
        "notes": list(found.notes),
    }


def show_verification(output: Output, outcome: dict[str, Any]) -> None:
    """Print each output's errors."""
    if not outcome["done"]:
        return
    rows = [
        (
            method,
            str(number),
            f"{one['max_absolute_error']:.1e}",
            f"{one['max_relative_error']:.1e}",
            "ok" if one["passed"] else "TOO LARGE",
        )
        for method, found in outcome["methods"].items()
        for number, one in enumerate(found["outputs"])
    ]
    output.say()
    output.say("executed on this host and compared with the source")
    output.say(table(rows, header=("method", "output", "largest error", "relative", ""), right=(1, 2, 3)))
    for note in outcome["notes"]:
        output.say(f"  note: {note}")
