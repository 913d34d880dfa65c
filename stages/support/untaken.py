"""Why a partitioner does not take an operator: its own words where it has some, else which of its checks failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.exir.backend.canonical_partitioners.config_partitioner import (
    ConfigerationBasedPartitioner,
    format_target_name,
)
from executorch.exir.backend.partitioner import Partitioner
from torch.export import ExportedProgram

from etgraph.delegation import Operator, Untaken
from stages.support.partitioning import Asked, ask, gives_size, is_operator, named_nodes, operator_of, without_weights
from stages.support.refused_whole import origin_of, refused_whole

__all__ = ["Why", "grouped", "reasons_in_words", "untaken_by"]


@dataclass(frozen=True)
class Why:
    """A code of `etgraph.delegation.REASONS`, words, and whether the words are the partitioner's."""

    code: str
    words: str
    quoted: bool = False


def untaken_by(
    partitioner: Partitioner, asked: Asked, before: Callable[[], ExportedProgram | None] = lambda: None
) -> dict[str, tuple[Operator, Why]]:
    """Say of each operator that a partitioner did not take why, by the operator's name in the program.

    Args:
        before: gives the exported program, where that is at hand: what was refused there is decomposed at edge.
    """
    nodes = {n: node for n, node in named_nodes(asked.program) if is_operator(node) and n not in asked.tags}
    whys = {name: _why(partitioner, asked, name, node) for name, node in nodes.items()}
    exported = before() if any(why.code == "unknown_operator" for why in whys.values()) else None
    whole = refused_whole(partitioner, exported) if exported is not None else {}
    for name, node in nodes.items():
        if whys[name].code == "unknown_operator" and origin_of(node) in whole:
            whys[name] = _decomposed(node, *whole[origin_of(node)])
    return {name: (operator_of(name, node), whys[name]) for name, node in nodes.items()}


def _decomposed(node: torch.fx.Node, operator: str, words: str) -> Why:
    if not words:
        return Why("unexplained", f"it comes from {operator}, which was refused whole without a reason")
    about = _quoted(words, node)
    return Why(about.code, f"it comes from {operator}, of which the partitioner said: {words}")


def _why(partitioner: Partitioner, asked: Asked, name: str, node: torch.fx.Node) -> Why:
    if gives_size(node):
        return Why("dynamic_shape", "it computes a size that is known only when the program runs")
    said = asked.said.get(name)
    if said:
        # Later words come from checks around the one that failed, and say less.
        return _quoted(said[0], node)
    supports = [one for module, one in asked.supports if module is node.graph.owning_module]
    if "." in name and not supports:
        return Why("branch", f"{_named(partitioner)} does not look inside control-flow branches")
    if isinstance(partitioner, ConfigerationBasedPartitioner):
        return _by_config(partitioner, asked, node)
    if supports:
        return _by_support(partitioner, supports[-1], node)
    return Why("unexplained", f"{_named(partitioner)} did not take it, and gave no reason")


def _named(partitioner: Partitioner) -> str:
    return type(partitioner).__name__


#: What partitioners of executorch 1.5 say, by what it is about; the first that fits counts.
_ABOUT = (
    ("unknown_operator", re.compile(r"no operator implementation|Not included in|not registered", re.IGNORECASE)),
    ("dynamic_shape", re.compile(r"dynamic|symbolic|symint|resolved", re.IGNORECASE)),
    ("dtype", re.compile(r"dtype|data ?type|precision|fp16|float64", re.IGNORECASE)),
)


def _quoted(words: str, node: torch.fx.Node) -> Why:
    code = next((code for code, about in _ABOUT if about.search(words)), "arguments")
    if code == "dtype":
        return _dtype(words, node)
    return Why(code, words, quoted=True)


