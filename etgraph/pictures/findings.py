"""Tables of what checks found: why backends left operators, and where numbers leave tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["trace_of", "why_of"]

#: How many source lines and operators a row names, and how many nodes around a bad one are shown.
_LINES = 4
_AROUND = 5


def why_of(check: Mapping[str, Any] | None, without: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the rows of the why-not table.

    Args:
        check: as `DelegationCheck.to_json()` gives it; None where nobody asked.
        without: notes that stand elsewhere already.
    """
    if check is None:
        return None
    rows = [
        _why_row(method, backend["backend"], group)
        for method, found in check["methods"].items()
        for backend in found["backends"]
        for group in backend["untaken"]
    ]
    missing = {one["operator"] for found in check["methods"].values() for one in found["without_kernel"]}
    return {
        "rows": rows,
        "methods": len(check["methods"]) > 1,
        "without_kernel": sorted(missing),
        "notes": [note for note in check["notes"] if note not in without],
    }


def _why_row(method: str, backend: str, group: Mapping[str, Any]) -> dict[str, Any]:
    counts = Counter(one["operator"] for one in group["operators"])
    lines = list(dict.fromkeys(one["source_line"] for one in group["operators"] if one["source_line"]))
    return {
        "method": method,
        "backend": backend,
        "reason": group["reason"],
        "quoted": group["quoted"],
        "operators": [f"{name} x{count}" if count > 1 else name for name, count in counts.most_common()],
        "helps": group["helps"],
        "lines": lines[:_LINES],
        "more": len(lines[_LINES:]),
    }


def trace_of(numerics: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what a page shows of a comparison of every kind on the way.

    Args:
        numerics: as `Comparison.to_json()` gives it; None where nobody asked.
    """
    if numerics is None:
        return None
    stages = numerics["stages"]
    bad = next((stage for stage in stages if not stage["within"]), None)
    samples = sum(numerics["samples"].values())
    kinds = Counter(stage["kind"] for stage in stages)
    return {
        "within": numerics["within"],
        "first_bad": f"{bad['kind']}, made by {bad['stage']}" if bad is not None else "",
        "inputs": f"{numerics['inputs']} ({samples} sample{'' if samples == 1 else 's'})",
        "rows": [
            {**row, "kind": f"{row['kind']}, by {stage['stage']}" if kinds[stage["kind"]] > 1 else row["kind"]}
            for stage in stages
            for row in _stage_rows(stage)
        ],
        "suspects": [_suspect(one) for one in numerics["suspects"]],
        "nodes": _nodes(numerics["nodes"], [one["node"] for one in numerics["suspects"] if one["node"]]),
        "notes": numerics["notes"],
    }


def _stage_rows(stage: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    if stage["reason"]:
        verb = "fails" if stage["failed"] else "not executed"
        yield {"kind": stage["kind"], "reason": f"{verb}: {stage['reason']}"}
        return
    for one in stage["outputs"]:
        yield {
            "kind": stage["kind"],
            "method": one["method"],
            "output": one["output"],
            "gap": one["source"],
            "cosine": f"{float(one['source']['cosine']):.5f}",
            "within": one["within"],
            "verdict": "too large",
            "reason": "",
        }


def _suspect(found: Mapping[str, Any]) -> dict[str, str]:
    node = found["node"] or {}
    what = "Off inside, though the outputs are within tolerance" if found["masked"] else "The first bad place"
    calls = ""
    if node.get("counterpart_call"):
        calls = f"now:    {node['call']}\nbefore: {node['counterpart_call']}"
    if node.get("scale"):
        values = ", ".join(f"{float(value):g}" for value in dict.fromkeys(node["scale"]))
        calls += f"{chr(10) if calls else ''}scale {values}"
    return {
        "title": f"{what}: {found['kind']}, made by {found['stage']}, method {found['method']}",
        "words": found["words"],
        "source_line": node.get("source_line", ""),
        "calls": calls,
    }


def _nodes(nodes: Sequence[Mapping[str, Any]], bad: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes around each bad one, in the order in which they run."""
    listed = [node for node in nodes if node["gap"] is not None]
    wanted: set[int] = set()
    for at, node in enumerate(listed):
        if node in bad:
            wanted.update(range(max(0, at - _AROUND), min(len(listed), at + _AROUND + 1)))
    return [{**listed[at], "first": listed[at] in bad} for at in sorted(wanted)]
