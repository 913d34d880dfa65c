"""What the benchmarks share: figures, processes that are measured, and the model that they are about."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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

#: A model in a file, as a user has it; the figures are about this one.
MODEL = """
import torch, transformers

def make():
    torch.manual_seed(0)
    config = transformers.ViTConfig({options})
    model = transformers.ViTForImageClassification(config).eval()
    # a comment
    return model, (torch.zeros(1, 3, {size}, {size}),)
"""
SMALL = "hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, image_size=64"


@dataclass(frozen=True)
class Figure:
    """An answer: what was measured, and what is wanted of it (as text, such as `<= 1.10`; empty for none)."""

    question: str
    value: float
    unit: str
    wanted: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the figure is as wanted; None where nothing is."""
        if not self.wanted:
            return None
        comparison, limit = self.wanted.split()
        return self.value <= float(limit) if comparison in ("<=", "<") else self.value >= float(limit)


@dataclass(frozen=True)
class Run:
    """A process that ended: wall seconds, its own processor seconds, and what it printed."""

    wall: float
    cpu: float
    out: str
    err: str


def run(arguments: Sequence[str], **environment: str) -> Run:
    """Run a Python process and measure it.

    Raises:
        RuntimeError: it failed; with what it printed.
    """
    # With bytecode kept, as for whoever runs a command twice.
    bytecode = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "etgraph-bytecode"),
    }
    env = {**os.environ, "PYTHONPATH": str(ROOT), **bytecode, **environment}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True, env=env)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments[-6:])} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, done.stdout, done.stderr)


def etgraph(*arguments: str, cache: Path) -> Run:
    """Run a command of etgraph's on a cache."""
    return run(["-c", COMMAND, *arguments], ETGRAPH_CACHE_DIR=str(cache))


def median(runs: Sequence[Run]) -> Run:
    """Return the run in the middle by wall time."""
    return sorted(runs, key=lambda one: one.wall)[len(runs) // 2]


def is_small() -> bool:
    """Whether a small model was asked for, to see that a benchmark works."""
    return "small" in sys.argv[1:]


def write_model(folder: Path) -> Path:
    """Write `net.py` with ViT-base in it, or with a small one."""
    path = folder / "net.py"
    path.write_text(MODEL.format(options=SMALL if is_small() else "", size=64 if is_small() else 224))
    return path


def ratio(above: float, below: float) -> float:
    """Return how many times one figure is the other."""
    return above / below if below else float("inf")


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return statistics.fmean(values)


def show(figures: Sequence[Figure]) -> None:
    """Print a table, and the same as JSON on the last line."""
    for one in figures:
        wanted = f"wanted {one.wanted}: {'met' if one.met else 'MISSED'}" if one.wanted else ""
        print(f"{one.question:<74} {one.value:>10.3f} {one.unit:<6} {wanted:<24} {one.note}".rstrip())
    print(json.dumps([asdict(one) | {"met": one.met} for one in figures]))
