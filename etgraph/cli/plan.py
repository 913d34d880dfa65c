"""`etgraph plan`: the way and the reasons, nothing done."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, Job, prepare
from etgraph.cli.output import Output, reporting
from etgraph.errors import UsageError

__all__ = ["planned", "register", "show_plan"]

_FORMATS = ("text", "json", "mermaid", "dot")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", short_help="Show the way and the reasons, without doing it.")(plan)


def plan(
    source: options.SourceArgument,
    recipe: options.Recipe = None,
    target: options.Target = None,
    to: options.To = "executorch",
    start: options.From = None,
    shape: options.Shape = None,
    inputs: options.Inputs = None,
    calibration: options.Calibration = None,
    path: options.Path = "auto",
    eval_mode: options.Eval = False,
    trust: options.Trust = False,
    cache_dir: options.CacheDirectory = None,
    no_cache: options.NoCache = False,
    refresh: options.Refresh = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(_FORMATS),
            help="How to show it.",
            autocompletion=lambda incomplete: [f for f in _FORMATS if f.startswith(incomplete)],
        ),
    ] = "text",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Show which stages a run would take from SOURCE to --to, why these, and why not others.

    SOURCE is imported or opened to see which kind it is at; no stage runs.

    \b
    Examples:
      etgraph plan net.py:model
      etgraph plan net.py:model --to edge --recipe xnnpack_fp32
      etgraph plan model.edge.etg --json
      etgraph plan net.py:model --format dot | dot -Tsvg -o plan.svg
    """
    with reporting(as_json=as_json or form == "json", verbose=verbose) as output:
        if form not in _FORMATS or (as_json and form not in ("text", "json")):
            raise UsageError(f"--format {form} is not one of {', '.join(_FORMATS)}" if form not in _FORMATS else
                             f"--format {form} and --json were both given", hint="Give one of them.")  # fmt: skip
        asked = Asked.read(
            source,
            recipe=recipe,
            target=target,
            to=to,
            start=start,
            shape=shape,
            inputs=inputs,
            calibration=calibration,
            path=path,
            eval_mode=eval_mode,
            trust=trust,
            cache_dir=cache_dir,
            no_cache=no_cache,
            refresh=refresh,
        )
        asked.require_one_way("plan")
        made = planned(prepare(asked))
        if form == "mermaid":
            output.say(made.to_mermaid())
        elif form == "dot":
            output.say(made.to_dot())
        else:
            show_plan(output, asked, made)


def planned(job: Job) -> Any:
    """Return the `etgraph.Plan` of a job."""
    import etgraph

    return etgraph.plan(job.source, **job.arguments)


def show_plan(output: Output, asked: Asked, made: Any, **more: Any) -> None:
    """Print a plan in words, or as a document."""
    output.say(made.explain())
    output.document({"source": asked.reference.given, "plan": made.to_dict(), **more})
