"""`--trace-numerics`: where the numbers of a run go wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from etgraph.cli.job import Job
from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.output import Output

if TYPE_CHECKING:
    from etgraph.comparison import Trace
    from etgraph.numerics import Comparison
    from etgraph.result import Result
    from etgraph.runner import Event

__all__ = ["compare", "tracing"]


def tracing(passing_on: Callable[[Event], None]) -> Trace:
    """Return what holds on to each step of a run, and passes every event on."""
    from etgraph.comparison import Trace

    return Trace(passing_on)


def compare(output: Output, trace: Trace, result: Result, job: Job) -> Comparison:
    """Compare what a run went through, on the example inputs, else on those for calibration."""
    with runtime_log_hidden(verbose=output.verbose):
        return trace.compare(result, calibration_inputs=job.arguments.get("calibration_inputs"))
