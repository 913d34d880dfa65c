"""The calls of operators in a program, delegates included: which, where, with which constants."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.fx.node import map_arg

from stages.support.graph_text import target_name, tensor_text
from stages.support.partitioning import is_operator, named_nodes
from stages.support.programs import OPERATOR_LIBRARIES, namespace_of
from stages.support.source_lines import line_of

__all__ = ["PORTABLE", "Call", "calls_of", "outputs_of"]

#: Where an operator is that no backend has taken.
PORTABLE = "portable kernels"


@dataclass(frozen=True)
class Call:
    """One call of an operator.

    Args:
        operator: as `aten.clamp.default`; in a `.pte` as `aten::clamp.out`.
        place: the backend that has taken it, or `PORTABLE`.
        node: the node's name.
        arguments: each argument that is no tensor, by name, as Python shows it.
        value: dtype and shape of what it gives.
        source_line: the line of the model, where it is known.
        inputs: where its tensors come from: the names of nodes, with a position for one of several outputs.
    """

    operator: str
    place: str
    node: str
    arguments: tuple[tuple[str, str], ...]
    value: str = ""
    source_line: str = ""
    inputs: tuple[str, ...] = ()


def calls_of(program: ExportedProgram, place: str = PORTABLE) -> Iterator[Call]:
    """Walk the calls of a program in graph order, those inside of a delegate where the delegate is called."""
    for name, node in named_nodes(program):
        if node.op == "call_function" and node.target is executorch_call_delegate:
            delegate = getattr(node.graph.owning_module, node.args[0].target)
            original = getattr(delegate, "_original_exported_program", None)
            if original is not None:
                yield from calls_of(original, delegate.backend_id)
        elif is_operator(node):
            library = namespace_of(node.target)
            value = node.meta.get("val")
            yield Call(
                operator=target_name(node.target),
                place=library if library in OPERATOR_LIBRARIES else place,
                node=name,
                arguments=_arguments(node),
                value=tensor_text(value) if value is not None else "",
                source_line=line_of(node.meta.get("stack_trace") or ""),
                inputs=tuple(map(origin_name, node.all_input_nodes)),
            )


def origin_name(node: torch.fx.Node) -> str:
    """Return the name of the node that computes a value, with the position where it is one of several."""
    if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        return f"{node.args[0].name}[{node.args[1]}]"
    return node.name


def outputs_of(program: ExportedProgram) -> tuple[str, ...]:
    """Return where the tensors come from that a program gives, in order."""
    return tuple(map(origin_name, program.graph.output_node().all_input_nodes))


def _arguments(node: torch.fx.Node) -> tuple[tuple[str, str], ...]:
    """Return what is not left at its default, so that it does not matter how a call was written down."""
    schema = node.target._schema.arguments
    given = {argument.name: value for argument, value in zip(schema, node.args, strict=False)}
    given.update(node.kwargs)
    defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    found = []
    for name, value in given.items():
        if isinstance(value, torch.fx.Node) or (name in defaults and _same(defaults[name], value)):
            continue
        found.append((name, _text(value)))
    return tuple(found)


def _same(default: Any, value: Any) -> bool:
    return type(default) is type(value) and bool(default == value)


def _text(value: Any) -> str:
    named = map_arg(value, lambda node: _Tensor())
    return repr(list(named) if isinstance(named, list | tuple) else named).removeprefix("torch.")


class _Tensor:
    def __repr__(self) -> str:
        return "_"
