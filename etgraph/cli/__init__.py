"""The command line: `etgraph run`, `plan`, `inspect`, `list`, `doctor`, `demo`.

One module per command or small group; `app` finds them by name. Nothing here decides anything about a program: plans,
results and inspections are data of the engine, and this package reads arguments and prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 when it did what was asked, 2 for wrong use, 1 for a failed stage, 130 for Ctrl-C.

    Args:
        arguments: without the program's name; those of the process when not given.
    """
    import gc
    import sys

    # Imports make hundreds of thousands of objects that live to the end: looking through them finds no garbage.
    gc.set_threshold(100_000, 20, 20)
    from etgraph.cli.app import invoke

    code = invoke(sys.argv[1:] if arguments is None else list(arguments))
    # All that is left goes with the process; Python would look for garbage in it first, for a sixth of the time of a
    # run that reuses everything.
    gc.freeze()
    sys.exit(code)
