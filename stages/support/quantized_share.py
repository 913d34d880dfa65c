"""How much of a program computes with quantized values."""

from __future__ import annotations

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram

from stages.support.graph_text import target_name
from stages.support.partitioning import gives_size, is_operator, named_nodes

__all__ = ["quantized_share"]

_CONVERTS = ("quantize", "dequantize", "choose_qparams")


def quantized_share(program: ExportedProgram) -> dict[str, int]:
    """Count operators, and those that take what was dequantized, give what is then quantized, or are quantized ones.

    Operators that only convert are not counted; those inside of delegates are.
    """
    counts = {"operators": 0, "quantized": 0}
    for _, node in named_nodes(program):
        if node.op == "call_function" and node.target is executorch_call_delegate:
            original = getattr(
                getattr(node.graph.owning_module, node.args[0].target), "_original_exported_program", None
            )
            inside = quantized_share(original) if original is not None else {}
            counts = {name: count + inside.get(name, 0) for name, count in counts.items()}
        elif is_operator(node) and not gives_size(node) and not _starts(node, *_CONVERTS):
            counts["operators"] += 1
            counts["quantized"] += (
                _starts(node, "quantized_")
                or any(_starts(one, "dequantize") for one in node.all_input_nodes)
                or any(_starts(one, "quantize") for one in node.users)
            )
    return counts


def _starts(node: torch.fx.Node, *words: str) -> bool:
    if not is_operator(node):
        return False
    return target_name(node.target).split(".")[1].startswith(words)
