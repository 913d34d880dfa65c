"""`etgraph demo`: the main job on a small model, checked, as one's first minute with etgraph."""

from __future__ import annotations

from typing import Annotated

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, prepare
from etgraph.cli.outfile import output_path
from etgraph.cli.output import reporting
from etgraph.cli.plan import planned
from etgraph.cli.report import ReportFile
from etgraph.cli.resume import Dump
from etgraph.cli.run import execute

__all__ = ["register"]

_SOURCE = "etgraph.cli.demo_model:make"
_RECIPE = "xnnpack_fp32"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", short_help="The whole way on a small bundled model, checked.")(demo)


def demo(
    out: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="The file to write.")] = "demo.pte",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Bring a small bundled model to a .pte on XNNPACK, execute it on this host, and compare with PyTorch.

    \b
    Examples:
      etgraph demo
      etgraph demo -o somewhere/demo.pte
    """
    with reporting(as_json=as_json, quiet=quiet, verbose=verbose) as output:
        asked = Asked.read(_SOURCE, recipe=_RECIPE)
        file = output_path(out, asked.reference, asked.to)
        job = prepare(asked)
        output.say("a small vision model: two convolutions with batch norm, one attention block, random weights")
        output.say()
        output.say(planned(job).explain())
        output.say()
        execute(output, job, file, Dump(None, "demo"), ReportFile(None, "demo"), verify=True)
        output.say()
        output.say("with a model of yours:")
        output.say("  from an exported program   etgraph run colleague.pt2 -o model.pte")
        output.say(f"  stop at edge to look       etgraph run {_SOURCE} --to edge -o demo.edge.etg")
        output.say("                             etgraph inspect demo.edge.etg")
        output.say("                             etgraph run demo.edge.etg -o demo.pte")
        output.say(f"  again after a change       etgraph run {_SOURCE} -o demo.pte")
