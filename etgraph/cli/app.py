"""The Typer application: which commands there are, and what becomes of an error that no command handled."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, NoReturn

import typer

from etgraph.cli.output import Output, invocation, reader_left
from etgraph.errors import EtgraphError, UsageError

__all__ = ["COMMANDS", "build", "invoke"]

#: Commands, in the order that `--help` shows them, and the modules of this package that hold them; each module has
#: `register(app)`.
COMMANDS = {
    "run": "run",
    "plan": "plan",
    "check": "check",
    "inspect": "inspect",
    "profile": "profile",
    "diff": "diff",
    "list": "listing",
    "cache": "cache",
    "doctor": "doctor",
    "demo": "demo",
}

#: Errors of Typer's own parser. Typer 0.15 takes them from click, later ones from a copy inside typer.
_PARSER_ERROR: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException" and issubclass(base, Exception)
)


def build(only: str | None = None) -> typer.Typer:
    """Make the application out of every command module, or out of that of one command, which takes less time."""
    app = typer.Typer(
        name="etgraph",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for module in COMMANDS.values() if only is None else [COMMANDS[only]]:
        importlib.import_module(f"etgraph.cli.{module}").register(app)
    return app


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=lambda given: _show_version(given), help="Show the version."),
    ] = False,
) -> None:
    """Turn PyTorch models into ExecuTorch programs, from whatever kind they are at.

    \b
    Start with:
      etgraph demo                            the whole way on a small model, checked
      etgraph run net.py:model                a model of yours to model.pte
      etgraph run colleague.pt2 -o model.pte  go on from a program that was exported elsewhere
      etgraph run net.py:model --to edge      stop to look; etgraph run model.edge.etg goes on
      etgraph plan net.py:model               the way and the reasons, without doing it
      etgraph check net.py:model              what backends would take, and why not the rest

    Exit code: 0 done, 2 wrong use, 1 a stage or a check failed, 130 interrupted.
    """


def _show_version(given: bool) -> None:
    if given:
        from importlib.metadata import version

        print(f"etgraph {version('etgraph')}")
        raise typer.Exit()


def invoke(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code. Every error has been printed by then."""
    invocation.set(tuple(arguments))
    if hasattr(signal, "SIGTERM"):
        # As an exception, so that temporary files are removed on the way out.
        signal.signal(signal.SIGTERM, _terminated)
    try:
        only = arguments[0] if arguments and arguments[0] in COMMANDS else None
        code = build(only)(args=list(arguments), prog_name="etgraph", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _PARSER_ERROR as error:
        return _refused(error, arguments)
    except EtgraphError as error:
        _stray_output(arguments).error(error)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print("etgraph: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        reader_left()
        return 141


def _refused(error: Exception, arguments: Sequence[str]) -> int:
    """Report what Typer's parser refused, in the same form as errors of our own."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", error))
        return 2
    command = context.command_path if context is not None else "etgraph"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    _stray_output(arguments).error(UsageError(message, hint=f"`{command} --help` shows what can be given."))
    return 2


def _stray_output(arguments: Sequence[str]) -> Output:
    return Output(as_json="--json" in arguments)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
