"""Processes that are measured: each way of doing something runs in a fresh one.

Processor time and peak memory are those that the operating system counted for this process alone (`wait4`). A process
begins with its parent's peak, so this one must stay small (some 120 MB): it never imports torch, and whatever lowers a
program has at least three times as much.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

#: Runs the command line and says at the end, on stderr, whether torch was imported.
COMMAND = """
import sys
from etgraph.cli import main
try:
    main(sys.argv[1:])
finally:
    print("torch imported" if "torch" in sys.modules else "torch not imported", file=sys.stderr)
"""


@dataclass(frozen=True)
class Run:
    """A process that ended.

    Args:
        wall: seconds from its start to its end.
        cpu: processor seconds, its own and the system's for it.
        peak: the largest resident memory, in bytes.
        out, err: what it printed.
    """

    wall: float
    cpu: float
    peak: int
    out: str = field(repr=False)
    err: str = field(repr=False)

    @property
    def told(self) -> dict[str, Any]:
        """What it printed as JSON on its last line."""
        data: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return data


def run(arguments: Sequence[str], **environment: str) -> Run:
    """Run a Python process and measure it.

    Raises:
        RuntimeError: it failed; with what it printed.
    """
    assert "torch" not in sys.modules, "the process that measures must be small: its children begin with its peak"
    # With bytecode kept, as for whoever runs a command twice.
    bytecode = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "etgraph-bytecode"),
    }
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", **bytecode, **environment}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-W", "ignore", *arguments], stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        printed, complained = out.read(), err.read()
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)[-300:]} ended with {process.returncode}:\n{complained[-3000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, printed, complained)


def module(name: str, job: Mapping[str, Any]) -> Run:
    """Run a module of this package on a job."""
    return run(["-m", f"benchmarks.{name}", json.dumps(job)])


def command(*arguments: str, cache: Path) -> Run:
    """Run a command of etgraph's on a cache."""
    return run(["-c", COMMAND, *arguments], ETGRAPH_CACHE_DIR=str(cache))


def interleaved(
    ways: Mapping[str, Callable[[int], Run]], rounds: int, once: Collection[str] = ()
) -> dict[str, list[Run]]:
    """Take turns: all ways once, then all of them again, every other round backwards.

    What else the machine does then meets all ways alike.

    Args:
        ways: name to what runs it, given the number of the round.
        once: ways that run in the first round only.
    """
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways) if number % 2 == 0 else reversed(list(ways)):
            if number == 0 or name not in once:
                runs[name].append(ways[name](number))
    return runs
