"""Operators that a partitioner refused to have kept whole, so that they were decomposed before it saw them at edge."""

from __future__ import annotations

from typing import Any

import torch
from executorch.exir.backend.partitioner import Partitioner
from torch.export import ExportedProgram

from stages.support.graph_text import target_name
from stages.support.heard_reasons import partitioners_heard

__all__ = ["origin_of", "refused_whole"]


def refused_whole(partitioner: Partitioner, before: ExportedProgram) -> dict[Any, tuple[str, str]]:
    """Ask again about the operators of an exported program that a partitioner could have had whole.

    Returns:
        the origin of each that it refused (see `origin_of`), to the operator's name and the first words about it;
        no words where none were said.
    """
    refused: dict[Any, tuple[str, str]] = {}
    with partitioners_heard() as heard:
        try:
            operators, keep = partitioner.ops_to_not_decompose(before)
        except Exception:
            return {}
        for node in before.graph.nodes:
            if keep is None or node.target not in operators:
                continue
            already = len(heard.said)
            if not _asked(keep, node):
                words = next((words for about, words in heard.said[already:] if about is node), "")
                refused[origin_of(node)] = (target_name(node.target), words)
    return refused


def _asked(keep: Any, node: torch.fx.Node) -> bool:
    try:
        return bool(keep(node))
    except Exception:
        return False


def origin_of(node: torch.fx.Node) -> Any:
    """Return the call in the model that a node comes from; it is the same before and after decomposition."""
    return (str(node.meta.get("torch_fn")), node.meta.get("stack_trace"))
