"""Delegation as stacked bars: for each method, how many operators each backend took, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etgraph.pictures import need, rendered
from etgraph.words import counted, percent

__all__ = ["colours_of", "draw_delegation"]

#: How many colours there are for backends; further ones share the last.
_COLOURS = 5


def colours_of(delegation: Mapping[str, Any]) -> dict[str, str]:
    """Return a class for each backend, by its name, in the order that they are met in."""
    names = dict.fromkeys(one["name"] for found in delegation.values() for one in found["backends"])
    return {name: f"fill-{min(number, _COLOURS - 1)}" for number, name in enumerate(names)}


def draw_delegation(method: str, found: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """Draw the bar of one method.

    Args:
        found: `backends`, each with `name`, `delegates` and `nodes`, and `others`, the operators that are left.
        colours: as `colours_of` gives them.

    Returns:
        an `<svg>` element; empty where a method has no operator.
    """
    parts = [(one["name"], one["nodes"], colours[one["name"]]) for one in found["backends"]]
    parts = [part for part in (*parts, ("portable", found["others"], "fill-portable")) if part[1]]
    whole = sum(count for _, count, _ in parts)
    if not whole:
        return ""
    start = 0.0
    cells = []
    for name, count, colour in parts:
        label = f"{name} {count:,}"
        fraction = count / whole
        cells.append(
            {
                "x": round(100 * start, 3),
                "width": round(100 * fraction, 3),
                "colour": colour,
                "label": label,
                "need": need(label, fraction),
                "title": f"{name}: {counted(count, 'operator')}, {percent(count, whole)}",
            }
        )
        start += fraction
    words = f"{method}: {'; '.join(cell['title'] for cell in cells)}"
    return rendered("bar.svg.j2", cells=cells, words=words)
