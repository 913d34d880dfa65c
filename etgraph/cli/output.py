"""What commands print: results to stdout, the rest to stderr, or one JSON document."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from etgraph.errors import EtgraphError, StageError
from etgraph.words import counted, reason_lines, seconds, size

__all__ = [
    "Output", "command_line", "counted", "invocation", "reader_left", "reason_lines", "reporting", "seconds", "size",
    "table",
]  # fmt: skip

#: The arguments of this invocation, without the program's name.
invocation: ContextVar[tuple[str, ...]] = ContextVar("invocation", default=())


class Output:
    """Where a command prints.

    Args:
        as_json: print one JSON document instead of words.
        quiet: print only errors (and the JSON document).
        verbose: let through what torch, executorch and backends log and warn.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.warnings: list[str] = []
        # Kept from the start: stdout is redirected while other people's code runs.
        self._stdout = sys.stdout

    def say(self, text: str = "") -> None:
        """Print a result."""
        if not self.as_json and not self.quiet:
            print(text, file=self._stdout)

    def note(self, text: str) -> None:
        """Print what is good to know and is not a result."""
        if not self.as_json and not self.quiet:
            print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        """Print a warning, once; it is part of the JSON document too."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        if not self.as_json and not self.quiet:
            print(f"warning: {text}", file=sys.stderr, flush=True)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the JSON document, with the warnings that there were."""
        if self.as_json:
            whole = {**content, "warnings": self.warnings}
            print(json.dumps(_plain(whole), indent=2, allow_nan=False), file=self._stdout, flush=True)

    def error(self, error: Exception) -> None:
        """Print an error: one JSON document on stdout under `--json`, else words on stderr."""
        if self.as_json:
            self.document({"error": _error_fields(error)})
        else:
            print(f"error: {error}", file=sys.stderr, flush=True)


def _error_fields(error: Exception) -> dict[str, Any]:
    known = isinstance(error, EtgraphError)
    fields = {
        "type": type(error).__name__,
        "problem": error.problem if isinstance(error, EtgraphError) else str(error),
        "hint": error.hint if isinstance(error, EtgraphError) else "",
        "exit_code": error.exit_code if isinstance(error, EtgraphError) else 1,
    }
    address = ("stage", "method", "node", "source_line")
    fields |= {name: getattr(error, name) if isinstance(error, StageError) else "" for name in address}
    resume = getattr(error, "resume_command", "")
    return {**fields, "resume_command": resume, "expected": known}


def _plain(value: Any) -> Any:
    """Make a value JSON-able as the standard has it: NaN and infinities, which it lacks, become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # Kinds are a subclass of str without a meaning of their own in JSON.
    return str(value) if isinstance(value, str) else value


@contextlib.contextmanager
def reporting(*, as_json: bool = False, quiet: bool = False, verbose: bool = False) -> Iterator[Output]:
    """Give a command its output; turn an error of etgraph's into its message and its exit code."""
    import typer

    from etgraph.cli.noise import only_what_matters

    output = Output(as_json=as_json, quiet=quiet, verbose=verbose)
    try:
        with only_what_matters(output):
            yield output
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
        raise typer.Exit(141) from None
    except EtgraphError as error:
        output.error(error)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        # Here and not further out: Typer would turn it into an exit code and say nothing.
        print("etgraph: interrupted; no output file was written", file=sys.stderr)
        raise typer.Exit(130) from None


def reader_left() -> None:
    """Send what is still to be printed nowhere: Python would complain of the closed pipe again when it exits."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_line(*, without: Sequence[str] = (), extra: Sequence[str] = ()) -> str:
    """Return this invocation as a shell would take it, without some flags and with some more."""
    import shlex

    kept = [argument for argument in invocation.get() if argument not in without]
    return shlex.join(["etgraph", *kept, *extra])


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Lay out rows of text in columns.

    Args:
        right: the columns that are set flush right, as numbers are.
    """
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    laid = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0))
    for number in range(max((len(row) for row in (header, *rows)), default=0)):
        title = header[number] if header else ""
        laid.add_column(title, justify="right" if number in right else "left", no_wrap=True)
    for row in rows:
        laid.add_row(*(Text(cell) for cell in row))
    page = io.StringIO()
    Console(file=page, width=10_000, color_system=None, legacy_windows=False).print(laid)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())
