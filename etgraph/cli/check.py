"""`etgraph check`: what backends would take, and why not the rest, before the long run."""

from __future__ import annotations

from typing import Annotated

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, prepare
from etgraph.cli.output import reporting
from etgraph.cli.progress import Progress

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", short_help="Say what backends would take, and why not the rest.")(check)


def check(
    source: options.SourceArgument,
    recipe: options.Recipe = None,
    target: options.Target = None,
    start: options.From = None,
    shape: options.Shape = None,
    inputs: options.Inputs = None,
    calibration: options.Calibration = None,
    eval_mode: options.Eval = False,
    trust: options.Trust = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere/--no-elsewhere",
            help="Also ask the backends of other targets that can be lowered here about what is left.",
        ),
    ] = True,
    cache_dir: options.CacheDirectory = None,
    no_cache: options.NoCache = False,
    refresh: options.Refresh = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Say which operators each backend would take of SOURCE, why not the others, and what would help.

    It goes as far as the edge program and asks the partitioners; no backend compiles anything. Reasons in quotation
    marks are the partitioner's own words. What is said to help was tried on this program.

    \b
    Examples:
      etgraph check net.py:model                                     on XNNPACK
      etgraph check net.py:model --target ios-arm64-coreml-fp16
      etgraph check model.edge.etg --recipe vulkan_fp32 --json
    """
    with reporting(as_json=as_json, verbose=verbose) as output:
        asked = Asked.read(
            source,
            recipe=recipe,
            target=target,
            to="edge",
            start=start,
            shape=shape,
            inputs=inputs,
            calibration=calibration,
            eval_mode=eval_mode,
            trust=trust,
            cache_dir=cache_dir,
            no_cache=no_cache,
            refresh=refresh,
        )
        asked.require_one_way("check")
        import etgraph

        job = prepare(asked)
        arguments = {name: value for name, value in job.arguments.items() if name not in ("to", "path")}
        with Progress(output) as progress:
            found = etgraph.check(job.source, **arguments, elsewhere=elsewhere, on_event=progress)
        output.say(f"{source}, at {found.kind}:")
        output.say(str(found))
        output.document({"source": {"given": source, "kind": found.kind}, **found.to_json()})
