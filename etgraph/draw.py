"""Plans for people and for machines: words, Mermaid, DOT, JSON-able data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etgraph.words import wrapped

if TYPE_CHECKING:
    from etgraph.planned import Plan

__all__ = ["explain", "to_dict", "to_dot", "to_mermaid"]


def explain(plan: Plan) -> str:
    """Say the way, each step with its reason, each choice with what was rejected."""
    request = plan.request
    lines = [f"from {request.start} to {request.goal} under recipe {request.recipe.name}"]
    if not plan.steps:
        lines.append("  nothing to do: the program is already there")
    for number, step in enumerate(plan.steps, 1):
        arrow = f"{step.consumes} -> {step.produces}" if step.consumes != step.produces else f"at {step.consumes}"
        lines.append(f"  {number}. {step.stage}  ({arrow})")
        lines.extend(wrapped(step.reason, 7))
        for choice in plan.choices:
            if choice.chosen == step.stage and choice.subject == f"from {step.consumes}":
                for name, why in choice.rejected:
                    lines.extend(wrapped(f"not {name}: {why}", 7, 9))
    for note in plan.notes:
        lines.extend(wrapped(f"note: {note}", 2, 4))
    return "\n".join(lines)


def to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON-able data."""
    return {
        "start": str(plan.request.start),
        "goal": str(plan.request.goal),
        "recipe": plan.request.recipe.name,
        "path": plan.request.path,
        "kinds": [str(kind) for kind in plan.kinds],
        "steps": [
            {
                "stage": step.stage,
                "consumes": str(step.consumes),
                "produces": str(step.produces),
                "options": sorted(step.options),
                "reason": step.reason,
            }
            for step in plan.steps
        ],
        "choices": [
            {
                "subject": choice.subject,
                "chosen": choice.chosen,
                "reason": choice.reason,
                "rejected": [
                    {"stage": name, "produces": _leads_to(plan, choice.subject, name), "reason": why}
                    for name, why in choice.rejected
                ],
            }
            for choice in plan.choices
        ],
        "notes": list(plan.notes),
    }


def _leads_to(plan: Plan, subject: str, stage: str) -> str:
    """Return the kind that a stage gives from the kind that a choice is about; empty where it does not start there."""
    kind = subject.removeprefix("from ")
    return next((b for a, b, name in plan.graph.edges(keys=True) if (a, name) == (kind, stage)), "")


def _edges(plan: Plan) -> list[tuple[str, str, str, bool]]:
    """Every stage as (from, to, name, chosen); loops only where they are on the way."""
    chosen = {(step.consumes, step.produces, step.stage) for step in plan.steps}
    edges = []
    for a, b, name in plan.graph.edges(keys=True):
        on_way = (a, b, name) in chosen
        if on_way or a != b:
            edges.append((a, b, name, on_way))
    return edges


def to_mermaid(plan: Plan) -> str:
    """Return a Mermaid flowchart: https://mermaid.js.org/syntax/flowchart.html."""
    lines = ["flowchart LR"]
    kinds = sorted({k for a, b, _, _ in _edges(plan) for k in (a, b)} | {str(plan.request.start)})
    lines.extend(f"    {kind}([{kind}])" for kind in kinds)
    lines.extend(
        f"    {a} {'==' if on_way else '-.'} {name} {'==>' if on_way else '.->'} {b}"
        for a, b, name, on_way in _edges(plan)
    )
    on_way = [str(kind) for kind in plan.kinds]
    lines.append("    classDef way stroke-width:3px")
    lines.append(f"    class {','.join(dict.fromkeys(on_way))} way")
    return "\n".join(lines)


def to_dot(plan: Plan) -> str:
    """Return a directed graph in the DOT language: https://graphviz.org/doc/info/lang.html."""
    lines = ["digraph plan {", "    rankdir=LR;", '    node [shape=box, style="rounded"];']
    for kind in dict.fromkeys(str(kind) for kind in plan.kinds):
        lines.append(f"    {_quoted(kind)} [penwidth=3];")
    for a, b, name, on_way in _edges(plan):
        style = "penwidth=3" if on_way else "style=dashed"
        lines.append(f"    {_quoted(a)} -> {_quoted(b)} [label={_quoted(name)}, {style}];")
    return "\n".join([*lines, "}"])


def _quoted(name: str) -> str:
    """Return a name as a string of DOT."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
