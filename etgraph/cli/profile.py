"""`etgraph profile`: where the time and the memory of a program go on this host."""

from __future__ import annotations

from typing import Annotated

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, prepare
from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.output import reporting
from etgraph.cli.progress import Progress

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("profile", short_help="Time a program on this host, kernel by kernel, and show who holds its memory.")(
        profile
    )


def profile(
    source: options.SourceArgument,
    runs: Annotated[int, typer.Option("--runs", metavar="N", help="How many runs are timed.", min=1)] = 20,
    etrecord: Annotated[
        str | None,
        typer.Option(
            "--etrecord", metavar="FILE", help="The ETRecord of a .pte: traces kernels to lines of the model."
        ),
    ] = None,
    recipe: options.Recipe = None,
    target: options.Target = None,
    shape: options.Shape = None,
    inputs: options.Inputs = None,
    calibration: options.Calibration = None,
    path: options.Path = "auto",
    eval_mode: options.Eval = False,
    trust: options.Trust = False,
    cache_dir: options.CacheDirectory = None,
    no_cache: options.NoCache = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run SOURCE in the ExecuTorch runtime of this host and show where its time and its memory go.

    Times are medians over the runs, by kernel, and by kernel inside of each delegate where its backend tells. Memory
    is the plan of the program: what each arena takes, and which tensors hold it at the peak. A SOURCE that is not a
    .pte is run to one first.

    \b
    Examples:
      etgraph profile model.pte --etrecord model.etrecord
      etgraph profile net.py:model --runs 100
      etgraph profile model.pte --shape 1x3x224x224 --json
    """
    with reporting(as_json=as_json, quiet=quiet, verbose=verbose) as output:
        import etgraph

        asked = Asked.read(
            source,
            recipe=recipe,
            target=target,
            shape=shape,
            inputs=inputs,
            calibration=calibration,
            path=path,
            eval_mode=eval_mode,
            trust=trust,
            cache_dir=cache_dir,
            no_cache=no_cache,
        )
        asked.require_one_way("profile")
        job = prepare(asked)
        given = {name: value for name, value in job.arguments.items() if name != "to"}
        samples = given.get("example_inputs") if job.kind == "executorch" else None
        with Progress(output) as progress, runtime_log_hidden(verbose=verbose):
            found = etgraph.profile(job.source, samples, runs=runs, etrecord=etrecord, on_event=progress, **given)
        output.say(str(found))
        output.document({"source": {"given": source, "kind": job.kind}, **found.to_json()})
