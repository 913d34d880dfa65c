"""Which node of a program computes what a node of another form of it computes.

Provenance decides: a node remembers by name what it was made from (`from_node`), through decompositions, passes and
delegation. Where that is silent, names, positions of arguments and operators that leave values as they are decide.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Any

from stages.support.graph_text import target_name
from stages.support.interpreting import Flow, FlowStep

#: Operators, without overload, that give the values that they take, up to rounding.
_KEEPING = (
    "aten._to_copy", "aten.to", "aten.clone", "aten.alias", "aten.detach", "aten.contiguous", "aten.lift_fresh_copy",
    "dim_order_ops._to_dim_order_copy", "dim_order_ops._clone_dim_order", "quantized_decomposed.quantize_per_tensor",
    "quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.quantize_per_channel",
    "quantized_decomposed.dequantize_per_channel", "quantized_decomposed.quantize_per_token",
    "quantized_decomposed.dequantize_per_token", "torchao.quantize_affine", "torchao.dequantize_affine",
)  # fmt: skip


def operator_of(step: FlowStep) -> str:
    """Return what a step calls, without overload: `aten.add`; its kind of node where it calls no operator."""
    if step.node.op != "call_function":
        return str(step.node.op)
    name = target_name(step.node.target)
    return name.rpartition(".")[0] if name.count(".") >= 2 else name


def keeps_values(step: FlowStep) -> bool:
    """Whether a step gives the values that it takes, up to rounding: a cast, a copy, quantizing, an observer."""
    return operator_of(step) in _KEEPING or step.node.op == "call_module"


def counterparts(before: Flow, after: Flow) -> dict[str, str]:
    """Return, for keys of `after`, the keys of the steps of `before` that compute the same."""
    found = _by_identity(before, after)
    found.update(_by_provenance(before, after))
    _by_name(before, after, found)
    _by_order(before, after, found)
    folded = _fold_norms(before, after, found)
    for _ in range(3):
        _outputs_of_one(before, after, found)
        _through_keeping(after, found)
        _by_arguments(before, after, found)
    # Weights that a norm was folded into are not those that they were.
    return {key: origin for key, origin in found.items() if key not in folded}


def groups_of(before: Flow, after: Flow) -> dict[str, str]:
    """Return, for keys of `after`, the key of the step of `before` that they were made from."""
    known = {(step.branch, step.names): step.key for step in before.steps.values() if _computes(step)}
    groups: dict[str, str] = {}
    for step in after.steps.values():
        if not _computes(step):
            continue
        for start in range(len(step.names)):
            key = known.get((step.branch, step.names[start:]))
            if key is not None:
                groups[step.key] = key
                break
    return groups


def _computes(step: FlowStep) -> bool:
    return step.node.op in ("call_function", "call_module")


def _by_identity(before: Flow, after: Flow) -> dict[str, str]:
    """Align inputs by position, weights and buffers by what they are called."""
    known = {_identity(step): step.key for step in before.steps.values() if not _computes(step)}
    known.pop(None, None)
    return {
        step.key: known[_identity(step)]
        for step in after.steps.values()
        if not _computes(step) and _identity(step) in known
    }


def _identity(step: FlowStep) -> Any:
    return (step.branch, step.holds) if step.holds else step.position


def _by_provenance(before: Flow, after: Flow) -> dict[str, str]:
    """Align what has the same operator as what it was made from, and else the last of what was made from it."""
    made: dict[str, list[FlowStep]] = defaultdict(list)
    for key, origin in groups_of(before, after).items():
        made[origin].append(after.steps[key])
    found = {}
    for origin, steps in made.items():
        source = before.steps[origin]
        same = [step for step in steps if operator_of(step) == operator_of(source)]
        several = isinstance(source.node.meta.get("val"), list | tuple)
        for step in [*same, *([] if several else steps[-1:])]:
            found[step.key] = origin
    return found


def _by_name(before: Flow, after: Flow, found: dict[str, str]) -> None:
    for key, step in after.steps.items():
        other = before.steps.get(key)
        if key not in found and other is not None and operator_of(other) == operator_of(step):
            found[key] = key


def _by_order(before: Flow, after: Flow, found: dict[str, str]) -> None:
    """Align what knows of no origin by its turn among those of its operator, where there are equally many."""
    taken = set(found.values())
    waiting: dict[tuple[str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for step in before.steps.values():
        if _computes(step) and step.key not in taken:
            waiting[step.branch, operator_of(step)][0].append(step.key)
    for step in after.steps.values():
        if _computes(step) and step.key not in found and len(step.names) == 1:
            waiting[step.branch, operator_of(step)][1].append(step.key)
    for olds, news in waiting.values():
        if len(olds) == len(news):
            found.update(zip(news, olds, strict=True))


def _fold_norms(before: Flow, after: Flow, found: dict[str, str]) -> set[str]:
    """Align an operator with the batch norm after it where that has gone: it was folded into the operator's weights.

    Returns:
        the keys of those weights.
    """
    reached = set(found.values())
    folded: set[str] = set()
    for step in before.steps.values():
        if "batch_norm" not in operator_of(step) or step.key in reached or not step.inputs:
            continue
        origin = step.inputs[0]
        for key in [key for key, one in found.items() if one == origin and _computes(after.steps[key])]:
            found[key] = step.key
            if operator_of(after.steps[key]) == operator_of(before.steps[origin]):
                folded.update(after.steps[key].inputs[1:])
    return folded


def _outputs_of_one(before: Flow, after: Flow, found: dict[str, str]) -> None:
    """Align the outputs of aligned operators of several outputs, each with that of its number."""
    picks = {(s.inputs[0], s.node.args[1]): s.key for s in before.steps.values() if _picks(s)}
    for step in after.steps.values():
        if _picks(step) and step.inputs[0] in found:
            other = picks.get((found[step.inputs[0]], step.node.args[1]))
            if other is not None:
                found[step.key] = other


def _picks(step: FlowStep) -> bool:
    return step.node.target is operator.getitem and bool(step.inputs)


def _through_keeping(after: Flow, found: dict[str, str]) -> None:
    for step in after.steps.values():
        if step.key not in found and keeps_values(step) and step.inputs and step.inputs[0] in found:
            found[step.key] = found[step.inputs[0]]


def _by_arguments(before: Flow, after: Flow, found: dict[str, str]) -> None:
    """Align what two aligned calls of one operator take, argument by argument."""
    for step in reversed(after.steps.values()):
        other = before.steps.get(found.get(step.key, ""))
        if other is None or len(other.inputs) != len(step.inputs):
            continue
        if operator_of(other) == operator_of(step) or (keeps_values(step) and len(step.inputs) == 1):
            for mine, its in zip(step.inputs, other.inputs, strict=True):
                found.setdefault(mine, its)
