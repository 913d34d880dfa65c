"""How plans, artifacts and results show themselves in a notebook: small pages that load nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from etgraph.pictures import rendered
from etgraph.pictures.bars import colours_of, draw_delegation
from etgraph.pictures.findings import trace_of, why_of
from etgraph.pictures.way import draw_way

__all__ = [
    "show_artifact",
    "show_check",
    "show_comparison",
    "show_plan",
    "show_result",
    "show_results",
    "show_verification",
]


def show_plan(plan: Any, steps: Sequence[Mapping[str, Any]] = ()) -> str:
    """Show a plan as its picture, with its notes."""
    data = plan.to_dict()
    return _page(f"{data['start']} → {data['goal']}, recipe {data['recipe']}", pictures=[draw_way(data, steps)],
                 notes=data["notes"])  # fmt: skip


def show_artifact(artifact: Any, delegation: Mapping[str, Any] | None) -> str:
    """Show an artifact: its kind, its methods with their example inputs, and what backends took of each."""
    rows = []
    for method in artifact.methods:
        samples = artifact.example_inputs.get(method, ())
        rows.append([method, repr(samples[0]) if samples else "no example inputs", str(len(samples))])
    came = " → ".join(step.stage for step in artifact.provenance)
    tables = [{"header": ["method", "example inputs", "samples"], "rows": rows}]
    notes = [f"came by: {came}"] if came else []
    bars = _bars(delegation or {}) if artifact.kind != "edge" else []
    return _page(f"{artifact.kind} program", bars=bars, tables=tables, notes=notes)


def show_result(result: Any, steps: Sequence[Mapping[str, Any]], delegation: Mapping[str, Any]) -> str:
    """Show what a run did: the way with what ran and what was reused, and what backends took."""
    data = result.plan.to_dict()
    title = f"{result.artifact.kind} program, recipe {data['recipe']}"
    bars = _bars(delegation) if result.artifact.kind != "edge" else []
    notes = [*data["notes"], *result.cache_problems]
    return _page(title, pictures=[draw_way(data, steps)], bars=bars, notes=notes)


def show_results(outcomes: Mapping[str, Any]) -> str:
    """Show the outcome for each target."""
    rows = []
    for name, one in outcomes.items():
        failed = isinstance(one, Exception)
        rows.append(
            [name, "failed" if failed else "done", str(one).partition("\n")[0] if failed else str(one.artifact.kind)]
        )
    return _page("results", tables=[{"header": ["target", "outcome", ""], "rows": rows}])


def show_verification(found: Any) -> str:
    """Show the errors of each output."""
    rows = [
        [method, str(output), f"{absolute:.1e}", f"{relative:.1e}", f"{ratio:.1f} dB"]
        for method, errors in found.items()
        for output, (absolute, relative, ratio) in enumerate(
            zip(errors, found.relative[method], found.snr.get(method) or [float("nan")] * len(errors), strict=True)
        )
    ]
    header = ["method", "output", "largest error", "relative", "signal to noise"]
    return _page("outputs against the source", tables=[{"header": header, "rows": rows}], notes=found.notes)


def show_check(check: Any) -> str:
    """Show what backends would take, and why not the rest."""
    why = why_of(check.to_json())
    assert why is not None
    rows = [
        [row["method"], row["backend"], ", ".join(row["operators"]), row["reason"], "; ".join(row["lines"])]
        for row in why["rows"]
    ]
    header = ["method", "backend", "operators", "because", "model source"]
    tables = [{"header": header, "rows": rows}] if rows else []
    title = f"recipe {check.recipe} would delegate {check.share:.0%} of the operators"
    return _page(title, bars=_bars(check.delegation), tables=tables, notes=why["notes"])


def show_comparison(found: Any) -> str:
    """Show the numbers of each output after each stage, and the first bad places."""
    trace = trace_of(found.to_json())
    assert trace is not None
    rows = [
        [row["kind"], row["reason"], "", "", "", ""]
        if row["reason"]
        else [row["kind"], row["method"], str(row["output"]), f"{float(row['gap']['absolute']):.1e}",
              f"{float(row['gap']['relative']):.1e}", "ok" if row["within"] else row["verdict"]]
        for row in trace["rows"]
    ]  # fmt: skip
    title = "within tolerance at every kind" if trace["within"] else f"leaves tolerance at {trace['first_bad']}"
    header = ["kind", "method", "output", "largest error", "relative", ""]
    suspects = [f"{one['title']}: {one['words']} {one['source_line']}".strip() for one in trace["suspects"]]
    return _page(title, tables=[{"header": header, "rows": rows}], notes=[*suspects, *trace["notes"]])


def _bars(delegation: Mapping[str, Any]) -> list[dict[str, str]]:
    colours = colours_of(delegation)
    drawn = ((method, draw_delegation(method, found, colours)) for method, found in delegation.items())
    return [{"method": method, "picture": picture} for method, picture in drawn if picture]


def _page(
    title: str,
    *,
    pictures: Sequence[str] = (),
    bars: Sequence[Mapping[str, str]] = (),
    tables: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
) -> str:
    return rendered("notebook.html.j2", title=title, pictures=pictures, bars=bars, tables=tables, notes=notes)
