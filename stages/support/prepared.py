"""Prepared graphs: copies that share weights, observers and what they saw, passes over them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from etgraph.errors import UsageError
from stages.support.programs import all_nodes, namespace_of

GraphModule = torch.fx.GraphModule

#: Where quantizers leave their notes in the metadata of a node, and where the plain mark is in their place.
_ANNOTATION = "quantization_annotation"
_ANNOTATED = "etgraph_annotated"


def own_copy(module: GraphModule, *, share_parameters: bool) -> GraphModule:
    """Copy a graph module so that running or rewriting the copy changes nothing of the original.

    Buffers and observers keep state and are always copied. Parameters are written to by training only.
    """
    memo = {id(parameter): parameter for parameter in module.parameters()} if share_parameters else {}
    copied: GraphModule = copy.deepcopy(module, memo)
    note_annotations(copied)
    return copied


def note_annotations(module: GraphModule) -> None:
    """Replace what quantizers noted at nodes by a plain mark of the nodes that they quantize.

    The notes are keyed by nodes of the graph that was annotated. In a copy these are strangers, over which
    `convert_pt2e` stumbles, and they cannot be kept in a file; that a node was annotated is all that it needs to know,
    to give each such node dequantize nodes of its own.
    """
    from torchao.quantization.pt2e.quantizer.utils import is_valid_annotation

    for node in all_nodes_of(module):
        if is_valid_annotation(node.meta.pop(_ANNOTATION, None)):
            node.meta[_ANNOTATED] = True


def annotate_again(module: GraphModule) -> None:
    """Give the nodes that are marked an annotation that `convert_pt2e` takes as one."""
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation

    for node in all_nodes_of(module):
        if node.meta.pop(_ANNOTATED, False):
            # An input without a specification: nothing is to be done for it, and the annotation counts as one.
            node.meta[_ANNOTATION] = QuantizationAnnotation(input_qspec_map={node: None}, _annotated=True)


def port_origins(module: GraphModule) -> None:
    """Give quantize and dequantize nodes the module and the source line of the operator that they are there for.

    Dequantize nodes, and those that find the range of a dynamic quantization, serve what consumes them; a quantize
    node serves what produced its input, or, where nothing did, what consumes it.
    """
    for node in reversed(list(all_nodes_of(module))):
        if not _is_quantization(node) or node.meta.get("stack_trace"):
            continue
        producer = node.args[0] if _quantizes_a_result(node) else None
        origin = producer or next(iter(node.users), None)
        if isinstance(origin, torch.fx.Node) and origin.op == "call_function":
            for key in ("stack_trace", "nn_module_stack", "quantization_tag"):
                if key in origin.meta:
                    node.meta[key] = origin.meta[key]


def _quantizes_a_result(node: torch.fx.Node) -> bool:
    """Whether it quantizes what an operator gave, with a range that is known ahead of time."""
    if _is_item_of_range(node) or "dequantize" in str(node.target) or "choose_qparams" in str(node.target):
        return False
    value, scale = node.args[0], node.args[1]
    is_dynamic = isinstance(scale, torch.fx.Node) and _is_item_of_range(scale)
    return isinstance(value, torch.fx.Node) and value.op == "call_function" and not is_dynamic


def _is_quantization(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and (
        namespace_of(node.target) in ("quantized_decomposed", "torchao") or _is_item_of_range(node)
    )


def _is_item_of_range(node: torch.fx.Node) -> bool:
    """Whether it takes one of the two results of finding a range."""
    first = node.args[0] if node.args else None
    return isinstance(first, torch.fx.Node) and "choose_qparams" in str(first.target)


def apply_passes(module: GraphModule, passes: Sequence[Callable[[Any], Any]], field: str) -> GraphModule:
    """Apply functions from graph module to graph module, in order; `field` names them in messages."""
    for position, function in enumerate(passes):
        changed = function(module)
        if not isinstance(changed, GraphModule):
            raise UsageError(
                f"{field}[{position}], {function!r}, returned {type(changed).__name__}",
                hint="Such a pass takes a torch.fx.GraphModule and returns one.",
            )
        module = changed
    return module


def observers_of(module: GraphModule) -> Iterator[tuple[str, torch.nn.Module]]:
    """Walk the observers and fake-quantize modules; of a fake-quantize module, not the observer inside it."""
    inside: set[int] = set()
    for name, child in module.named_modules():
        if id(child) not in inside and is_observer(child):
            inside.update(id(one) for one in child.modules())
            yield name, child


def is_observer(module: Any) -> bool:
    """Whether a module is an observer or a fake-quantize module, of torchao's PT2E or of torch.ao."""
    return any(
        base.__name__ in ("ObserverBase", "FakeQuantizeBase", "AffineQuantizedObserverBase")
        for base in type(module).__mro__
    )


def blind_observers(module: GraphModule) -> list[str]:
    """Return, for observers that have seen no value, what they observe: the name of a node or a weight.

    Those that keep no range (of dynamic quantization, of fixed parameters) need to see none.
    """
    blind = {name for name, observer in observers_of(module) if _is_blind(observer)}
    return [
        node.args[0].name if node.args[0].op != "get_attr" else str(node.args[0].target)
        for node in all_nodes_of(module)
        if node.op == "call_module" and node.target in blind and isinstance(node.args[0], torch.fx.Node)
    ]


def observed_again(module: GraphModule) -> list[str]:
    """Return what is observed although it comes out of a dequantize already: the names of the stored tensors."""
    found = []
    for node in all_nodes_of(module):
        if node.op != "call_module" or not is_observer(module.get_submodule(str(node.target))):
            continue
        source = node.args[0]
        if isinstance(source, torch.fx.Node) and "dequantize" in str(source.target):
            stored = source.args[0]
            found.append(str(stored.target if stored.op == "get_attr" else stored.name))
    return found


def _is_blind(observer: torch.nn.Module) -> bool:
    for child in observer.modules():
        low, high = getattr(child, "min_val", None), getattr(child, "max_val", None)
        if isinstance(low, torch.Tensor) and isinstance(high, torch.Tensor):
            # A range per tensor starts as (inf, -inf), one per channel as empty tensors.
            return low.numel() == 0 or bool((low > high).any())
    return False


def all_nodes_of(module: GraphModule) -> Iterator[torch.fx.Node]:
    """Walk the nodes of a graph module and of the graph modules in it."""
    for child in module.modules():
        if isinstance(child, GraphModule):
            yield from child.graph.nodes


def is_for_training(module: GraphModule) -> bool:
    """Whether it was prepared for quantization-aware training."""
    return bool(getattr(module.meta.get("_observed_graph_module_attrs"), "is_qat", False))


def quantizes(program: Any) -> bool:
    """Whether quantize or dequantize operators are in an exported program; not in what it delegated."""
    return any(
        node.op == "call_function"
        and namespace_of(node.target) in ("quantized_decomposed", "torchao")
        and "quantize" in str(node.target)
        for node in all_nodes(program)
    )
