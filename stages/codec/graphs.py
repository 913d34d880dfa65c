"""FX graphs and the modules that own them, node by node, as they are.

Torch turns a graph into Python source and runs it, so every name that reaches that source is checked to be a plain
name when it is read.
"""

from __future__ import annotations

import keyword
import types
from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse
from stages.codec.operators import read_target, write_target
from stages.codec.values import Unkept, read_value, write_value
from stages.support.libraries import is_scratch

__all__ = ["check_path", "read_graph_module", "read_meta", "write_graph_module"]

#: Node metadata that only people and tools read; it is kept and is no part of what a program means.
DEBUG_META = frozenset({"stack_trace", "seq_nr", "from_node", "desc", "eager_input_vals"})
#: Metadata that holds tensors or symbols: made anew for each node, never shared between nodes.
_FRESH_META = frozenset({"val", "tensor_meta", "eager_input_vals", "unbacked_bindings", "example_value"})
_OPS = ("placeholder", "get_attr", "call_function", "call_module", "output")


def write_graph_module(writer: Writer, module: Any) -> int:
    """Give the position of a graph module: its nodes, and the modules and tensors that it owns."""
    position, new = writer.number("graph", module, writer.graphs)
    if not new:
        return position
    writer.graph_debug.append(None)
    outer = writer.nodes
    writer.nodes = {node: i for i, node in enumerate(module.graph.nodes)}
    nodes, debug = [], []
    for node in module.graph.nodes:
        meaning, rest = _write_node(writer, node)
        nodes.append(meaning)
        debug.append(rest)
    writer.nodes = outer
    namespace = module.graph._graph_namespace
    writer.graphs[position] = {
        "nodes": nodes,
        "ancestors": _write_ancestors(module.graph),
        "owned": write_owned(writer, module),
        "meta": _write_plain_meta(writer, module.meta, "graph module"),
        "training": bool(module.training),
        "switches": _write_switches(module),
        "prepared": _write_prepared(writer, module.meta),
        **_write_codegen(writer, module.graph),
    }
    writer.graph_debug[position] = {
        "nodes": debug,
        "names": sorted(namespace._used_names.difference(n.name for n in module.graph.nodes)),
        "counts": dict(sorted(namespace._base_count.items())),
    }
    return position


def _write_node(writer: Writer, node: Any) -> tuple[dict[str, Any], dict[str, int]]:
    where, writer.where = writer.where, f"{writer.where}, node {node.name}"
    if node.op not in _OPS:
        raise refuse(writer.where, f"a node of type {node.op}", "Export the model with torch.export.")
    target = write_target(writer, node.target, scratch=is_scratch(node)) if node.op == "call_function" else node.target
    encoded = {
        "op": node.op,
        "name": node.name,
        "target": target,
        "args": _write_argument(writer, node.args)["t"],
    }
    if node.kwargs:
        encoded["kwargs"] = [[k, _write_argument(writer, v)] for k, v in node.kwargs.items()]
    users = [writer.nodes[user] for user in node.users]
    if users != sorted(users):
        encoded["users"] = users
    meta, debug = {}, {}
    for key, value in sorted(node.meta.items(), key=lambda item: _META_ORDER.get(item[0], 1)):
        table = (debug, writer.debug) if key in DEBUG_META else (meta, writer.meta)
        try:
            table[0][key] = table[1].add(_write_meta(writer, key, value))
        except Unkept as e:
            writer.drop(f"node metadata {key!r} ({e.args[0]})")
    if node.type is not None:
        writer.drop("node types")
    encoded["meta"] = [[k, meta[k]] for k in node.meta if k in meta]
    writer.where = where
    return encoded, debug


#: Symbols are known once `val` is encoded, and `unbacked_bindings` names them.
_META_ORDER = {"val": 0, "unbacked_bindings": 2}


