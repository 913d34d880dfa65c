"""The stage graph: kinds as nodes, stages as edges, on networkx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import networkx as nx

from etgraph.artifact import KINDS
from etgraph.declaration import Stage
from etgraph.errors import StageDeclarationError

__all__ = ["StageGraph", "attached_to", "build"]

#: Nodes are kind names; each edge's key is a stage's name and its `stage` attribute the stage.
StageGraph: TypeAlias = "nx.MultiDiGraph[str]"


def build(stages: Iterable[Stage]) -> StageGraph:
    """Join stages to a graph. Attached stages are loops at their kind; everything else must be acyclic."""
    graph: StageGraph = nx.MultiDiGraph()
    graph.add_nodes_from(KINDS)
    for stage in stages:
        for kind in stage.consumes:
            graph.add_edge(str(kind), str(stage.result_of(kind)), key=stage.name, stage=stage)
    _check_acyclic(graph)
    return graph


def attached_to(graph: StageGraph, kind: str) -> dict[str, Stage]:
    """Return the stages that start and end at a kind, by name."""
    if not graph.has_edge(kind, kind):
        return {}
    return {name: data["stage"] for name, data in graph[kind][kind].items()}


def _check_acyclic(graph: StageGraph) -> None:
    between = nx.DiGraph((a, b) for a, b in graph.edges() if a != b)
    if nx.is_directed_acyclic_graph(between):
        return
    cycle = nx.find_cycle(between)
    arrows = " -> ".join([cycle[0][0], *(edge[1] for edge in cycle)])
    stages = ", ".join(sorted({name for edge in cycle for name in graph[edge[0]][edge[1]]}))
    raise StageDeclarationError(
        f"the stages form a cycle between kinds: {arrows} (stages {stages})",
        hint="A program only moves forward. Declare one of these stages with another kind.",
    )
