"""The planner's words: why a stage may not be used, why one was chosen, why there is no way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import networkx as nx

from etgraph.declaration import Stage
from etgraph.errors import PlanError
from etgraph.recipes import Through

if TYPE_CHECKING:
    from etgraph.graph import StageGraph
    from etgraph.planner import Request

__all__ = [
    "no_way",
    "pass_too_late",
    "reason_for",
    "rejected_alternatives",
    "too_late",
    "why_inadmissible",
]

Rejected = tuple[tuple[str, str], ...]


def either(words: list[str]) -> str:
    """Join words as a person would: `a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "nothing"


def why_inadmissible(stage: Stage, request: Request, way: str) -> str:
    """Say why a stage between kinds may not be used here, or return an empty string if it may."""
    named = stage.name in request.recipe.stages
    if stage.on_request and not named:
        return f"recipe {request.recipe.name} does not name it"
    given = {*request.recipe.stages.get(stage.name, {}), *request.supplied}
    missing = [option for option in stage.required if option not in given]
    if missing:
        return f"it needs the option {either(missing)}, which recipe {request.recipe.name} does not give"
    if way and stage.way and stage.way != way:
        if request.path == way:
            return f"path={way!r} was asked for"
        return f"recipe {request.recipe.name} can only go the {way} way"
    return ""


def rejected_alternatives(
    chosen: Stage,
    kind: str,
    request: Request,
    graph: StageGraph,
    way: str,
) -> Rejected:
    """Return the stages that could have stood in place of the chosen one, each with why it does not."""
    target = chosen.result_of(kind)
    towards = nx.ancestors(graph, request.goal) | {request.goal}
    found: dict[str, str] = {}
    for _, after, data in graph.out_edges(kind, data=True):
        stage: Stage = data["stage"]
        if stage is chosen or after == kind:
            continue
        if after not in towards:
            found[stage.name] = f"it gives {after}, which is past {request.goal}"
            continue
        found[stage.name] = why_inadmissible(stage, request, way) or _passed_over(
            stage, after, chosen, target, request, graph
        )
    for _, _, data in graph.in_edges(target, data=True):
        stage = data["stage"]
        if stage.attached or kind in stage.consumes or stage.name in found or not chosen.way:
            continue
        if stage.way and stage.way != chosen.way:
            found[stage.name] = f"it starts from {either(list(stage.consumes))}, and the program is at {kind}"
    return tuple(sorted(found.items()))


def _passed_over(stage: Stage, after: str, chosen: Stage, target: str, request: Request, graph: StageGraph) -> str:
    insisted = [t for t in request.recipe.through if t.kind not in request.passed]
    for through in insisted:
        misses = after != through.kind and not nx.has_path(graph, after, through.kind)
        if misses and nx.has_path(graph, through.kind, request.goal):
            return f"it would pass by {through.kind}, and recipe {request.recipe.name} {through.does}"
    if after == target:
        return f"it costs more ({stage.cost:g} against {chosen.cost:g})"
    if target == request.goal or nx.has_path(graph, target, after):
        return f"the way through {target} is needed or cheaper"
    return f"the way through {after} costs more"


def reason_for(chosen: Stage, kind: str, request: Request, way: str, rejected: Rejected) -> str:
    """Say why a stage is on the way."""
    target = chosen.result_of(kind)
    if way and chosen.way == way:
        if request.path == way:
            return f"path={way!r} was asked for"
        return request.recipe.way_reason or f"recipe {request.recipe.name} can only go the {way} way"
    if not rejected:
        return f"the only stage from {kind} towards {request.goal}"
    if target == request.goal and all("which is past" in why for _, why in rejected):
        return f"asked to stop at {target}, and only {chosen.name} gives it"
    return chosen.note or f"the cheapest way from {kind} that recipe {request.recipe.name} allows"


def too_late(request: Request, through: Through, graph: StageGraph) -> PlanError:
    """Refuse a recipe that wants a kind which the program has already left behind."""
    before = sorted({a for a, _ in graph.in_edges(through.kind)} - {through.kind})
    after = sorted({b for _, b in graph.out_edges(through.kind)} - {through.kind})
    between = f"between {either(before)} and {either(after)}" if before and after else f"at {through.kind}"
    if through.at:
        between = f"at {through.at}"
    instead = f", or use {through.instead}" if through.instead else ""
    return PlanError(
        f"this program is already at {request.start}; recipe {request.recipe.name} {through.does}, "
        f"which happens {between}",
        hint=f"Start from a program at {through.at or either(_before(graph, through.kind))}{instead}.",
    )


def pass_too_late(request: Request, name: str, kinds: list[str]) -> PlanError:
    """Refuse a recipe that names a pass of a kind which the program has already left behind."""
    return PlanError(
        f"this program is already at {request.start}; recipe {request.recipe.name} names {name}, "
        f"which runs at {either(kinds)} and is not known to have run on it",
        hint=f"Start from a program at {either(kinds)}, or take {name} out of the recipe.",
    )


def no_way(
    request: Request, source: str, target: str, graph: StageGraph, way: str, because: Mapping[str, str]
) -> PlanError:
    """Refuse a request for which the graph has no way, saying what is possible."""
    asked = f"from {request.start} to {request.goal} under recipe {request.recipe.name}"
    if not nx.has_path(graph, source, target):
        if nx.has_path(graph, target, source):
            problem = f"the program is already at {source}, and a program cannot go back to {target} (asked: {asked})"
        else:
            problem = f"no stage leads {asked}: nothing goes from {source} to {target}"
        return PlanError(
            problem,
            hint=f"From {source} one can reach {either(_after(graph, source))}; "
            f"{target} can be reached from {either(_before(graph, target))}.",
        )
    blocked = []
    for kind in {source} | nx.descendants(graph, source):
        for _, after, data in graph.out_edges(kind, data=True):
            if after == target or nx.has_path(graph, after, target):
                why = why_inadmissible(data["stage"], request, way)
                if why and not data["stage"].attached:
                    blocked.append(f"{data['stage'].name}: {why}")
    wanted = f" ({because[target]} runs there)" if target in because else ""
    starts = ""
    if way:
        for stage in {d["stage"] for _, _, d in graph.edges(data=True)}:
            if stage.way == way and stage.produces == target and source not in stage.consumes:
                starts = f" {stage.name} starts from {either(list(stage.consumes))}."
    return PlanError(
        f"there is no way {asked}: from {source} to {target}{wanted} every stage is ruled out "
        f"({'; '.join(sorted(set(blocked)))})",
        hint=f"{starts} Choose another recipe or path, or stop at {either(_reachable(request, graph, way))}.".strip(),
    )


def _after(graph: StageGraph, kind: str) -> list[str]:
    return sorted(nx.descendants(graph, kind)) or ["nothing further"]


def _before(graph: StageGraph, kind: str) -> list[str]:
    return sorted(nx.ancestors(graph, kind)) or ["nothing else"]


def _reachable(request: Request, graph: StageGraph, way: str) -> list[str]:
    allowed: nx.DiGraph[str] = nx.DiGraph()
    allowed.add_node(request.start)
    for a, b, data in graph.edges(data=True):
        if not why_inadmissible(data["stage"], request, way):
            allowed.add_edge(a, b)
    return sorted(nx.descendants(allowed, request.start)) or [str(request.start)]
