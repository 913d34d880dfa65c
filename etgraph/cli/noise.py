"""Keeping the terminal clean: upstream logs, warns and prints a lot that says nothing about the user's program."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.errors import EtgraphWarning

if TYPE_CHECKING:
    from etgraph.cli.output import Output

__all__ = ["native_stderr_hidden", "only_what_matters"]


@contextlib.contextmanager
def only_what_matters(output: Output) -> Iterator[None]:
    """Show etgraph's warnings as one line each; hide other warnings and logs below ERROR unless verbose.

    Whatever is printed meanwhile, by a user's model file or by upstream, goes to stderr: stdout carries results.
    """
    disabled = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, EtgraphWarning):
                output.warn(str(message))
            elif output.verbose:
                shown(message, category, *place, **more)

        # The hook and not a filter: torch sets filters of its own while it works.
        warnings.showwarning = show
        warnings.simplefilter("always", EtgraphWarning)
        if not output.verbose:
            logging.disable(max(disabled, logging.WARNING))
        try:
            yield
        finally:
            logging.disable(disabled)


@contextlib.contextmanager
def native_stderr_hidden(*, verbose: bool) -> Iterator[None]:
    """Hide what C++ code writes to file descriptor 2 while the block runs; show it after all when the block fails.

    Loading the ExecuTorch runtime prints about files of other processors (executorch 1.5.1, `cpuinfo_utils.cpp`).
    """
    if verbose:
        yield
        return
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            _restore(saved)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            _restore(saved)
            os.close(saved)


def _restore(saved: int) -> None:
    sys.stderr.flush()
    os.dup2(saved, 2)
