"""Warm: what does the cache give on an unchanged saved program, and what does it cost when it is empty?

ViT-base, saved as exported, to a `.pte` for XNNPACK by the command line; each run is a new process. The script by hand
digests the program with sha256, finds the digest that it noted, and copies the `.pte` that it kept.

Parts: NETWORK, such as `--only mobilenet_v2`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.asking import Ask, main, say, scratch
from benchmarks.figures import Answer, Figure, ratios
from benchmarks.networks import NAMES
from benchmarks.processes import Run, command, interleaved, run

EXPORT = """
import sys, etgraph
from benchmarks import networks
etgraph.run(*networks.make(sys.argv[1]), to="exported", cache=False).save(sys.argv[2])
"""
BY_HAND = """
import hashlib, shutil, sys
program, kept, out = sys.argv[1:]
with open(program, "rb") as file:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
with open(kept + ".sha256") as noted:
    assert noted.read() == digest
shutil.copyfile(kept, out)
"""


def measure(ask: Ask) -> Answer:
    """Run with the cache off, with an empty one, and again, into the same file and into new ones."""
    networks = [name for name in NAMES if name in ask.only] if ask.only else ["vit_small" if ask.quick else "vit_base"]
    answer = Answer()
    for network in networks:
        answer.figures += _network(network, ask)
    return answer


def _network(network: str, ask: Ask) -> list[Figure]:
    with scratch() as folder:
        program, out = folder / "net.exported.etg", folder / "net.pte"
        run(["-c", EXPORT, network, str(program)])

        def etgraph(to: Path, cache: Path, *more: str) -> Run:
            say(f"warm: etgraph run {' '.join(more)} with {'a kept' if cache.exists() else 'an empty'} cache")
            return command("run", str(program), "-o", str(to), *more, cache=cache)

        cold = interleaved(
            {
                "off": lambda number: etgraph(out, folder / f"unused{number}", "--no-cache"),
                "empty": lambda number: etgraph(folder / "built.pte", folder / f"cache{number}"),
            },
            ask.times(2),
        )
        _note(program, out, folder / "kept.pte")
        cache = folder / "cache0"
        rounds = ask.times(5, quick=2)
        ways = {
            "same": lambda number: etgraph(out, cache),
            "new": lambda number: etgraph(folder / f"new{number}.pte", cache),
            "hand": lambda number: _by_hand(program, folder / "kept.pte", folder / f"hand{number}.pte"),
        }
        warm = interleaved(ways, rounds)
        written = [out, folder / "built.pte", *(folder / f"new{number}.pte" for number in range(rounds))]
        if len({path.read_bytes() for path in written}) != 1:
            raise RuntimeError("a .pte from the cache is another than the one that was built")
        size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        disk = Figure("warm", "cache on disk (lowered, executorch) / .pte", (size / out.stat().st_size,), "x")
    return [*_figures(NAMES[network], cold, warm, ask.quick), disk]


def _note(program: Path, built: Path, kept: Path) -> None:
    import hashlib
    import shutil

    shutil.copyfile(built, kept)
    with program.open("rb") as file:
        kept.with_name(kept.name + ".sha256").write_text(hashlib.file_digest(file, "sha256").hexdigest())


def _by_hand(program: Path, kept: Path, out: Path) -> Run:
    return run(["-c", BY_HAND, str(program), str(kept), str(out)])


def _figures(name: str, cold: dict[str, list[Run]], warm: dict[str, list[Run]], quick: bool) -> list[Figure]:
    figures = []
    torch_free = {run.err.strip().splitlines()[-1] for run in (*warm["same"], *warm["new"])}
    for quantity, words in (("wall", "wall"), ("cpu", "processor time")):
        take = partial(_values, quantity=quantity)
        empty = ratios(take(cold["empty"]), take(cold["off"]))
        figures += [
            Figure("warm", f"{name}, empty cache / cache off: {words}", empty, "x", "<= 1.10"),
            Figure("warm", f"{name}, cache off: {words}", take(cold["off"]), "s"),
        ]
        off = sorted(take(cold["off"]))[len(cold["off"]) // 2]
        for way, where in (("same", "the same file"), ("new", "a new file")):
            values = take(warm[way])
            faster = tuple(off / value for value in values)
            wanted = "" if quick else ">= 50"
            figures.append(Figure("warm", f"{name}, cold / unchanged, into {where}: {words}", faster, "x", wanted))
            limit = "<= 0.6" if quantity == "cpu" else ""
            note = ", ".join(sorted(torch_free))
            figures.append(Figure("warm", f"{name}, unchanged, into {where}: {words}", values, "s", limit, note))
        by_hand = ratios(take(warm["new"]), take(warm["hand"]))
        figures.append(Figure("warm", f"{name}, unchanged, etgraph / digest and copy by hand: {words}", by_hand, "x"))
    return figures


def _values(runs: list[Run], quantity: str) -> tuple[float, ...]:
    return tuple(float(getattr(run, quantity)) for run in runs)


if __name__ == "__main__":
    main(measure, __doc__)
