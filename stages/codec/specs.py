"""The structure of nested inputs and outputs: pytree specs as trees of a closed set of node types.

Torch's own `treespec_loads` imports what a `defaultdict` names. Here a node type is a builtin container or one that
is registered under the name in the file; its library is imported only when it is one of a few well-known packages.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

from etgraph.errors import UsageError
from stages.codec.context import Reader, Writer, malformed, refuse
from stages.codec.values import Unkept, read_value, write_value

__all__ = ["read_spec", "read_tree", "write_spec", "write_tree"]

_PLAIN: dict[str, type] = {"tuple": tuple, "list": list}
_MAPPINGS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict}
_FACTORIES: dict[str, Any] = {
    "None": None,
    "list": list,
    "dict": dict,
    "int": int,
    "float": float,
    "set": set,
}
#: Packages whose modules register their own containers when they are imported, and may be imported for it.
_LIBRARIES = ("transformers", "diffusers", "torch", "torchvision", "executorch")


def write_spec(writer: Writer, spec: Any) -> Any:
    """Encode a TreeSpec: None for a leaf, else `[node type, context, children]`.

    Raises:
        UsageError: a node type that is not registered under a name.
    """
    if spec.is_leaf():
        return None
    children = [write_spec(writer, child) for child in spec.children()]
    name, context = _write_node(writer, spec.type, spec.context)
    return [name, context, children]


def _write_node(writer: Writer, node: Any, context: Any) -> tuple[str, Any]:
    import torch.utils._pytree as pytree
    from torch.fx.immutable_collections import immutable_dict, immutable_list

    if node in _PLAIN.values():
        return node.__name__, None
    if node in _MAPPINGS.values():
        return node.__name__, [write_value(writer, key) for key in context]
    if node is immutable_list:
        return "immutable_list", None
    if node is immutable_dict:
        return "immutable_dict", [write_value(writer, key) for key in context]
    if node is deque:
        return "deque", context
    if node is defaultdict:
        factory = next((n for n, f in _FACTORIES.items() if f is context[0]), None)
        if factory is not None:
            return "defaultdict", [factory, [write_value(writer, key) for key in context[1]]]
    named = context if node is namedtuple else node
    registered = pytree.SUPPORTED_SERIALIZED_TYPES.get(named)
    name = None if registered is None else registered.serialized_type_name
    if not isinstance(name, str) or name == "NO_SERIALIZED_TYPE_NAME_FOUND":
        raise refuse(
            writer.where,
            f"an input or output in a {getattr(named, '__module__', '?')}.{getattr(named, '__qualname__', named)}",
            "Give the type a serialized_type_name where it is registered with "
            "torch.utils._pytree.register_pytree_node or torch.export.register_dataclass.",
        )
    if node is namedtuple:
        return "namedtuple", name
    dump = registered.to_dumpable_context
    return f"registered:{name}", json.loads(json.dumps(context if dump is None else dump(context)))


def read_spec(reader: Reader, encoded: Any) -> Any:
    """Make a TreeSpec again.

    Raises:
        UsageError: a node type that nothing has registered.
        ArtifactFileError: not a spec.
    """
    import torch.utils._pytree as pytree

    if encoded is None:
        return pytree.treespec_leaf()
    name, context, children = encoded
    node, context = _read_node(reader, name, context)
    return pytree.TreeSpec(node, context, [read_spec(reader, child) for child in children])


def _read_node(reader: Reader, name: str, context: Any) -> tuple[Any, Any]:
    from torch.fx.immutable_collections import immutable_dict, immutable_list

    def keys(encoded: Any) -> list[Any]:
        return [read_value(reader, key) for key in encoded]

    if name in _PLAIN:
        return _PLAIN[name], None
    if name in _MAPPINGS:
        return _MAPPINGS[name], keys(context)
    if name == "immutable_list":
        return immutable_list, None
    if name == "immutable_dict":
        return immutable_dict, keys(context)
    if name == "deque":
        return deque, context
    if name == "defaultdict" and context[0] in _FACTORIES:
        return defaultdict, [_FACTORIES[context[0]], keys(context[1])]
    if name == "namedtuple":
        return namedtuple, _registered(context)
    if name.startswith("registered:"):
        import torch.utils._pytree as pytree

        node = _registered(name.removeprefix("registered:"))
        load = pytree.SUPPORTED_SERIALIZED_TYPES[node].from_dumpable_context
        return node, context if load is None else load(context)
    raise malformed("the type of a container", name)


def _registered(name: str) -> Any:
    import torch.utils._pytree as pytree

    if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE and name.partition(".")[0] in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name.rpartition(".")[0])
    if name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise UsageError(
            f"an input or output of the program is a {name}, which no module has registered as a container",
            hint=f"Import {name.rpartition('.')[0] or name} and register it before loading the file.",
        )
    return pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def write_tree(writer: Writer, tree: Any) -> Any:
    """Encode nested inputs: their structure and their leaves."""
    import torch.utils._pytree as pytree

    leaves, spec = pytree.tree_flatten(tree)
    try:
        return [write_spec(writer, spec), [write_value(writer, leaf) for leaf in leaves]]
    except Unkept as e:
        raise refuse(writer.where, f"an example input of type {e.args[0]}", "Use tensors and plain values.") from None


def read_tree(reader: Reader, encoded: Any) -> Any:
    """Make nested inputs again."""
    import torch.utils._pytree as pytree

    spec, leaves = encoded
    return pytree.tree_unflatten([read_value(reader, leaf) for leaf in leaves], read_spec(reader, spec))
