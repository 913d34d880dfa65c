"""Graphs of prepared, exported, quantized, edge and lowered programs for Model Explorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from model_explorer.graph_builder import Graph, GraphNode, IncomingEdge, KeyValue, MetadataItem

from etgraph.artifact import Artifact
from stages.support.graph_text import target_name, tensor_text
from stages.support.source_lines import line_of


def graphs_of(artifact: Artifact) -> list[Graph]:
    """Return a graph for each method, with those of its control-flow branches after it."""
    graphs: list[Graph] = []
    for method, program in artifact.methods.items():
        exported = program if isinstance(program, torch.export.ExportedProgram) else None
        module = program if exported is None else exported.graph_module
        graphs += _Builder(method, exported).graphs(module)
    return graphs


@dataclass
class _Builder:
    """Builds the graph of one module.

    Args:
        name: the graph's id: the method, or the method and the branch.
        program: whose signature says what placeholders are; None where there is none.
        prefix: before the id of each node, inside a delegate.
        layer: the layer that all nodes lie in, inside a delegate.
        wiring: inside a delegate, placeholder to the node outside that is given for it.
    """

    name: str
    program: torch.export.ExportedProgram | None
    prefix: str = ""
    layer: str = ""
    wiring: Mapping[str, str] = field(default_factory=dict)
    branches: list[Graph] = field(default_factory=list)

    def graphs(self, module: torch.fx.GraphModule) -> list[Graph]:
        """Return the graph, and those of its branches."""
        nodes = [built for node in module.graph.nodes for built in self._nodes(node)]
        return [Graph(id=self.name, nodes=nodes), *self.branches]

    def _nodes(self, node: torch.fx.Node) -> list[GraphNode]:
        if node.op == "get_attr" and isinstance(_attribute(node), torch.nn.Module):
            return []  # a delegate or a branch, which is shown where it is called
        if node.op == "call_function" and node.target is executorch_call_delegate:
            return self._delegate(node)
        return [self._node(node)]

    def _node(self, node: torch.fx.Node) -> GraphNode:
        built = GraphNode(
            id=self.prefix + node.name,
            label=_label(node),
            namespace="/".join(filter(None, (self.layer, _layers(node)))),
            attrs=[KeyValue(key=name, value=value) for name, value in self._attributes(node).items()],
            incomingEdges=self._edges(node),
            outputsMetadata=_outputs(node.meta.get("val")),
        )
        for argument in node.args:
            if isinstance(argument, torch.fx.Node) and argument.op == "get_attr":
                self._branch(built, argument)
        return built

    def _branch(self, built: GraphNode, argument: torch.fx.Node) -> None:
        """Show the branch of a control-flow operator as a graph of its own, which a click on the operator opens."""
        module = _attribute(argument)
        if isinstance(module, torch.fx.GraphModule):
            name = f"{self.name}/{self.prefix}{argument.target}"
            self.branches += _Builder(name, None).graphs(module)
            built.subgraphIds.append(name)

    def _delegate(self, node: torch.fx.Node) -> list[GraphNode]:
        """Show a delegate as a layer with the operators that it was made from; the call itself is what comes out."""
        lowered = _attribute(node.args[0])
        layer = "/".join(filter(None, (self.layer, f"{node.args[0].target} ({lowered.backend_id})")))
        call = self._node(node)
        call.label, call.namespace = f"outputs of {lowered.backend_id}", layer
        call.attrs += [
            KeyValue(key="backend", value=lowered.backend_id),
            KeyValue(key="bytes", value=str(len(lowered.processed_bytes))),
        ]
        original = getattr(lowered, "_original_exported_program", None)
        if original is None:
            return [call]
        given = [one.name if isinstance(one, torch.fx.Node) else "" for one in node.args[1:]]
        wiring = dict(zip(original.graph_signature.user_inputs, given, strict=False))
        inner = _Builder(
            self.name,
            original,
            prefix=f"{self.prefix}{node.name}/",
            layer=layer,
            wiring={name: self.prefix + outer for name, outer in wiring.items() if outer},
        )
        (graph, *branches) = inner.graphs(original.graph_module)
        self.branches += branches
        *nodes, output = graph.nodes
        call.incomingEdges = output.incomingEdges
        return [*nodes, call]

    def _edges(self, node: torch.fx.Node) -> list[IncomingEdge]:
        if node.name in self.wiring:
            return [IncomingEdge(sourceNodeId=self.wiring[node.name])]
        sources = [one for one in node.all_input_nodes if not isinstance(_attribute(one), torch.nn.Module)]
        return [
            IncomingEdge(sourceNodeId=self.prefix + one.name, targetNodeInputId=str(position))
            for position, one in enumerate(sources)
        ]

    def _attributes(self, node: torch.fx.Node) -> dict[str, str]:
        found: dict[str, str] = {}
        if node.op.startswith("call"):
            found["operator"] = target_name(node.target)
            schema = getattr(node.target, "_schema", None)
            names = [argument.name for argument in schema.arguments] if schema is not None else []
            for position, value in enumerate(node.args):
                found[names[position] if position < len(names) else f"argument {position}"] = str(value)
            found.update({name: str(value) for name, value in node.kwargs.items()})
        if node.op == "placeholder" and self.program is not None:
            signature = self.program.graph_signature
            for role, names in (
                ("parameter", signature.inputs_to_parameters),
                ("buffer", signature.inputs_to_buffers),
                ("constant", signature.inputs_to_lifted_tensor_constants),
            ):
                if node.name in names:
                    found[role] = names[node.name]
        line = line_of(node.meta.get("stack_trace") or "")
        return {**found, "model source": line} if line else found


def _attribute(node: Any) -> Any:
    """Return what a `get_attr` node names; None for any other node."""
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    value: Any = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def _label(node: torch.fx.Node) -> str:
    if node.op == "output":
        return "outputs"
    if node.op == "placeholder":
        return node.name
    return target_name(node.target)


def _layers(node: torch.fx.Node) -> str:
    """Return the modules of the model that a node comes from, outermost first; placeholders have a layer of theirs."""
    if node.op == "placeholder":
        return "inputs"
    stack = node.meta.get("nn_module_stack") or {}
    layers = []
    for path, module in stack.values():
        name = module if isinstance(module, str) else module.__qualname__
        last = path.rpartition(".")[2]
        # A slash begins a further layer.
        layers.append(f"{name.rpartition('.')[2]} {last}".strip().replace("/", "_"))
    return "/".join(layers)


def _outputs(value: Any) -> list[MetadataItem]:
    values = value if isinstance(value, list | tuple) else [value]
    return [
        MetadataItem(id=str(number), attrs=[KeyValue(key="tensor_shape", value=tensor_text(one))])
        for number, one in enumerate(values)
        if one is not None
    ]