def _write_argument(writer: Writer, value: Any) -> Any:
    """Encode an argument; fx makes every list and dict of arguments immutable, so the distinction is not kept."""
    if isinstance(value, tuple) and type(value) is tuple:
        return {"t": [_write_argument(writer, v) for v in value]}
    if isinstance(value, list):
        return [_write_argument(writer, v) for v in value]
    if isinstance(value, dict):
        return {"d": [[_write_argument(writer, k), _write_argument(writer, v)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [_write_argument(writer, v) for v in (value.start, value.stop, value.step)]}
    try:
        return write_value(writer, value)
    except Unkept as e:
        raise refuse(
            writer.where, f"an argument of type {e.args[0]}", "Use tensors, numbers and strings as arguments."
        ) from None


def _write_meta(writer: Writer, key: str, value: Any) -> Any:
    if key == "from_node" and isinstance(value, list):
        return [_write_source(writer, source) for source in value]
    return write_value(writer, value)


def _write_source(writer: Writer, source: Any) -> int:
    """Encode where a node came from; graphs are numbered in the order in which they are met, never by `id()`."""
    info = source.node_info
    shown = None
    if info is not None:
        graph = writer.graph_ids.setdefault(info.graph_id, len(writer.graph_ids))
        shown = [info.name, info.target, graph]
    before = [_write_source(writer, s) for s in source.from_node]
    return writer.debug.add([shown, source.pass_name, [a.name for a in source.action], before])


def _write_ancestors(graph: Any) -> list[int | None]:
    """Group nodes by their greatest ancestor, as ExecuTorch does when it gives out debug handles.

    Source: `get_greatest_ancestor_node_identifier` in executorch 1.5.1, exir/debug_handle_utils.py. The groups, not
    the identifiers, reach delegates: a group is numbered by its first node.
    """
    first: dict[tuple[str, int], int] = {}
    groups: list[int | None] = []
    for i, node in enumerate(graph.nodes):
        sources = node.meta.get("from_node")
        if not sources:
            groups.append(None)
            continue
        source = sources[-1]
        while source.from_node:
            source = source.from_node[-1]
        groups.append(first.setdefault((source.name, source.graph_id), i))
    return groups


def _write_plain_meta(writer: Writer, meta: dict[str, Any], owner: str) -> list[Any]:
    kept = []
    for key, value in meta.items():
        if key == "_observed_graph_module_attrs":
            continue
        try:
            kept.append([key, write_value(writer, value)])
        except Unkept as e:
            writer.drop(f"{owner} metadata {key!r} ({e.args[0]})")
    return kept


def write_owned(writer: Writer, module: Any) -> list[Any]:
    """Encode what a module owns, in order: `[name, what, ...]`."""
    from stages.codec.tensors import write_tensor

    owned: list[Any] = []
    for name, parameter in module._parameters.items():
        owned.append([name, "parameter", None if parameter is None else write_tensor(writer, parameter)])
    for name, buffer in module._buffers.items():
        kept = name not in module._non_persistent_buffers_set
        owned.append([name, "buffer", None if buffer is None else write_value(writer, buffer), kept])
    for name, child in module._modules.items():
        if child is not None:
            owned.append([name, *_write_child(writer, name, child)])
    have = {entry[0] for entry in owned}
    for node in getattr(module, "graph", _NO_GRAPH).nodes:
        if node.op == "get_attr" and "." not in node.target and node.target not in have:
            have.add(node.target)
            owned.append([node.target, "value", _write_argument(writer, getattr(module, node.target))])
    return owned


class _NO_GRAPH:
    nodes = ()


def _write_child(writer: Writer, name: str, child: Any) -> list[Any]:
    import torch

    if isinstance(child, torch.fx.GraphModule):
        return ["graph", write_graph_module(writer, child)]
    if type(child).__name__ == "LoweredBackendModule":
        from stages.codec.delegates import write_delegate

        return ["delegate", write_delegate(writer, child)]
    if type(child) is torch.nn.Module:
        return ["module", write_owned(writer, child), bool(child.training)]
    from stages.codec import observers

    if observers.is_known(child):
        return ["observer", observers.write_observer(writer, child)]
    raise refuse(
        writer.where,
        f"the submodule {name!r} of class {type(child).__module__}.{type(child).__qualname__}",
        "Only graphs, delegates and the observers of torchao and torch.ao can be kept.",
    )


def _write_prepared(writer: Writer, meta: dict[str, Any]) -> dict[str, Any] | None:
    from stages.codec import observers

    attrs = meta.get(observers.PREPARED)
    return None if attrs is None else observers.write_prepared(writer, attrs)


def _write_switches(module: Any) -> str | None:
    """Say what `train()` and `eval()` of an unlifted program do: torch replaces them on the instance."""
    train = module.__dict__.get("train")
    if train is None:
        return None
    return "move" if "allow_exported_model_train_eval" in train.__func__.__qualname__ else "refuse"


def _read_switches(module: Any, switches: str) -> None:
    if switches == "move":
        from torchao.quantization.pt2e import allow_exported_model_train_eval

        allow_exported_model_train_eval(module)
        return

    def refuse_switch(self: Any, mode: bool = True) -> None:
        raise NotImplementedError("Calling train() or eval() is not supported for this module.")

    module.train = types.MethodType(refuse_switch, module)
    module.eval = types.MethodType(refuse_switch, module)


def _write_codegen(writer: Writer, graph: Any) -> dict[str, Any]:
    info = getattr(graph._codegen, "pytree_info", None)
    if info is None:
        return {}
    from stages.codec.specs import write_spec

    specs = [None if s is None else write_spec(writer, s) for s in (info.in_spec, info.out_spec)]
    return {"pytree": [list(info.orig_args), *specs, info.out_spec is None]}


def read_graph_module(reader: Reader, position: int) -> Any:
    """Give the graph module at a position of the document."""
    if position in reader.graphs:
        return reader.graphs[position]
    import torch

    encoded, debug = reader.meaning["graphs"][position], reader.debug["graphs"][position]
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    reader.graphs[position] = module
    read_owned(reader, module, encoded["owned"])
    outer, reader.nodes = reader.nodes, []
    graph = torch.fx.Graph()
    for i, entry in enumerate(encoded["nodes"]):
        _read_node(reader, graph, entry, debug["nodes"][i])
    for node, entry in zip(reader.nodes, encoded["nodes"], strict=True):
        if "users" in entry:
            node.users = {reader.nodes[i]: None for i in entry["users"]}
    reader.nodes = outer
    namespace = graph._graph_namespace
    namespace._used_names = {n.name for n in graph.nodes}.union(debug["names"])
    namespace._base_count = dict(debug["counts"])
    if "pytree" in encoded:
        graph._codegen = _read_codegen(reader, encoded["pytree"])
    module.graph = graph
    module.training = encoded["training"]
    if encoded["prepared"] is not None:
        from stages.codec import observers

        module.meta[observers.PREPARED] = observers.read_prepared(encoded["prepared"])
    if encoded["switches"] is not None:
        _read_switches(module, encoded["switches"])
    module.meta.update({k: read_value(reader, v) for k, v in encoded["meta"]})
    return module


def _read_node(reader: Reader, graph: Any, entry: dict[str, Any], debug: dict[str, int]) -> None:
    op, name, target = entry["op"], entry["name"], entry["target"]
    if op not in _OPS or not _is_name(name):
        raise malformed("a node", [op, name])
    if op == "call_function":
        target = read_target(reader, target)
    elif op == "placeholder":
        if not _is_name(target.lstrip("*")):
            raise malformed("the name of an input", target)
    else:
        check_path(target)
    args = tuple(read_value(reader, a) for a in entry["args"])
    kwargs = {}
    for key, value in entry.get("kwargs", ()):
        if not key.isidentifier():
            raise malformed("the name of an argument", key)
        kwargs[key] = read_value(reader, value)
    node = graph.create_node(op, target, args, kwargs, name)
    node.name = name
    for key, row in entry["meta"]:
        node.meta[key] = read_meta(reader, "meta", key, row)
    for key, row in debug.items():
        node.meta[key] = read_meta(reader, "debug", key, row)
    reader.nodes.append(node)


def read_meta(reader: Reader, table: str, key: str, row: int) -> Any:
    """Read a row of a table of metadata; plain values are read once and shared, as torch itself shares them."""
    encoded = (reader.meaning if table == "meta" else reader.debug)["table"][row]
    if key == "from_node" and isinstance(encoded, list):
        return [_read_source(reader, i) for i in encoded]
    if key in _FRESH_META:
        return read_value(reader, encoded)
    if (table, row) not in reader.shared:
        reader.shared[table, row] = read_value(reader, encoded)
    value = reader.shared[table, row]
    return value.copy() if isinstance(value, (dict, list)) else value


def _read_source(reader: Reader, row: int) -> Any:
    if ("source", row) in reader.shared:
        return reader.shared["source", row]
    from torch.fx.traceback import NodeSource, NodeSourceAction

    shown, pass_name, actions, before = reader.debug["table"][row]
    source = NodeSource(None, pass_name, [NodeSourceAction[a] for a in actions])
    if shown is not None:
        source.node_info = NodeSource.NodeInfo(*shown)
    source.from_node = [_read_source(reader, i) for i in before]
    reader.shared["source", row] = source
    return source


def read_owned(reader: Reader, module: Any, owned: list[Any]) -> None:
    from stages.codec.tensors import read_tensor

    for name, what, *rest in owned:
        check_path(name)
        if what == "parameter":
            module.register_parameter(name, None if rest[0] is None else read_tensor(reader, rest[0]))
        elif what == "buffer":
            module.register_buffer(name, read_value(reader, rest[0]), persistent=rest[1])
        elif what == "value":
            setattr(module, name, read_value(reader, rest[0]))
        else:
            module.add_module(name, _read_child(reader, what, rest))


def _read_child(reader: Reader, what: str, rest: list[Any]) -> Any:
    if what == "graph":
        return read_graph_module(reader, rest[0])
    if what == "delegate":
        from stages.codec.delegates import read_delegate

        return read_delegate(reader, rest[0])
    if what == "module":
        import torch

        child = torch.nn.Module()
        read_owned(reader, child, rest[0])
        child.training = rest[1]
        return child
    if what == "observer":
        from stages.codec import observers

        return observers.read_observer(reader, rest[0])
    raise malformed("something that a module owns", what)


def _read_codegen(reader: Reader, encoded: list[Any]) -> Any:
    from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

    from stages.codec.specs import read_spec

    names, in_spec, out_spec, without = encoded
    if not all(_is_name(name) for name in names):
        raise malformed("the names of inputs", names)
    return _PyTreeCodeGen(
        _PyTreeInfo(list(names), read_spec(reader, in_spec), None if without else read_spec(reader, out_spec))
    )


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)


def check_path(path: Any) -> None:
    """Refuse a dotted path that could end a string in generated source.

    Raises:
        ArtifactFileError: the path holds a quote, a backslash or a character that cannot be printed.
    """
    if not isinstance(path, str) or not path or not path.isprintable() or any(c in path for c in "\"'\\"):
        raise malformed("the path of a module or tensor", path)
