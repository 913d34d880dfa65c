"""How long does the command line take to start, and to do what needs no torch?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.common import Figure, etgraph, median, run, show

COMMANDS = (("--help",), ("list", "recipes"), ("list", "stages"), ("list", "targets"), ("cache", "ls"))
ROUNDS = 5


def measure() -> list[Figure]:
    """Take the median of five new processes of each; processor time."""
    figures = []
    for name, code in (
        ("python itself", "pass"),
        ("import etgraph", "import etgraph"),
        ("import torch", "import torch"),
    ):
        figures.append(Figure(name, median([run(["-c", code]) for _ in range(ROUNDS)]).cpu, "s"))
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            runs = [etgraph(*command, cache=Path(folder) / "cache") for _ in range(ROUNDS)]
            middle = median(runs)
            figures.append(Figure(f"etgraph {' '.join(command)}", middle.cpu, "s", note=middle.err.strip()))
    return figures


if __name__ == "__main__":
    show(measure())
