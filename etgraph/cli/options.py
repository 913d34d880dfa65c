"""The arguments that `run` and `plan` share: said once, with their help and completion."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from etgraph.cli import complete

__all__ = [
    "CacheDirectory", "Calibration", "CheckCache", "Eval", "From", "Inputs", "Json", "NoCache", "Path", "Quiet",
    "Recipe", "Refresh", "Shape", "SourceArgument", "Target", "To", "Trust", "Verbose",
]  # fmt: skip

SourceArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="file.py:NAME or package.module:NAME (a module, or a callable that returns a module, a pair "
        "(module, example_inputs) or an etgraph.Source), or a file that holds a program.",
    ),
]
Recipe: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        metavar="NAME",
        help="A recipe; xnnpack_fp32 by default. With options: 'xnnpack_8da4w(group_size=64)'.",
        autocompletion=complete.recipes,
    ),
]
Target: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="A target, instead of a recipe; again for each further one. It takes the options of its recipe.",
        autocompletion=complete.targets,
    ),
]
To: TypeAlias = Annotated[
    str, typer.Option("--to", metavar="KIND", help="The kind to end at.", autocompletion=complete.kinds)
]
From: TypeAlias = Annotated[
    str | None,
    typer.Option("--from", metavar="KIND", help="Insist that SOURCE is of this kind.", autocompletion=complete.kinds),
]
Shape: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="SIZES[:DTYPE]",
        help="An example input, as 1x3x224x224 or 1x16:int64; again for each further one, NAME=SIZES for a keyword "
        "input. Seeded random numbers: standard normal, or 0 and 1 for integers and bool.",
    ),
]
Inputs: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="SAMPLES",
        help="The example inputs: file.py:NAME or package.module:NAME (a tuple, a list of tuples, or a callable that "
        "returns them), or a .pt file of tensors.",
    ),
]
Calibration: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="SAMPLES",
        help="What to calibrate a quantizer with: as for --inputs, or a generator or DataLoader by its name.",
    ),
]
Path: TypeAlias = Annotated[
    str,
    typer.Option("--path", metavar="auto|combined|split", help="The way to lower.", autocompletion=complete.paths),
]
Eval: TypeAlias = Annotated[bool, typer.Option("--eval", help="Export the module as model.eval() would be.")]
Trust: TypeAlias = Annotated[
    bool, typer.Option("--trust", help="Load SOURCE even if that may run code that is inside the file.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show what torch, executorch and backends log and warn.")
]
CacheDirectory: TypeAlias = Annotated[
    str | None, typer.Option("--cache-dir", metavar="DIR", help="The cache to use, instead of the user's.")
]
NoCache: TypeAlias = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")]
CheckCache: TypeAlias = Annotated[
    bool,
    typer.Option("--check-cache", help="Build what is in the cache too, and fail where the two are not the same."),
]
Refresh: TypeAlias = Annotated[bool, typer.Option("--refresh", help="Build everything anew, and keep it in the cache.")]
