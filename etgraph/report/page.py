"""From a document to what a page shows: pictures, tables, and the few numbers that come first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from etgraph.pictures.bars import colours_of, draw_delegation
from etgraph.pictures.findings import trace_of, why_of
from etgraph.pictures.treemap import SECTIONS, draw_sizes
from etgraph.pictures.way import draw_way
from etgraph.report.commands import commands_of
from etgraph.words import counted, percent, reason_lines, seconds, size

__all__ = ["page_of"]

#: How many of the parts of a program a table names.
_PARTS = 12


def page_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the templates of a page need."""
    runs = [_run(number, run) for number, run in enumerate(document["runs"], 1)]
    return {
        "document": document,
        "title": document["source"] or "a run of etgraph",
        "runs": runs,
        "several": len(runs) > 1,
        "commands": commands_of(document),
    }


def _run(number: int, run: Mapping[str, Any]) -> dict[str, Any]:
    delegation = _delegation(run)
    colours = colours_of(delegation)
    sizes = run["sizes"] or []
    error = run["error"]
    return {
        **run,
        "reasons": _reasons(run["steps"]),
        "anchor": f"run-{number}",
        "facts": _facts(run),
        "way": draw_way(run["plan"], run["steps"], error["problem"] if error else "") if run["plan"] else "",
        "refused": _refused(run["plan"]),
        "bars": [_bar(method, found, colours) for method, found in delegation.items()],
        "colours": colours,
        "why": why_of(run["check"], without=run["plan"]["notes"] if run["plan"] else ()),
        "trace": trace_of(run["numerics"]),
        "treemap": draw_sizes(sizes),
        "parts": sizes[:_PARTS],
        "rest": {"count": len(sizes[_PARTS:]), "bytes": sum(part["bytes"] for part in sizes[_PARTS:])},
        "whole": sum(part["bytes"] for part in sizes),
        "sections": _sections(sizes),
        "total_seconds": sum(step["seconds"] for step in run["steps"]),
    }


def _facts(run: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the few numbers that come first, each with its name and what it is made of."""
    facts = []
    steps = run["steps"]
    if steps:
        reused = sum(step["outcome"] == "reused" for step in steps)
        spent = sum(step["seconds"] for step in steps)
        facts.append(_fact("time", seconds(spent), f"{reused} of {counted(len(steps), 'step')} reused"))
    written = run["files"] or []
    total = sum(one["bytes"] for one in written) or sum(part["bytes"] for part in run["sizes"] or [])
    if total and run["status"] != "failed":
        facts.append(_fact("size", size(total), written[0]["path"] if written else f"at {run['kind']}"))
    taken = _taken(_delegation(run))
    if taken is not None:
        facts.append(taken)
    largest = _largest_error(run["verification"])
    if largest is not None:
        facts.append(largest)
    return facts


def _delegation(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what backends took; nothing at edge, where all of it is still to come."""
    return {} if run["kind"] == "edge" or run["delegation"] is None else run["delegation"]


def _reasons(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return why steps ran or were reused; one line for neighbours of which the same is said."""
    return [
        {"stages": [step["stage"] for step in same], "lines": reason_lines(reason)}
        for reason, same in groupby(steps, key=lambda step: str(step["reason"]))
    ]


def _fact(name: str, value: str, about: str) -> dict[str, str]:
    return {"name": name, "value": value, "about": about}


def _taken(delegation: Mapping[str, Any]) -> dict[str, str] | None:
    inside = sum(one["nodes"] for found in delegation.values() for one in found["backends"])
    whole = inside + sum(found["others"] for found in delegation.values())
    return _fact("delegated", percent(inside, whole), f"of {counted(whole, 'operator')}") if whole else None


def _largest_error(verification: Mapping[str, Any] | None) -> dict[str, str] | None:
    if verification is None:
        return None
    if not verification["done"]:
        return _fact("largest error", "not known", "this host cannot execute the program")
    outputs = [one for method in verification["methods"].values() for one in method["outputs"]]
    if not outputs:
        return None
    worst = max(outputs, key=lambda one: _number(one["max_absolute_error"]))
    judged = {True: "within tolerance", False: "too large", None: "not judged"}[verification["passed"]]
    return _fact("largest error", f"{_number(worst['max_absolute_error']):.1e}", judged)


def _number(value: float | str) -> float:
    """Read a number that JSON holds as text where it is not finite; NaN counts as the worst."""
    number = float(value)
    return math.inf if math.isnan(number) else number


def _refused(plan: Mapping[str, Any] | None) -> list[dict[str, str]]:
    choices = plan["choices"] if plan is not None else []
    return [{**one, "from": choice["subject"]} for choice in choices for one in choice["rejected"]]


def _bar(method: str, found: Mapping[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    inside = sum(one["nodes"] for one in found["backends"])
    whole = inside + found["others"]
    return {
        "method": method,
        "picture": draw_delegation(method, found, colours),
        "backends": found["backends"],
        "others": found["others"],
        "whole": whole,
        "share": percent(inside, whole),
    }


def _sections(sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add up the parts by what they are, in the order of the largest."""
    found: dict[str, int] = {}
    for part in sizes:
        found[part["section"]] = found.get(part["section"], 0) + part["bytes"]
    return [
        {"name": name, "bytes": count, "colour": SECTIONS.get(name, "fill-portable")}
        for name, count in sorted(found.items(), key=lambda item: -item[1])
    ]
