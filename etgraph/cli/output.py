"""What commands print: results to stdout, the rest to stderr, or one JSON document."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from etgraph.errors import EtgraphError, StageError
from etgraph.plain_data import plain

__all__ = ["Output", "command_line", "invocation", "reader_left", "reporting"]

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

    @property
    def speaks(self) -> bool:
        """Whether results are printed in words."""
        return not self.as_json and not self.quiet

    def say(self, text: str = "") -> None:
        """Print a result."""
        if self.speaks:
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

    def document(self, content: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> None:
        """Print the JSON document, with the warnings that there were; one that takes work is made then only."""
        if self.as_json:
            whole = {**(content() if callable(content) else content), "warnings": self.warnings}
            print(json.dumps(plain(whole), indent=2, allow_nan=False), file=self._stdout, flush=True)

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
