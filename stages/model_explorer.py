"""Programs as graphs that Model Explorer opens: https://ai.google.dev/edge/model-explorer."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch
from etgraph.errors import UsageError


@etgraph.service("model_explorer")
def model_explorer(artifact: Artifact, label: str) -> dict[str, Any]:
    """Return a graph collection in the form of Model Explorer's JSON files, a graph for each method and each branch.

    Delegates are layers that open; modules of the model are layers where the program knows them.

    Args:
        label: what the viewer calls it.

    Raises:
        UsageError: Model Explorer is not installed, or a module has no graph yet.
    """
    if artifact.kind == "module":
        raise UsageError(
            "a program at module has no graph to show yet",
            hint="Export it first: etgraph run SOURCE --to exported, and inspect the file that this writes.",
        )
    try:
        import model_explorer  # noqa: F401  asked for here, so that its absence is told in one place
    except ImportError:
        raise UsageError("Model Explorer is not installed", hint='pip install "etgraph[model-explorer]"') from None
    from dataclasses import asdict

    from model_explorer.graph_builder import GraphCollection
    from model_explorer.utils import remove_none

    from stages.support import explorer_emitted, explorer_graphs

    build = explorer_emitted.graphs_of if isinstance(artifact, Executorch) else explorer_graphs.graphs_of
    collection: dict[str, Any] = remove_none(asdict(GraphCollection(label=label, graphs=build(artifact))))
    return collection
