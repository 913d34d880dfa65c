"""`etgraph inspect`: what a program is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from etgraph.cli import options
from etgraph.cli.describe import describe
from etgraph.cli.explorer import write_graphs
from etgraph.cli.job import Asked, prepare
from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.outfile import made_folder
from etgraph.cli.output import reporting

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect", short_help="Show what a model or a file is.")(inspect)


def inspect(
    source: options.SourceArgument,
    graph: Annotated[
        bool, typer.Option("--graph", help="Print each method's graph, with shapes and source lines.")
    ] = False,
    model_explorer: Annotated[
        str | None,
        typer.Option(
            "--model-explorer",
            metavar="DIR",
            help="Also write the graphs into this folder as a file that Model Explorer opens.",
        ),
    ] = None,
    shape: options.Shape = None,
    inputs: options.Inputs = None,
    trust: options.Trust = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Show a program's kind, methods, inputs and outputs, operators, delegates, weights and fingerprint.

    For a .pte also which backends and kernels the runtime will need, and whether this host has them.

    \b
    Examples:
      etgraph inspect net.py:model
      etgraph inspect model.edge.etg --graph
      etgraph inspect model.pte --json
      etgraph inspect model.lowered.etg --model-explorer graphs
    """
    with reporting(as_json=as_json, verbose=verbose) as output:
        from etgraph.registry import registry
        from etgraph.sources import artifact_of

        asked = Asked.read(source, shape=shape, inputs=inputs, trust=trust)
        folder = made_folder(model_explorer, "--model-explorer") if model_explorer is not None else None
        job = prepare(asked)
        artifact = artifact_of(job.source, job.arguments.get("example_inputs"), trust=trust)
        with runtime_log_hidden(verbose=verbose):
            about: dict[str, Any] = registry.service("inspect")(artifact, graph=graph)
        if asked.reference.is_program_file:
            about["written_with"] = registry.service("file_versions")(job.source) or None
        written = write_graphs(artifact, folder, asked.reference.stem) if folder is not None else None
        output.say(describe(source, about))
        if written is not None:
            output.note(f"graphs in {written}; to look at them: model-explorer {written}")
        output.document({"source": source, **about, "model_explorer": str(written) if written is not None else None})
