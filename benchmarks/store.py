"""The store: how much disk do all kinds of a model take, and how fast are lowered programs saved and loaded?

Against `executorch.exir.serde.serialize` with the same program, and against what memory and disk give in the same run.
Each save and each load runs in a fresh process, taking turns. Network: ViT-base.

Parts: `disk`, `files`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.asking import Ask, main, say, scratch
from benchmarks.figures import Answer, Figure, ratios
from benchmarks.networks import NAMES
from benchmarks.processes import Run, interleaved, module

WAYS = ("etgraph", "serde")


def measure(ask: Ask) -> Answer:
    """Run once through a cache, the split way; save and load what was lowered."""
    answer = Answer()
    network = "vit_small" if ask.quick else "vit_base"
    if not (ask.wants("disk") or ask.wants("files")):
        return answer
    with scratch() as folder:
        say(f"store: {network} through an empty cache")
        cache = folder / "cache"
        job = {"do": "make", "network": network, "cache": str(cache), "folder": str(folder)}
        made = module("store_child", job).told
        if ask.wants("disk"):
            size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
            what = f"{NAMES[network]}: exported, edge, lowered and executorch in the cache / weights"
            # In a small network the graphs weigh more than the weights.
            wanted = "" if ask.quick else "<= 2.2"
            answer.figures.append(Figure("store", what, (size / made["weights"],), "x", wanted))
        if ask.wants("files"):
            answer.figures += _files(folder, NAMES[network], ask.times(2), ask.quick)
    return answer


def _files(folder: Path, name: str, rounds: int, quick: bool) -> list[Figure]:
    def go(do: str, way: str, number: int) -> Run:
        say(f"store: {do} {way}, round {number + 1}")
        return module("store_child", {"do": do, "way": way, "folder": str(folder)})

    saved = interleaved({way: partial(go, "save", way) for way in WAYS}, rounds)
    loaded = interleaved({way: partial(go, "load", way) for way in WAYS}, rounds)
    machine = module("store_child", {"do": "bandwidth", "folder": str(folder)}).told
    sizes = {way: (folder / f"saved.{way}").stat().st_size for way in WAYS if way != "etgraph"}
    sizes["etgraph"] = (folder / "saved.lowered.etg").stat().st_size
    figures = []
    for words, runs in (("save", saved), ("load", loaded)):
        for quantity, label in (("wall", "wall"), ("cpu", "processor time")):
            values = {way: [run.told[quantity] for run in runs[way]] for way in WAYS}
            what = f"{name} lowered, {words}: exir.serde / etgraph, {label}"
            wanted = "" if quick else ">= 5"
            figures.append(Figure("store", what, ratios(values["serde"], values["etgraph"]), "x", wanted))
        peaks = {way: [run.peak for run in runs[way]] for way in WAYS}
        what = f"{name} lowered, {words}: exir.serde / etgraph, peak memory"
        figures.append(Figure("store", what, ratios(peaks["serde"], peaks["etgraph"]), "x"))
        speeds = tuple(sizes["etgraph"] / run.told["wall"] / 1e9 for run in runs["etgraph"])
        limit = machine["write" if words == "save" else "read"]
        against = "written to the disk" if words == "save" else "read from the system's file cache"
        note = f"a file {against}: {limit / 1e9:.2f} GB/s; copied in memory: {machine['memory'] / 1e9:.2f} GB/s"
        figures.append(Figure("store", f"{name} lowered, {words}: etgraph", speeds, "GB/s", note=note))
    what = f"{name} lowered, file: exir.serde / etgraph"
    figures.append(Figure("store", what, (sizes["serde"] / sizes["etgraph"],), "x"))
    return figures


if __name__ == "__main__":
    main(measure, __doc__)
