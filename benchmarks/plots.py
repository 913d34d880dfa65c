"""Plots of what was measured along an axis, and of the ratios that are wanted; matplotlib, of the extra `bench`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import figures_of

MISSING = 'no plots: matplotlib is not installed (pip install "etgraph[bench]")'


def draw(data: Mapping[str, Any], folder: Path, stem: str) -> list[Path]:
    """Draw each series of a document and one picture of its ratios, as `STEM-...png`; return the files.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    counts: Counter[str] = Counter()
    for series in data["series"]:
        counts[series["question"]] += 1
        path = folder / f"{stem}-{series['question']}-{counts[series['question']]}.png"
        _series(series, path)
        drawn.append(path)
    if any(one["unit"] == "x" and one["wanted"] for one in data["figures"]):
        path = folder / f"{stem}-ratios.png"
        _ratios(data, path)
        drawn.append(path)
    return drawn


def _series(series: Mapping[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for (name, values), marker in zip(series["lines"].items(), "os^vDx", strict=False):
        axes.plot(series["x"], values, marker=marker, label=name)
    if series["logarithmic"]:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set(title=series["title"], xlabel=series["x_label"], ylabel=series["y_label"])
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _ratios(data: Mapping[str, Any], path: Path) -> None:
    """Draw each wanted ratio relative to its limit: left of the line is better for `<=`, right of it for `>=`."""
    from matplotlib import pyplot

    shown = [one for one in figures_of(data) if one.unit == "x" and one.wanted]
    figure, axes = pyplot.subplots(figsize=(10, 0.3 * len(shown) + 1.5), layout="constrained")
    for row, one in enumerate(reversed(shown)):
        limit, (low, high) = float(one.wanted.split()[1]), one.spread
        colour = "tab:green" if one.met else "tab:red"
        axes.plot([low / limit, high / limit], [row, row], color=colour)
        axes.plot([one.median / limit], [row], marker="o", color=colour)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [f"{one.what}  {one.wanted}" for one in reversed(shown)], fontsize=7)
    axes.set_xscale("log")
    axes.set(title="Ratios against their limits", xlabel="measured / limit: median and spread")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
