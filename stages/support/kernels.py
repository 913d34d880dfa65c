"""Which operators have a kernel in the libraries of this host's runtime, told from an edge program."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.operator.convert import to_out_variant

from stages.support.partitioning import gives_size
from stages.support.runtime import runtime_of_host

__all__ = ["without_kernel"]


def without_kernel(nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """Return the operators that would be left without a kernel; none where this host has no runtime to ask.

    They are looked up by their out variants, as `to_executorch` will call them. Operators that give sizes are the
    runtime's own.
    """
    host = runtime_of_host()
    if host is None:
        return set()
    return {node for node in nodes if not gives_size(node) and _kernel(node) not in host.operators}


def _kernel(node: torch.fx.Node) -> str:
    """Return the name of an operator's kernel; nothing where it has no out variant."""
    operator = node.target._op if isinstance(node.target, EdgeOpOverload) else node.target
    try:
        schema = to_out_variant(operator)[0]._schema
    except RuntimeError:
        return ""
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)
