"""Keeping the terminal clean: upstream logs, warns and prints a lot that says nothing about the user's program."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.errors import EtgraphWarning

if TYPE_CHECKING:
    from etgraph.cli.output import Output

#: `[cpuinfo_utils.cpp:71] Reading file ...`: a source file of the runtime and a line.
_RUNTIME_LOG = re.compile(r"\[\w+\.(?:cpp|h):\d+\] ")

__all__ = ["only_what_matters", "runtime_log_hidden"]


@contextlib.contextmanager
def only_what_matters(output: Output) -> Iterator[None]:
    """Show etgraph's warnings as one line each; hide other warnings, logs below ERROR and bars unless verbose.

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
            # coremltools draws a bar for each of its passes; tqdm reads this when it is imported.
            os.environ.setdefault("TQDM_DISABLE", "1")
        try:
            yield
        finally:
            logging.disable(disabled)


@contextlib.contextmanager
def runtime_log_hidden(*, verbose: bool) -> Iterator[None]:
    """Hide the log lines of the ExecuTorch runtime while the block runs; show them after all when the block fails.

    It logs from C++ as it loads, about files of other processors (executorch 1.5.1, `cpuinfo_utils.cpp`). Whatever
    else is written to stderr meanwhile is shown when the block ends.
    """
    if verbose:
        yield
        return
    with tempfile.TemporaryFile(buffering=0) as held:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            # By file descriptor for what C++ writes, by object for what Python writes where sys.stderr is another file.
            with contextlib.redirect_stderr(io.TextIOWrapper(held, write_through=True)) as python_side:
                try:
                    yield
                    failed = False
                finally:
                    python_side.detach()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            for line in held.read().decode(errors="replace").splitlines():
                if failed or not _RUNTIME_LOG.match(line):
                    print(line, file=sys.stderr)
