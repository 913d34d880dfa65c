"""Partitioners asked what they would take of a program. Nothing is compiled for a backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir.backend.backend_api import to_backend, validation_disabled
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram

from etgraph.delegation import Operator
from stages.support.compiler_log import compilers_heard
from stages.support.graph_text import target_name, tensor_text
from stages.support.heard_reasons import Heard, partitioners_heard
from stages.support.programs import copy_for_rewriting, namespace_of
from stages.support.source_lines import line_of

__all__ = [
    "Asked",
    "ask",
    "gives_size",
    "is_operator",
    "named_nodes",
    "operator_of",
    "with_delegates",
    "without_weights",
]


def named_nodes(program: ExportedProgram) -> Iterator[tuple[str, torch.fx.Node]]:
    """Walk the nodes of a program and of its control-flow branches, each with a name of its own in the program."""
    modules: list[tuple[str, torch.fx.GraphModule]] = [("", program.graph_module)]
    for path, module in modules:
        for node in module.graph.nodes:
            yield f"{path}{node.name}", node
        branches = [(n, c) for n, c in module.named_children() if isinstance(c, torch.fx.GraphModule)]
        modules.extend((f"{path}{name}.", child) for name, child in sorted(branches, key=lambda branch: branch[0]))


def is_operator(node: torch.fx.Node) -> bool:
    """Whether a node calls an operator, as delegation is counted: picking an output and calling a delegate are none."""
    return node.op == "call_function" and bool(namespace_of(node.target))


def gives_size(node: torch.fx.Node) -> bool:
    """Whether a node computes a size or another number, which is the runtime's own work."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float)


def operator_of(name: str, node: torch.fx.Node) -> Operator:
    """Return a node as a value."""
    value = node.meta.get("val")
    return Operator(
        node=name,
        operator=target_name(node.target),
        value=tensor_text(value) if value is not None else "",
        source_line=line_of(node.meta.get("stack_trace") or ""),
    )


def without_weights(program: ExportedProgram) -> ExportedProgram:
    """Copy a program for partitioners to write tags into, with fake weights, as upstream hands it to them."""
    copied = copy_for_rewriting(program)
    mode = detect_fake_mode(tuple(n.meta.get("val") for n in copied.graph.nodes if n.op == "placeholder"))
    if mode is not None:
        for name, value in copied.state_dict.items():
            copied.state_dict[name] = mode.from_tensor(value, static_shapes=True)
    return copied


@dataclass(frozen=True)
class Asked:
    """What a partitioner answered.

    Args:
        program: the copy that it was asked about, with its tags.
        tags: the name of each operator that it takes, to the tag of the delegate that it would be in.
        backends: tag to the backend's id.
        said: the name of a node to what was said of it, in order.
        supports: what was asked about nodes, see `Heard`.
    """

    program: ExportedProgram
    tags: dict[str, str]
    backends: dict[str, str]
    said: dict[str, list[str]]
    supports: list[tuple[Any, Any]]


def ask(partitioner: Partitioner, program: ExportedProgram) -> Asked:
    """Let a partitioner tag a program, and listen to what it says. `program` is written to: give a copy."""
    with partitioners_heard() as heard, compilers_heard(), validation_disabled():
        result = partitioner.partition(program)
    tagged = result.tagged_exported_program
    backends = {tag: spec.backend_id for tag, spec in (result.partition_tags or {}).items()}
    tags = {
        name: tag
        for name, node in named_nodes(tagged)
        if is_operator(node) and (tag := node.meta.get("delegation_tag")) in backends
    }
    used = set(tags.values())
    return Asked(
        program=tagged,
        tags=tags,
        backends={tag: backend for tag, backend in backends.items() if tag in used},
        said=_by_name(heard, tagged),
        supports=heard.supports,
    )


def _by_name(heard: Heard, program: ExportedProgram) -> dict[str, list[str]]:
    names = {node: name for name, node in named_nodes(program)}
    said: dict[str, list[str]] = {}
    for node, words in heard.said:
        if node in names and words not in said.setdefault(names[node], []):
            said[names[node]].append(words)
    return said


class EtgraphForeseen(BackendDetails):
    """A backend that stands in the place of one that is not to compile: its delegates are empty."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[Any]) -> PreprocessResult:
        """Compile nothing."""
        return PreprocessResult(processed_bytes=b"")


class _AsTagged(Partitioner):
    """Gives the tags that a partitioner gave before, all of them for the backend that compiles nothing."""

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags = {name: node.meta.get("delegation_tag") for name, node in named_nodes(self._asked.program)}
        for name, node in named_nodes(exported_program):
            if tags.get(name) in self._asked.backends:
                node.meta["delegation_tag"] = tags[name]
        specs = {tag: DelegationSpec(EtgraphForeseen.__name__, []) for tag in self._asked.backends}
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=specs)


def with_delegates(program: ExportedProgram, asked: Asked) -> ExportedProgram:
    """Return what is left for the next partitioner: the program with empty delegates for what was taken.

    Upstream's own `to_backend` makes them, so that the next one sees the graph that it sees in a run.
    """
    if not asked.tags:
        return program
    with validation_disabled():
        return to_backend(program, _AsTagged(asked))
