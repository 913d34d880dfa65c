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
    from etgraph.planned import Request

__all__ = [
    "Reasons",
    "no_way",
    "pass_too_late",
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


class Reasons:
    """Why each stage on the way was chosen, and why others were not; what is asked often is worked out once."""

    def __init__(self, request: Request, graph: StageGraph, way: str) -> None:
        self._request = request
        self._graph = graph
        self._way = way
        self._towards = nx.ancestors(graph, request.goal) | {request.goal}
        self._insisted = {
            through: nx.ancestors(graph, through.kind) | {through.kind}
            for through in request.recipe.through
            if through.kind not in request.passed and through.kind in self._towards
        }

    def of(self, chosen: Stage, kind: str) -> tuple[str, Rejected]:
        """Return why a stage leaves a kind on the way, and each stage that could have stood in its place."""
        rejected: dict[str, str] = {}
        open_to_choice = False
        for _, after, data in self._graph.out_edges(kind, data=True):
            stage: Stage = data["stage"]
            if stage is chosen or after == kind:
                continue
            if after not in self._towards:
                rejected[stage.name] = f"it gives {after}, which is past {self._request.goal}"
                continue
            why = why_inadmissible(stage, self._request, self._way)
            open_to_choice |= not why
            rejected[stage.name] = why or self._passed_over(stage, after, chosen, chosen.result_of(kind))
        rejected |= self._starting_elsewhere(chosen, kind, rejected)
        return self._reason(chosen, kind, bool(rejected), open_to_choice), tuple(sorted(rejected.items()))

    def _passed_over(self, stage: Stage, after: str, chosen: Stage, target: str) -> str:
        for through, before in self._insisted.items():
            if after not in before:
                return f"it would pass by {through.kind}, and recipe {self._request.recipe.name} {through.does}"
        if after == target:
            return f"it costs more ({stage.cost:g} against {chosen.cost:g})"
        return f"the way through {after} costs more"

    def _starting_elsewhere(self, chosen: Stage, kind: str, rejected: dict[str, str]) -> dict[str, str]:
        """Return the other way to the same kind, where it begins at a kind that is not passed here."""
        if not chosen.way:
            return {}
        found = {}
        for _, _, data in self._graph.in_edges(chosen.result_of(kind), data=True):
            stage: Stage = data["stage"]
            other_way = stage.way and stage.way != chosen.way
            if other_way and kind not in stage.consumes and stage.name not in rejected:
                found[stage.name] = f"it starts from {either(list(stage.consumes))}, and the program is at {kind}"
        return found

    def _reason(self, chosen: Stage, kind: str, any_rejected: bool, open_to_choice: bool) -> str:
        request, target = self._request, chosen.result_of(kind)
        if self._way and chosen.way == self._way:
            if request.path == self._way:
                return f"path={self._way!r} was asked for"
            return request.recipe.way_reason or f"recipe {request.recipe.name} can only go the {self._way} way"
        if target == request.goal and any(after != target for after in self._graph.successors(target)):
            return f"asked to stop at {target}, which it gives"
        if not any_rejected:
            return f"the only stage from {kind} towards {request.goal}"
        if not open_to_choice:
            return f"the only stage from {kind} towards {request.goal} that recipe {request.recipe.name} allows"
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
