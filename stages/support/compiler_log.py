"""What backends' compilers print while they work: kept off the user's stdout, and shown when one fails."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO

#: How many lines of a failed compiler's output are shown.
LINES = 30

_log = logging.getLogger("stages.compiler")


@contextlib.contextmanager
def compilers_heard() -> Iterator[None]:
    """Collect what is printed to the process's stdout inside the block, by compiled code too, such as Vela's.

    After a success it goes to the log, level INFO; the exception of a failure carries its last lines as
    `etgraph_compiler_log`.
    """
    try:
        kept = os.dup(1)
    except OSError:
        # A process without a stdout has nothing to keep clean.
        yield
        return
    with tempfile.TemporaryFile() as file:
        _flush()
        os.dup2(file.fileno(), 1)
        try:
            yield
        except Exception as error:
            _flush()
            error.etgraph_compiler_log = _last_lines(file)  # type: ignore[attr-defined]
            raise
        else:
            _flush()
            _log.info("%s", _last_lines(file, None))
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def _last_lines(file: IO[bytes], count: int | None = LINES) -> str:
    file.seek(0)
    text = file.read().decode(errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:] if count is not None else lines)
