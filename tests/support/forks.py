"""Commands in processes of their own that need not import torch again: forked from one that has."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SERVER = """
import importlib, json, os, runpy, sys
import torch, executorch.exir, executorch.runtime
import executorch.backends.xnnpack.partition.xnnpack_partitioner
import etgraph.cli.app, etgraph.api
torch.set_num_threads(1)
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(order["folder"])
        os.environ.update(order["environment"])
        out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1); os.dup2(out, 2)
        sys.stdin = open(os.devnull)
        code = 70
        try:
            if order["arguments"][0] == "-c":
                exec(compile(order["arguments"][1], "<order>", "exec"), {"__name__": "__main__"})
                code = 0
            else:
                code = etgraph.cli.app.invoke(order["arguments"])
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush(); sys.stderr.flush()
            os._exit(code)
    print(child, flush=True)
    if order["wait"]:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forks:
    """Runs `etgraph` or a piece of code in forked processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._count = 0
        # What the tests import is what the processes import.
        path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        assert self._line() == "ready"

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Run to the end; return the exit code and what was printed."""
        out = self._order(arguments, wait=True)
        self._line()
        return int(self._line()), out.read_text()

    def json(self, *arguments: str) -> Any:
        """Run a command that succeeds, and return its document."""
        code, text = self(*arguments, "--json")
        assert code == 0, text
        return json.loads(text[text.index("{") :])

    def start(self, *arguments: str) -> tuple[int, Path]:
        """Start without waiting; return the process id and the file of what it prints."""
        out = self._order(arguments, wait=False)
        return int(self._line()), out

    def _order(self, arguments: tuple[str, ...], *, wait: bool) -> Path:
        self._count += 1
        out = self.folder / f"printed-{self._count}"
        order = {
            "folder": str(self.folder),
            "environment": {**self.environment, "ETGRAPH_CACHE_DIR": os.environ["ETGRAPH_CACHE_DIR"]},
            "out": str(out),
            "arguments": arguments,
            "wait": wait,
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        return out

    def _line(self) -> str:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the server ended"
        return line.strip()

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(60)


@contextlib.contextmanager
def forks(folder: Path) -> Iterator[Forks]:
    """Give a way to run commands in processes forked from one that has imported torch and executorch."""
    running = Forks(folder)
    try:
        yield running
    finally:
        running.close()


def wait_for(condition: Any, seconds: float = 120) -> None:
    """Wait until something is so; a test that never gets there fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def kill(process: int) -> None:
    """Kill a process as a crash would; it has no time to tidy up."""
    os.kill(process, signal.SIGKILL)


def is_alive(process: int) -> bool:
    """Whether a process still runs; one that ended and was not waited for counts as ended."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
