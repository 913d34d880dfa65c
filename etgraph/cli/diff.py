"""`etgraph diff`: how two programs differ."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, prepare
from etgraph.cli.output import reporting
from etgraph.errors import EtgraphError

__all__ = ["register"]

A = Annotated[str, typer.Argument(metavar="A", help="The first program, as SOURCE of `etgraph run`.")]
B = Annotated[str, typer.Argument(metavar="B", help="The second program.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", short_help="Show how two programs differ.")(diff)


def diff(
    a: A,
    b: B,
    trust: options.Trust = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show how two programs differ, of the same kind or of different ones.

    Operators, where they run and with which constants; weights, inputs and outputs, options, sizes.

    \b
    Examples:
      etgraph diff yesterday.pte today.pte
      etgraph diff model.edge.etg model.lowered.etg
      etgraph diff old/net.py:make net.py:make

    Exit code, as of diff: 0 they are the same, 1 they differ, 2 trouble.
    """
    with reporting(as_json=as_json, quiet=quiet, verbose=verbose) as output:
        import etgraph

        try:
            first = _source(a, trust)
            _forget_neighbours(a, b)
            found = etgraph.diff(first, _source(b, trust), names=(a, b), trust=trust)
        except EtgraphError as error:
            output.error(error)
            raise typer.Exit(2) from None
        output.say(str(found))
        output.document(found.to_json())
    raise typer.Exit(0 if found.same else 1)


def _source(given: str, trust: bool) -> Any:
    return prepare(Asked.read(given, trust=trust and Path(given).exists())).source


def _forget_neighbours(a: str, b: str) -> None:
    """Let code of the second program import the files beside it, where the first had files of the same names."""
    folders = [Path(one.rpartition(":")[0] or ".").resolve().parent for one in (a, b)]
    if folders[0] == folders[1]:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or Path(file).parent != folders[0]:
            continue
        if (folders[1] / os.path.basename(file)).exists():
            del sys.modules[name]