def _dtype(words: str, node: torch.fx.Node) -> Why:
    """Complete words about a dtype: XNNPACK says "invalid dtype" of sizes and of empty tensors too."""
    values = [value for one in (*node.all_input_nodes, node) for value in _flat(one.meta.get("val"))]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    dtypes = sorted({str(value.dtype).removeprefix("torch.") for value in tensors})
    if any(isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) for value in values):
        return Why("dynamic_shape", f"{words} (an input is a size that is known only when the program runs)", True)
    if any(0 in value.shape for value in tensors):
        return Why("arguments", f"{words} (a tensor is empty)", True)
    return Why("dtype", f"{words} ({', '.join(dtypes)})" if dtypes else words, quoted=True)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _by_config(partitioner: ConfigerationBasedPartitioner, asked: Asked, node: torch.fx.Node) -> Why:
    config = partitioner.target_partitioner_configs.get(format_target_name(node.target.__name__))
    if config is None:
        return Why("unknown_operator", f"{_named(partitioner)} has no such operator")
    try:
        fits = config.check_constraints(node, asked.program)
    except Exception as error:
        return Why("unexplained", f"its check {type(config).__name__} failed: {type(error).__name__}: {error}")
    if fits:
        return Why("grouping", "it passes the check, and was left out when delegates were formed")
    return Why("unexplained", f"its check {type(config).__name__} refuses it, and gives no reason")


def _by_support(partitioner: Partitioner, support: Any, node: torch.fx.Node) -> Why:
    explain = _EXPLAINED.get(type(support).__name__)
    if explain is not None:
        why = explain(support, node)
        if why is not None:
            return why
    try:
        fits = support.is_node_supported(dict(node.graph.owning_module.named_modules()), node)
    except Exception as error:
        return Why("unexplained", f"{_named(partitioner)}'s check failed: {type(error).__name__}: {error}")
    if fits:
        return Why("grouping", "it passes the check, and was left out when delegates were formed")
    return Why("unexplained", f"{_named(partitioner)}'s check refuses it, and gives no reason")


def _by_coreml(support: Any, node: torch.fx.Node) -> Why | None:
    """Ask the parts of Core ML's check (executorch 1.5) one by one."""
    import coremltools

    if not coremltools.converters.mil.frontend.torch.is_torch_fx_node_supported(node):
        return Why("unknown_operator", "coremltools has no such operator")
    if support.should_override_support(node):
        return Why("arguments", "coremltools is known to convert it wrongly, so executorch keeps it away")
    if getattr(node.target, "__name__", "").lower() in support.skip_ops_for_coreml_delegation:
        return Why("arguments", "the recipe keeps it away from Core ML (skip_ops_for_coreml_delegation)")
    return None


def _by_openvino(support: Any, node: torch.fx.Node) -> Why | None:
    """Ask the parts of OpenVINO's check (executorch 1.5) one by one."""
    name = node.target.__name__
    if name in support._op_types_to_skip or node.name in support._op_names_to_skip:
        return Why("arguments", "the recipe keeps it away from OpenVINO")
    known = sys.modules[type(support).__module__].OperatorSupport([])._support_dict
    if f"torch.ops.{name}" not in {**known, **support.extended_support_dict}:
        return Why("unknown_operator", "OpenVINO's PyTorch frontend has no such operator")
    return None


_EXPLAINED: dict[str, Callable[[Any, torch.fx.Node], Why | None]] = {
    "_OperatorsSupportedForCoreMLBackend": _by_coreml,
    "OpenvinoOperatorsSupport": _by_openvino,
}


def grouped(found: Iterable[tuple[Operator, Why, tuple[str, ...]]]) -> tuple[Untaken, ...]:
    """Join operators that are refused for the same reason and helped by the same things, the largest group first."""
    groups: dict[tuple[Why, tuple[str, ...]], list[Operator]] = {}
    for operator, why, helps in found:
        groups.setdefault((why, helps), []).append(operator)
    joined = [
        Untaken(why.code, why.words, why.quoted, tuple(operators), helps) for (why, helps), operators in groups.items()
    ]
    return tuple(sorted(joined, key=lambda group: -len(group.operators)))


def reasons_in_words(program: ExportedProgram, partitioners: Sequence[Partitioner], most: int = 3) -> list[str]:
    """Ask partitioners about what is left of a program, and say for what reasons they take none of it."""
    words = []
    for partitioner in partitioners:
        try:
            asked = ask(partitioner, without_weights(program))
        except Exception:
            # A second opinion must not become a failure of its own.
            continue
        for group in grouped((operator, why, ()) for operator, why in untaken_by(partitioner, asked).values()):
            names = list(dict.fromkeys(operator.operator for operator in group.operators))
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            if group.code == "unknown_operator" and not group.quoted:
                words.append(f"{_named(partitioner)} knows no {shown}")
            else:
                words.append(f"{group.reason}: {shown}")
    return words[:most]
