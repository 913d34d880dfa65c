"""The planner: from the kind in hand to the kind asked for, under what a recipe wants.

`make` finds the cheapest way through the stage graph that passes every kind the recipe insists on, runs every
attached stage the recipe names, and keeps to the way that was asked for. A request without a way is refused here,
before any work.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx

from etgraph import refusal
from etgraph.artifact import KINDS, Kind
from etgraph.declaration import Situation, Stage
from etgraph.errors import PlanError, UsageError
from etgraph.graph import StageGraph, attached_to, build
from etgraph.planned import Choice, Plan, PlannedStep, Request
from etgraph.recipes import closest

__all__ = ["make"]


def make(request: Request, stages: Mapping[str, Stage]) -> Plan:
    """Plan a request, or raise `PlanError` with the kinds, what was asked, and the nearest possible thing."""
    graph = build(stages.values())
    _check_names(request, graph, stages)
    return _Planner(request, graph, stages).plan()


def _check_names(request: Request, graph: StageGraph, stages: Mapping[str, Stage]) -> None:
    if request.goal not in graph:
        raise UsageError(
            f"there is no kind {str(request.goal)!r}{closest(request.goal, KINDS)}",
            hint=f"Kinds: {', '.join(KINDS)}.",
        )
    ways = sorted({stage.way for stage in stages.values() if stage.way})
    if request.path != "auto" and request.path not in ways:
        raise UsageError(f"path={request.path!r} is not one of auto, {', '.join(ways)}")
    for name, options in request.recipe.stages.items():
        if name not in stages:
            raise UsageError(
                f"recipe {request.recipe.name} names stage {name!r}, which nobody provides{closest(name, stages)}",
                hint="Install the package that provides it; `etgraph list stages` shows what there is.",
            )
        for option in options:
            if option not in stages[name].options:
                raise UsageError(
                    f"recipe {request.recipe.name} gives stage {name} the option {option!r}, "
                    f"which it does not have{closest(option, stages[name].options)}",
                    hint=f"Its options: {', '.join(stages[name].options) or 'none'}.",
                )


def _marked_for_debug(steps: list[PlannedStep]) -> tuple[PlannedStep, ...]:
    """Mark the last step that writes stack traces into its result, and those before it, which hand them on."""
    last = max((i for i, step in enumerate(steps) if _reads_debug(step)), default=-1)
    return (*(replace(step, for_debug=True) for step in steps[: last + 1]), *steps[last + 1 :])


def _reads_debug(step: PlannedStep) -> bool:
    reads = step.definition.reads_debug
    try:
        return reads is not None and reads(step.options)
    except Exception:
        return False  # options that a stage cannot read: it is the stage that will complain


class _Planner:
    """One planning: the request, the graph, and what follows from the two."""

    def __init__(self, request: Request, graph: StageGraph, stages: Mapping[str, Stage]) -> None:
        self.request = request
        self.recipe = request.recipe
        self.graph = graph
        self.stages = stages
        self.notes: list[str] = []
        self.way = "" if request.path == "auto" else request.path
        if self.recipe.way:
            if self.way and self.way != self.recipe.way:
                raise PlanError(
                    f"path={self.way!r} was asked for, but recipe {self.recipe.name} can only go the "
                    f"{self.recipe.way} way: {self.recipe.way_reason}",
                    hint=f"Leave path at 'auto', or ask for {self.recipe.way!r}.",
                )
            self.way = self.recipe.way
        self._reasons = refusal.Reasons(request, graph, self.way)

    def plan(self) -> Plan:
        required = self._required_kinds()
        edges = self._way(required)
        skipped = self._kinds_of_skipped_passes(edges)
        if skipped:
            edges = self._way(self._ordered({*required, *skipped}), because=skipped)
        choices = tuple(self._choice(kind, stage) for kind, stage in edges)
        steps = self._steps(edges, choices)
        self._note_idle_path(edges)
        return Plan(
            request=self.request,
            steps=_marked_for_debug(steps),
            choices=tuple(choice for choice in choices if choice.rejected or self.way),
            notes=tuple(self.notes),
            graph=self.graph,
        )

    # -- which kinds must be passed ------------------------------------------------------------------------

    def _required_kinds(self) -> list[str]:
        required = set()
        for through in self.recipe.through:
            if through.kind not in self.graph:
                raise UsageError(f"recipe {self.recipe.name} goes through {through.kind!r}, which is no kind")
            if through.kind != self.request.goal and not nx.has_path(self.graph, through.kind, self.request.goal):
                continue
            if through.kind in self.request.passed:
                where = "is at" if through.kind == self.request.start else "has passed"
                self.notes.append(
                    f"the program {where} {through.kind} already; recipe {self.recipe.name} "
                    f"{through.does}, which is not done twice"
                )
                continue
            first = through.at or through.kind
            if not nx.has_path(self.graph, self.request.start, first):
                raise refusal.too_late(self.request, through, self.graph)
            required.add(through.kind)
        return self._ordered(required)

    def _ordered(self, kinds: set[str]) -> list[str]:
        if len(kinds) < 2:
            return list(kinds)
        order = {kind: i for i, kind in enumerate(nx.topological_sort(self._between()))}
        return sorted(kinds, key=order.__getitem__)

    def _between(self) -> nx.DiGraph[str]:
        plain: nx.DiGraph[str] = nx.DiGraph()
        plain.add_nodes_from(self.graph)
        plain.add_edges_from((a, b) for a, b in self.graph.edges() if a != b)
        return plain

    # -- the way through the graph --------------------------------------------------------------------------

    def admissible(self, stage: Stage) -> bool:
        """Whether a stage may be used under this recipe and path."""
        return not refusal.why_inadmissible(stage, self.request, self.way)

    def _cost(self, stage: Stage) -> float:
        """Return what a stage counts for in the choice; the way that was asked for is free, so that it is taken."""
        return 0.0 if self.way and stage.way == self.way else stage.cost

    def _cheapest(self, source: str, target: str, parallel: Mapping[str, Mapping[str, Any]]) -> float | None:
        """Return the weight of the cheapest admissible stage between two kinds, or None to hide the edge."""
        if source == target:
            return None
        costs = [self._cost(d["stage"]) for d in parallel.values() if self.admissible(d["stage"])]
        return min(costs, default=None)

    def _way(self, required: list[str], because: Mapping[str, str] | None = None) -> list[tuple[str, Stage]]:
        stops = [self.request.start, *required]
        if stops[-1] != self.request.goal:
            stops.append(self.request.goal)
        edges: list[tuple[str, Stage]] = []
        for source, target in pairwise(stops):
            try:
                nodes = nx.dijkstra_path(self.graph, source, target, weight=self._cheapest)
            except nx.NetworkXNoPath:
                raise refusal.no_way(self.request, source, target, self.graph, self.way, because or {}) from None
            edges.extend((a, self._best(a, b)) for a, b in pairwise(nodes))
        return edges

    def _best(self, source: str, target: str) -> Stage:
        stages: list[Stage] = [d["stage"] for d in self.graph[source][target].values() if self.admissible(d["stage"])]
        return min(stages, key=lambda s: (self._cost(s), s.name not in self.recipe.stages, s.name))

    # -- attached stages ---------------------------------------------------------------------------------------

    def _kinds_of_skipped_passes(self, edges: list[tuple[str, Stage]]) -> dict[str, str]:
        """Return the kinds that the way misses though a pass that the recipe names runs there: kind to stage."""
        visited = {self.request.start, *(stage.result_of(kind) for kind, stage in edges)}
        covered = {name for _, stage in edges for name in stage.covers}
        missed: dict[str, str] = {}
        for name in self.recipe.stages:
            kinds = self._places(name)
            if not kinds or name in covered or visited.intersection(kinds) or self._done(name):
                continue
            if self._belongs_to_what_is_done(kinds):
                continue
            ahead = [k for k in kinds if nx.has_path(self.graph, self.request.goal, k)]
            reachable = [k for k in kinds if nx.has_path(self.graph, self.request.start, k)]
            if reachable and not set(reachable) <= set(ahead):
                missed[self._ordered(set(reachable) - set(ahead))[0]] = name
            elif not reachable and not ahead:
                raise refusal.pass_too_late(self.request, name, kinds)
        return missed

    def _places(self, name: str) -> list[str]:
        """Return the kinds where an attached stage runs: of several, the last that the recipe insists on.

        So a pass over exported and quantized programs runs once, in the same place wherever a run is stopped.
        """
        kinds = [kind for kind in self.graph if name in attached_to(self.graph, kind)]
        insisted = {through.kind for through in self.recipe.through}.intersection(kinds)
        return self._ordered(insisted)[-1:] or kinds

    def _belongs_to_what_is_done(self, kinds: list[str]) -> bool:
        """Whether a pass runs only before a kind that the recipe insists on and the program has passed."""
        done = [t.kind for t in self.recipe.through if t.kind in self.request.passed]
        return any(kind not in done and nx.has_path(self.graph, kind, end) for kind in kinds for end in done)

    def _done(self, name: str) -> bool:
        return any(step.stage == name for step in self.request.provenance)

    def _steps(self, edges: list[tuple[str, Stage]], choices: tuple[Choice, ...]) -> list[PlannedStep]:
        steps = self._passes_at(self.request.start)
        for (kind, stage), choice in zip(edges, choices, strict=True):
            options = self._options(stage)
            for covered in stage.covers:
                if covered in self.recipe.stages:
                    options[covered] = self._options(self.stages[covered])
            steps.append(self._step(stage, kind, options, choice.reason))
            steps.extend(self._passes_at(stage.result_of(kind)))
        return steps

    def _passes_at(self, kind: str) -> list[PlannedStep]:
        attached = attached_to(self.graph, kind)
        steps = []
        for name in self.recipe.stages:
            if name not in attached or kind not in self._places(name):
                continue
            if kind == self.request.start and self._done(name):
                self.notes.append(f"{name} has run on this program before and is not run again")
                continue
            stage = attached[name]
            options = self._options(stage)
            idle = self._idle(stage, options)
            if idle:
                self.notes.append(f"{name} is left out: {idle}")
                continue
            reason = f"recipe {self.recipe.name} names it, and it runs at {kind}"
            steps.append(self._step(stage, kind, options, reason))
        return steps

    def _idle(self, stage: Stage, options: Mapping[str, Any]) -> str:
        if stage.idle is None or self.request.in_hand is None:
            return ""
        request = self.request
        assert request.in_hand is not None
        return stage.idle(options, Situation(request.start, request.goal, self.recipe.name, request.in_hand))

    def _options(self, stage: Stage) -> dict[str, Any]:
        options = {name: value for name, value in self.request.supplied.items() if name in stage.options}
        for name, value in self.recipe.stages.get(stage.name, {}).items():
            supplied: Any = options.get(name)
            if not hasattr(supplied, "unless_given"):
                options[name] = value
                continue
            options[name] = supplied.unless_given(value)
            if options[name] is supplied:
                self.notes.append(f"the {name} of recipe {self.recipe.name} give way to those that the run was given")
        return options

    def _step(self, stage: Stage, kind: str, options: dict[str, Any], reason: str) -> PlannedStep:
        return PlannedStep(
            stage=stage.name,
            consumes=Kind(kind),
            produces=stage.result_of(kind),
            options=types.MappingProxyType(options),
            reason=reason,
            definition=stage,
        )

    # -- reasons ---------------------------------------------------------------------------------------------------

    def _choice(self, kind: str, chosen: Stage) -> Choice:
        reason, rejected = self._reasons.of(chosen, kind)
        return Choice(subject=f"from {kind}", chosen=chosen.name, reason=reason, rejected=rejected)

    def _note_idle_path(self, edges: list[tuple[str, Stage]]) -> None:
        if self.request.path != "auto" and not any(stage.way == self.way for _, stage in edges):
            self.notes.append(
                f"path={self.request.path!r} changes nothing here: there is one way from {self.request.start} "
                f"to {self.request.goal} under recipe {self.recipe.name}"
            )
