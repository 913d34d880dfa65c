"""Partitioners one after the other: what an earlier one has delegated stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from executorch.exir.backend.partitioner import Partitioner, PartitionResult
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram


class _LeavesDelegates(Partitioner):
    """A partitioner that does not claim the delegates of those before it.

    Core ML's takes every `get_attr` node for a constant, also one that names a lowered module; left as it is, the
    partition then has a node without a value, and upstream ends in `KeyError: 'val'`.
    """

    def __init__(self, partitioner: Partitioner) -> None:
        super().__init__()
        self._partitioner = partitioner

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        result = self._partitioner.partition(exported_program)
        graph_module = result.tagged_exported_program.graph_module
        left = set()
        for node in graph_module.graph.nodes:
            if _is_delegate(graph_module, node):
                node.meta.pop("delegation_tag", None)
            left.add(node.meta.get("delegation_tag"))
        tags = {tag: spec for tag, spec in result.partition_tags.items() if tag in left}
        return PartitionResult(tagged_exported_program=result.tagged_exported_program, partition_tags=tags)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
        return self._partitioner.ops_to_not_decompose(ep)

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        return self._partitioner.transform_for_pre_decomposition(exported_program)


def _is_delegate(graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(getattr(graph_module, str(node.target), None), LoweredBackendModule)


def leaving_delegates(chosen: Sequence[Partitioner]) -> list[Partitioner]:
    """Return partitioners in the same order, of which each leaves alone what those before it delegated."""
    return [*chosen[:1], *(_LeavesDelegates(one) for one in chosen[1:])]
