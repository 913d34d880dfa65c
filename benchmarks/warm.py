"""What does the cache give on an unchanged saved program, and what does it cost when it is empty?

ViT-base, saved as exported, to a `.pte` for XNNPACK; each run is a new process. All ratios are of one run of this.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.common import Figure, etgraph, median, ratio, run, show, write_model

EXPORT = """
import sys
sys.path.insert(0, {folder!r})
import etgraph, net
etgraph.run(*net.make(), to="exported", cache=False).save({path!r})
"""
WARM_ROUNDS = 5


def measure() -> list[Figure]:
    """Run with the cache off, with an empty one, and again."""
    with tempfile.TemporaryDirectory(prefix="etgraph-bench") as name:
        folder = Path(name)
        write_model(folder)
        program, out, cache = folder / "vit.exported.etg", folder / "vit.pte", folder / "cache"
        run(["-c", EXPORT.format(folder=str(folder), path=str(program))])
        arguments = ("run", str(program), "-o", str(out))
        off = etgraph(*arguments, "--no-cache", cache=cache)
        bytes_off = out.read_bytes()
        cold = etgraph(*arguments, cache=cache)
        warm = [etgraph(*arguments, cache=cache) for _ in range(WARM_ROUNDS)]
        assert out.read_bytes() == bytes_off
        middle = median(warm)
        fresh = median(
            [etgraph("run", str(program), "-o", str(folder / f"{i}.pte"), cache=cache) for i in range(WARM_ROUNDS)]
        )
        size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        copied = _copying(out, folder / "copy.pte")
        return [
            Figure("saved program to .pte, cache off: wall", off.wall, "s"),
            Figure("saved program to .pte, cache off: process time", off.cpu, "s"),
            Figure("saved program to .pte, empty cache: wall", cold.wall, "s"),
            Figure("saved program to .pte, empty cache: process time", cold.cpu, "s"),
            Figure("empty cache against cache off: wall", ratio(cold.wall, off.wall), "x", "<= 1.10"),
            Figure("empty cache against cache off: process time", ratio(cold.cpu, off.cpu), "x", "<= 1.10"),
            Figure(
                "saved program to .pte, unchanged: wall", middle.wall, "s", note=middle.err.strip().splitlines()[-1]
            ),
            Figure("saved program to .pte, unchanged: process time", middle.cpu, "s", "<= 0.6"),
            Figure("saved program to .pte, unchanged, into a new file: wall", fresh.wall, "s"),
            Figure("saved program to .pte, unchanged, into a new file: process time", fresh.cpu, "s", "<= 0.6"),
            Figure("cold against unchanged: wall", ratio(cold.wall, middle.wall), "x", ">= 50"),
            Figure("cold against unchanged: process time", ratio(cold.cpu, middle.cpu), "x", ">= 50"),
            Figure("copying the .pte once, for comparison: wall", copied, "s"),
            Figure("cache on disk (lowered and executorch) against the .pte", ratio(size, out.stat().st_size), "x"),
        ]


def _copying(source: Path, target: Path) -> float:
    import time

    began = time.perf_counter()
    shutil.copyfile(source, target)
    return time.perf_counter() - began


if __name__ == "__main__":
    show(measure())
