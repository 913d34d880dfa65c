"""Graphs of a `.pte` for Model Explorer: the instructions of each method, in the order in which they run."""

from __future__ import annotations

from typing import Any

from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import DelegateCall, ExecutionPlan, KernelCall, Tensor, TensorList
from model_explorer.graph_builder import Graph, GraphNode, IncomingEdge, KeyValue, MetadataItem

from etgraph.artifact import Executorch


def graphs_of(artifact: Executorch) -> list[Graph]:
    """Return a graph for each method; constant methods, which run nothing, are left out."""
    program = deserialize_pte_binary(artifact.buffer).program
    plans = {plan.name: plan for plan in program.execution_plan}
    return [_Method(plans[name]).graph() for name in artifact.methods]


class _Method:
    """Builds the graph of one method: an edge goes from the instruction that writes a value to those that read it."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.nodes: list[GraphNode] = []
        self.writers: dict[int, str] = {}

    def graph(self) -> Graph:
        """Return the graph."""
        for number, index in enumerate(self.plan.inputs):
            self._add(f"input {number}", f"input {number}", "inputs", [], [index])
        for chain in self.plan.chains:
            for instruction in chain.instructions:
                self._instruction(instruction.instr_args)
        self._add("outputs", "outputs", "", list(self.plan.outputs), [])
        return Graph(id=self.plan.name, nodes=self.nodes)

    def _instruction(self, call: Any) -> None:
        number = len(self.nodes)
        if isinstance(call, KernelCall):
            operator = self.plan.operators[call.op_index]
            name = f"{operator.name}.{operator.overload}".rstrip(".")
            self._call(f"{number} {name}", name, "", call.args)
        elif isinstance(call, DelegateCall):
            backend = self.plan.delegates[call.delegate_index].id
            layer = f"delegate {call.delegate_index} ({backend})"
            self._call(f"{number} {backend}", backend, layer, call.args)
        else:
            # Jumps, moves and frees: they say how it runs, not what is computed.
            self._add(f"{number} {type(call).__name__}", type(call).__name__, "", [], [])

    def _call(self, identity: str, label: str, layer: str, arguments: list[int]) -> None:
        """Add a call; what it is given and nobody has written yet, and is no constant, is where it writes to."""
        tensors = [tensor for index in arguments for tensor in self._tensors(index)]
        read = [index for index in tensors if index in self.writers or self._is_constant(index)]
        self._add(identity, label, layer, read, [index for index in tensors if index not in read])

    def _tensors(self, index: int) -> list[int]:
        value = self.plan.values[index].val
        if isinstance(value, TensorList):
            return list(value.items)
        return [index] if isinstance(value, Tensor) else []

    def _is_constant(self, index: int) -> bool:
        value = self.plan.values[index].val
        return isinstance(value, Tensor) and value.data_buffer_idx > 0

    def _add(self, identity: str, label: str, layer: str, read: list[int], written: list[int]) -> None:
        node = GraphNode(id=identity, label=label, namespace=layer)
        for index in dict.fromkeys(read):
            self._constant(index)
            if index in self.writers:
                node.incomingEdges.append(
                    IncomingEdge(sourceNodeId=self.writers[index], targetNodeInputId=str(len(node.incomingEdges)))
                )
        for number, index in enumerate(dict.fromkeys(written)):
            self.writers[index] = identity
            item = MetadataItem(id=str(number), attrs=[KeyValue(key="tensor_shape", value=self._described(index))])
            node.outputsMetadata.append(item)
        self.nodes.append(node)

    def _constant(self, index: int) -> None:
        if index not in self.writers and self._is_constant(index):
            self._add(f"constant {index}", "constant", "constants", [], [index])

    def _described(self, index: int) -> str:
        value = self.plan.values[index].val
        if not isinstance(value, Tensor):
            return type(value).__name__.lower()
        return f"{ScalarType(value.scalar_type).name.lower()}{value.sizes}"
