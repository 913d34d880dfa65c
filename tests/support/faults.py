"""Edge passes that plant a fault, each of one kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from executorch.exir.dialects._ops import ops as edge_ops
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

import etgraph


class Fault(PassBase):
    """Changes a graph by a function."""

    def __init__(self, plant: Callable[[GraphModule], None]) -> None:
        super().__init__()
        self.plant = plant

    def call(self, graph_module: GraphModule) -> PassResult:
        self.plant(graph_module)
        graph_module.recompile()
        return PassResult(graph_module, True)


def recipe_with(plant: Callable[[GraphModule], None], base: str = "xnnpack_fp32", **methods: Any) -> etgraph.Recipe:
    """Return a recipe whose edge passes plant a fault; in one method where one is named."""
    method = methods.get("method")
    passes: Any = {method: [Fault(plant)]} if method else [Fault(plant)]
    return etgraph.get_recipe(base).with_options("edge_passes", passes=passes)


def nodes_of(module: GraphModule, name: str) -> list[Node]:
    """Return the calls of an operator, such as `aten.hardtanh.default`; in branches too."""
    return [
        node
        for graph in (module, *(child for child in module.modules() if child is not module))
        if isinstance(graph, GraphModule)
        for node in graph.graph.nodes
        if node.op == "call_function" and str(node.target).find(name) >= 0
    ]


def lose_clamp(module: GraphModule) -> None:
    """As a serializer does that turns positional arguments into keywords: the first clamp goes from -1 to 1."""
    nodes_of(module, "aten.hardtanh.default")[0].args = nodes_of(module, "aten.hardtanh.default")[0].args[:1]


def swap_outputs(module: GraphModule) -> None:
    """Exchange the first two outputs."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    first, second, *rest = output.args[0]
    output.args = ((second, first, *rest),)


def cast_first(name: str, dtype: torch.dtype) -> Callable[[GraphModule], None]:
    """Cast the first input of an operator to fewer bits and back."""

    def plant(module: GraphModule) -> None:
        node = nodes_of(module, name)[0]
        value = node.args[0]
        cast = edge_ops.edge.dim_order_ops._to_dim_order_copy.default
        order = list(value.meta["val"].dim_order())
        with node.graph.inserting_before(node):
            down = node.graph.call_function(cast, (value,), {"dtype": dtype, "dim_order": order})
            up = node.graph.call_function(cast, (down,), {"dtype": torch.float32, "dim_order": order})
        down.meta["val"] = value.meta["val"].to(dtype)
        up.meta["val"] = value.meta["val"]
        node.replace_input_with(value, up)

    return plant


def add_one_before(name: str) -> Callable[[GraphModule], None]:
    """Add an operator that nothing in the model stands for."""

    def plant(module: GraphModule) -> None:
        node = nodes_of(module, name)[0]
        value = node.args[0]
        with node.graph.inserting_before(node):
            more = node.graph.call_function(edge_ops.edge.aten.add.Tensor, (value, value))
        more.meta["val"] = value.meta["val"]
        node.replace_input_with(value, more)

    return plant


def scale_times(factor: float, position: int = 0) -> Callable[[GraphModule], None]:
    """Multiply the scale of one activation, where it is quantized and where it is dequantized."""

    def plant(module: GraphModule) -> None:
        quantize = nodes_of(module, "quantized_decomposed.quantize_per_tensor.default")[position]
        for node in (quantize, *quantize.users):
            node.args = (node.args[0], node.args[1] * factor, *node.args[2:])

    return plant


__all__ = [
    "Fault", "add_one_before", "cast_first", "lose_clamp", "nodes_of", "recipe_with", "scale_times",
    "swap_outputs",
]  # fmt: skip
