"""Looking into captured programs while they run: every node's value, inside delegates and branches too.

A program becomes a *flow*: its nodes in the order in which they run, delegates and branches opened, with what each
takes its inputs from. The value of a step is what its node gives when the program is interpreted.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

from etgraph.artifact import Inputs
from stages.support.executing import cloned, leaves_of

Program = ExportedProgram | GraphModule
#: Called with the key of a step and its value.
See = Callable[[str, Any], None]


@dataclass(frozen=True)
class FlowStep:
    """One node of a flow.

    Args:
        key: its name, after those of the delegate and of the branches that it is in.
        branch: the branches alone.
        inputs: the keys that it takes its values from, in the order of its arguments.
        names: its name, and those of the nodes that it was made from, the newest first.
        holds: of a weight, buffer or constant, what it is called in the program.
        position: of an input of the method, its number.
    """

    key: str
    node: Node
    branch: str
    inputs: tuple[str, ...]
    names: tuple[str, ...]
    holds: str = ""
    position: int | None = None


@dataclass
class Flow:
    """The steps of a program by key, in order; and of each output of the method the key, None for a plain value."""

    steps: dict[str, FlowStep] = field(default_factory=dict)
    outputs: list[str | None] = field(default_factory=list)


def flow_of(program: Program, *, open_delegates: bool = True) -> Flow:
    """Lay a program out, with branches opened, and delegates too unless they are to be one step each."""
    flow = Flow()
    laid = _Laid(flow, open_delegates)
    if isinstance(program, ExportedProgram):
        flow.outputs = [one if isinstance(one, str) else None for one in laid.program(program, "", "", None)]
    else:
        outputs = laid.module(program, "", "", {})
        flow.outputs = [one if isinstance(one, str) else None for one in pytree.tree_leaves(outputs)]
    return flow


class _Laid:
    """Walks graphs and writes their steps down. A value is a key, or a tuple of values, or None for a plain one."""

    def __init__(self, flow: Flow, open_delegates: bool) -> None:
        self.flow = flow
        self.open_delegates = open_delegates

    def program(self, ep: ExportedProgram, prefix: str, branch: str, given: list[Any] | None) -> list[Any]:
        """Lay out an exported program; `given` are the values of its inputs, where another program calls it."""
        known: dict[str, Any] = {}
        holds, position = _held_by_placeholders(ep), 0
        for spec in ep.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                if given is not None:
                    known[spec.arg.name] = given[position]
                position += 1
        outputs = self.module(ep.graph_module, prefix, branch, known, holds)
        return [
            value
            for spec, value in zip(ep.graph_signature.output_specs, outputs, strict=True)
            if spec.kind is OutputKind.USER_OUTPUT
        ]

    def module(
        self,
        module: GraphModule,
        prefix: str,
        branch: str,
        known: Mapping[str, Any],
        holds: Mapping[str, str] | None = None,
    ) -> Any:
        """Lay out a graph; `known` are the values of placeholders that come from outside."""
        values: dict[Node, Any] = {}
        position = 0
        outputs: Any = ()
        for node in module.graph.nodes:
            if node.op == "output":
                outputs = pytree.tree_map(lambda one: values.get(one) if isinstance(one, Node) else None, node.args[0])
            elif node.op == "placeholder" and node.name in known:
                values[node] = known[node.name]
            else:
                held = (holds or {}).get(node.name, "")
                if node.op == "get_attr" and not held:
                    held = str(node.target)
                at = None
                if node.op == "placeholder" and not held:
                    at, position = position, position + 1
                values[node] = self._laid(module, node, prefix, branch, values, held, at)
        return outputs

    def _laid(
        self,
        module: GraphModule,
        node: Node,
        prefix: str,
        branch: str,
        values: dict[Node, Any],
        held: str,
        position: int | None,
    ) -> Any:
        inner = getattr(module, str(node.target), None) if node.op == "get_attr" else None
        if inner is not None and not isinstance(inner, torch.Tensor):
            return None  # a delegate or a branch; laid out where it is called
        if node.target is operator.getitem:
            whole = values.get(node.args[0])
            if isinstance(whole, tuple | list):
                return whole[node.args[1]]
        if node.target is executorch_call_delegate and self.open_delegates:
            name = node.args[0].target
            arguments = [values.get(one) if isinstance(one, Node) else None for one in node.args[1:]]
            return self.program(getattr(module, name).original_module, f"{prefix}{name}/", branch, arguments)
        more = self._branches(module, node, prefix, branch, values) if _is_cond(node) else []
        inputs = [*_keys([values.get(one) for one in node.all_input_nodes]), *more]
        key = f"{prefix}{node.name}"
        names = (node.name, *(name for name, _ in ancestors_of(node)))
        self.flow.steps[key] = FlowStep(key, node, branch, tuple(inputs), names, held, position)
        return key

    def _branches(
        self, module: GraphModule, node: Node, prefix: str, branch: str, values: dict[Node, Any]
    ) -> list[str]:
        """Lay out both branches of `torch.cond`; return the keys of what they give."""
        found: list[str] = []
        for attribute in node.args[1:3]:
            inner = getattr(module, attribute.target)
            names = [one.name for one in inner.graph.nodes if one.op == "placeholder"]
            known = {name: values.get(one) for name, one in zip(names, node.args[3], strict=True)}
            at = f"{attribute.target}/"
            found += _keys(self.module(inner, f"{prefix}{at}", f"{branch}{at}", known))
        return found


def _keys(values: Any) -> list[str]:
    return [one for one in pytree.tree_leaves(values) if isinstance(one, str)]


def _is_cond(node: Node) -> bool:
    return node.target is torch.ops.higher_order.cond


def ancestors_of(node: Node) -> Iterator[tuple[str, int]]:
    """Name the nodes that a node was made from, the newest first, each with the id of its graph."""
    sources = node.meta.get("from_node")
    while sources:
        yield sources[-1].name, sources[-1].graph_id
        sources = sources[-1].from_node


def _held_by_placeholders(ep: ExportedProgram) -> dict[str, str]:
    return {
        spec.arg.name: str(spec.target)
        for spec in ep.graph_signature.input_specs
        if spec.kind is not InputKind.USER_INPUT
    }


# -- running -----------------------------------------------------------------------------------------------------------


def run_through(program: Program, sample: Inputs, see: See) -> None:
    """Run a method from its start state and show every value to `see` as soon as it is there."""
    given = leaves_of(cloned(sample)) if not isinstance(program, ExportedProgram) else _flat(program, sample)
    with torch.no_grad():
        if isinstance(program, ExportedProgram):
            _run_program(program, given, "", see)
        else:
            # Observers take in what they see.
            _Seeing(copy.deepcopy(program), "", see).run(*given, enable_io_processing=False)


@dataclass(frozen=True)
class Failure:
    """The step whose execution ends in an error."""

    key: str
    error: Exception


def failing_step(program: Program, sample: Inputs) -> Failure | None:
    """Run a method until a node raises an error; None where none does."""
    try:
        run_through(program, sample, lambda key, value: None)
    except Exception as error:
        key = getattr(error, "etgraph_key", None)
        return Failure(key, error) if key else None
    return None


def _flat(ep: ExportedProgram, sample: Inputs) -> list[Any]:
    """Return a sample's values in the order of a program's inputs."""
    given = cloned(sample)
    kwargs = dict(given.kwargs)
    specs = ep.call_spec.in_spec.children() if ep.call_spec.in_spec is not None else []
    if len(specs) == 2 and isinstance(specs[1].context, list) and set(specs[1].context) == set(kwargs):
        kwargs = {name: kwargs[name] for name in specs[1].context}
    return leaves_of(Inputs(*given.args, **kwargs))


def _run_program(ep: ExportedProgram, given: list[Any], prefix: str, see: See) -> list[Any]:
    signature = ep.graph_signature
    inputs, rest = [], list(given)
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(rest.pop(0))
        elif spec.kind is InputKind.TOKEN:
            inputs.append(torch.empty(0))
        else:
            held = ep.state_dict.get(spec.target, ep.constants.get(spec.target))
            # A buffer may be written to in place.
            inputs.append(held.clone() if spec.kind is InputKind.BUFFER and isinstance(held, torch.Tensor) else held)
    outputs = _Seeing(ep.graph_module, prefix, see).run(*inputs, enable_io_processing=False)
    return [
        value
        for spec, value in zip(signature.output_specs, outputs, strict=True)
        if spec.kind is OutputKind.USER_OUTPUT
    ]


class _Seeing(Interpreter):
    """Interprets a graph, delegates by the programs that they were made from."""

    def __init__(self, module: GraphModule, prefix: str, see: See) -> None:
        super().__init__(module)
        self.prefix = prefix
        self.see = see

    def run_node(self, n: Node) -> Any:
        self.node = n
        try:
            value = super().run_node(n)
        except Exception as error:
            if not hasattr(error, "etgraph_key"):
                error.etgraph_key = f"{self.prefix}{n.name}"
            raise
        if n.op != "output":
            self.see(f"{self.prefix}{n.name}", value)
        return value

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is executorch_call_delegate:
            prefix = f"{self.prefix}{self.node.args[0].target}/"
            return tuple(_run_program(args[0].original_module, list(args[1:]), prefix, self.see))
        if target is torch.ops.higher_order.cond:
            chosen = 1 if bool(args[0]) else 2
            inner = _Seeing(args[chosen], f"{self.prefix}{self.node.args[chosen].target}/", self.see)
            return inner.run(*args[3], enable_io_processing=False)
        return super().call_function(target, args, kwargs)
