"""nn.Module and fx.GraphModule: code, weights, flags, hooks and every other attribute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.identity import classes
from etgraph.identity.description import Description

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_nn_module"]

#: Tables of a module whose members are reached as attributes of it.
_MEMBERS = ("_parameters", "_buffers", "_modules")
#: Hooks are kept under numbers that count up over the whole process; their order is what they say.
_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_HOOK_FLAGS = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")


def describe_nn_module(walk: Walk, module: Any) -> Description:
    """Describe an eager module with all that it holds, or a graph module by its graph and what it holds.

    Raises:
        Undescribable: it is compiled or scripted, or holds something that has no description.
    """
    torch = sys.modules["torch"]
    same = walk.once(module)
    if same is not None:
        return same
    if isinstance(module, (torch.jit.ScriptModule, torch.jit.RecursiveScriptModule)):
        walk.refuse(module, "its code is compiled TorchScript", hint="Give the eager module.")
    state = vars(module)
    if state.get("_compiled_call_impl") is not None or type(module).__name__ == "OptimizedModule":
        walk.refuse(module, "it was compiled by torch.compile", hint="Give the module before torch.compile.")
    children: list[tuple[str, Description]] = []
    skip: tuple[str, ...] = ("_compiled_call_impl",)
    if isinstance(module, torch.fx.GraphModule):
        children.append(("(graph)", _graph(walk, module.graph)))
        skip += (
            "_graph",
            "_code",
            "_lineno_map",
            "_prologue_start",
            "_tracer_cls",
            "_tracer_extras",
            "meta",
            "_replace_hooks",
            "_create_node_hooks",
            "_erase_node_hooks",
            "_deepcopy_hooks",
            "graph",
        )
        name = "GraphModule"
    else:
        children.append(("(class)", classes.describe_class(walk, type(module), called=False)))
        name = type(module).__qualname__
    children += walk.children(_attributes(state, skip))
    children += walk.children(_hooks(state))
    return Description("object", name, tuple(children))


def _attributes(state: dict[str, Any], skip: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for table in _MEMBERS:  # in their own order: nn.Sequential runs its modules in it
        for name, member in (state.get(table) or {}).items():
            yield (f".{name}", member) if name.isidentifier() else (f"[{name}]", member)
    yield "(order)", "; ".join(", ".join(state.get(table) or {}) for table in _MEMBERS)
    for name, value in sorted(state.items()):
        if name not in (*_MEMBERS, *_HOOKS, *_HOOK_FLAGS, *skip) and not name.startswith("__etgraph"):
            yield f".{name}", value


def _hooks(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for table in _HOOKS:
        hooks = state.get(table)
        if not hooks:
            continue
        flags = [name for name in _HOOK_FLAGS if name.startswith(table)]
        said = [(hook, *(number in state.get(flag, {}) for flag in flags)) for number, hook in hooks.items()]
        yield f".{table}", said


def _graph(walk: Walk, graph: Any) -> Description:
    """A graph by its nodes in order: operator, target, arguments, and the shape and type of each value."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    children = [(f"(node {node.name})", _node(walk, node, numbers)) for node in graph.nodes]
    info = getattr(graph._codegen, "pytree_info", None)
    forms = Description("signature", repr(info)) if info is not None else Description("signature", "plain")
    return Description("graph", f"{len(numbers)} nodes", (("(signature)", forms), *children))


def _node(walk: Walk, node: Any, numbers: dict[Any, int]) -> Description:
    import torch

    def by_number(n: Any) -> Any:
        return _NodeRef(numbers[n])

    args = torch.fx.node.map_arg((node.args, dict(node.kwargs)), by_number)
    target = node.target if isinstance(node.target, str) else walk.visit(node.target, f"(node {node.name})")
    children: list[tuple[str, Description]] = []
    if isinstance(target, Description):
        children.append(("(target)", target))
        target = target.text
    children.append(("(args)", walk.visit(args, f"(node {node.name})")))
    for key in ("val", "custom"):  # what torch.export keeps of a graph that it traces again
        if node.meta.get(key) is not None:
            children.append((f"({key})", walk.visit(node.meta[key], f"({key} of {node.name})")))
    return Description("node", f"{node.op} {node.name} {target}", tuple(children), shown=f"{node.op} {target}")


class _NodeRef:
    """A node by its number in the graph."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __etgraph_fingerprint__(self) -> int:
        return self.number
