"""Sizes as a treemap: the parts of a program, each with an area in proportion to its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from etgraph.pictures import need, rendered
from etgraph.words import percent, size

__all__ = ["SECTIONS", "draw_sizes"]

#: What parts of a program are, with the class that gives them their colour.
SECTIONS = {
    "weights": "fill-0",
    "delegate weights": "fill-1",
    "delegates": "fill-2",
    "constants": "fill-3",
    "start values": "fill-4",
    "data file": "fill-0",
    "program": "fill-portable",
    "alignment": "fill-portable",
}
_HEIGHT = 280
#: The width for which parts are laid out, in pixels; on other pages they are stretched.
_WIDTH = 720
#: Parts that are smaller than this share of the whole are drawn as one.
_SMALLEST = 0.004
_MOST = 60


def draw_sizes(parts: Sequence[Mapping[str, Any]]) -> str:
    """Draw where the bytes of a program are.

    Args:
        parts: each with `method` (empty for what is of all of them), `section`, `name` and `bytes`, the largest first.

    Returns:
        an `<svg>` element; empty where there is nothing to draw.
    """
    whole = sum(part["bytes"] for part in parts)
    if not whole:
        return ""
    from squarify import squarify

    drawn = _gathered(parts, whole)
    areas = [part["bytes"] * _WIDTH * _HEIGHT / whole for part in drawn]
    cells = [
        _cell(part, place, whole) for part, place in zip(drawn, squarify(areas, 0, 0, _WIDTH, _HEIGHT), strict=True)
    ]
    largest = ", ".join(f"{part['name']} {size(part['bytes'])}" for part in drawn[:3])
    words = f"{size(whole)} in {len(parts)} parts; the largest: {largest}"
    return rendered("treemap.svg.j2", cells=cells, words=words, height=_HEIGHT)


def _gathered(parts: Sequence[Mapping[str, Any]], whole: int) -> list[Mapping[str, Any]]:
    """Return the parts that are large enough to be seen, and one for all the others."""
    shown = [part for part in parts if part["bytes"] >= _SMALLEST * whole][:_MOST]
    rest = parts[len(shown) :]
    if len(rest) == 1:
        return list(parts)
    if rest:
        count = sum(part["bytes"] for part in rest)
        shown = [*shown, {"method": "", "section": "smaller", "name": f"{len(rest)} smaller parts", "bytes": count}]
    return sorted(shown, key=lambda part: -part["bytes"])


def _cell(part: Mapping[str, Any], place: Mapping[str, float], whole: int) -> dict[str, Any]:
    fraction = place["dx"] / _WIDTH
    of = f"{part['method']} · " if part["method"] else ""
    amount = f"{size(part['bytes'])}  {percent(part['bytes'], whole)}"
    lines = [f"{of}{part['name']}", amount] if place["dy"] >= 40 else [f"{part['name']} {size(part['bytes'])}"]
    if place["dy"] < 18:
        lines = []
    return {
        "x": round(100 * place["x"] / _WIDTH, 3),
        "y": round(place["y"], 2),
        "width": round(100 * fraction, 3),
        "height": round(place["dy"], 2),
        "colour": SECTIONS.get(part["section"], "fill-portable"),
        "lines": [{"text": text, "need": need(text, fraction), "y": 17 + 16 * n} for n, text in enumerate(lines)],
        "title": f"{of}{part['name']} ({part['section']}): {amount}",
    }
