"""Scale: how do time and peak memory grow with layers and with weights, for etgraph and for the calls by hand?

A ViT from a module to a `.pte` for XNNPACK; each run in a fresh process, the two ways taking turns. Exponents are the
slopes of straight lines through sizes and figures on logarithmic axes; of memory, what comes on top of the imports.

Parts: `layers`, `weights`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.asking import Ask, main, say, scratch
from benchmarks.figures import Answer, Figure, Series, exponent, ratios
from benchmarks.processes import Run, interleaved, module

WAYS = {"by hand": "by_hand", "etgraph": "with_etgraph"}
LAYERS = (2, 4, 8, 16)
WIDTHS = (128, 512, 1024, 2048)


def measure(ask: Ask) -> Answer:
    """Grow one of the two at a time."""
    answer = Answer()
    if ask.wants("layers"):
        sizes = [(float(n), {"num_hidden_layers": n}) for n in LAYERS[: 2 if ask.quick else None]]
        answer.add(_along("layers", "layers", sizes, ask.times(1)))
    if ask.wants("weights"):
        widths = WIDTHS[: 2 if ask.quick else None]
        sizes = [(0.0, {"hidden_size": w, "intermediate_size": 4 * w, "num_hidden_layers": 2}) for w in widths]
        answer.add(_along("weights", "MB of weights", sizes, ask.times(1)))
    return answer


def _along(axis: str, label: str, sizes: list[tuple[float, dict[str, int]]], rounds: int) -> Answer:
    """Measure all sizes; an x of 0 stands for the size of the weights."""
    measured: list[tuple[float, dict[str, list[Run]]]] = []
    with scratch() as folder:
        for x, options in sizes:
            say(f"scale: {options}")
            ways = {words: partial(_run, way, options, folder) for words, way in WAYS.items()}
            runs = interleaved(ways, rounds)
            measured.append((x or runs["etgraph"][0].told["weights"] / 1e6, runs))
    answer = Answer()
    x = tuple(one for one, _ in measured)
    for quantity, unit, title in (
        ("cpu", "seconds of processor time", "time"),
        ("added", "MB on top of the imports", "peak memory"),
    ):
        lines = {words: [_middle(runs[words], quantity) for _, runs in measured] for words in WAYS}
        answer.series.append(Series("scale", f"Export to .pte: {title} by {axis}", label, unit, x, lines))
        for words, values in lines.items():
            what = f"{title} by {axis}, {words}: power that it grows with"
            note = ", ".join(f"{at:,.0f}: {value:,.1f}" for at, value in zip(x, values, strict=True))
            answer.figures.append(Figure("scale", what, (exponent(x, values),), "", note=f"{label}: {unit} {note}"))
        largest = measured[-1][1]
        values = ratios(_all(largest["etgraph"], quantity), _all(largest["by hand"], quantity))
        wanted = "<= 1.03" if quantity == "cpu" else ""
        answer.figures.append(
            Figure("scale", f"{title} at {x[-1]:,.0f} {label}, etgraph / by hand", values, "x", wanted)
        )
    return answer


def _run(way: str, options: dict[str, Any], folder: Path, number: int) -> Run:
    del number
    job = {"way": way, "network": "vit_small", "precision": "fp32", "options": options, "out": str(folder / "x.pte")}
    return module("child", job)


def _all(runs: list[Run], quantity: str) -> list[float]:
    if quantity == "added":
        return [(run.peak - run.told["resident_before"] + run.told["weights"]) / 1e6 for run in runs]
    return [float(run.told[quantity]) for run in runs]


def _middle(runs: list[Run], quantity: str) -> float:
    values = sorted(_all(runs, quantity))
    return values[len(values) // 2]


if __name__ == "__main__":
    main(measure, __doc__)
