"""Observers and fake-quantize modules of a prepared graph: class by name, attributes, buffers and children.

A class is found by name in a closed list of modules of torchao and torch.ao; nothing is constructed by calling it, so
nothing of the file reaches a constructor.
"""

from __future__ import annotations

import importlib
from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse
from stages.codec.values import Unkept, read_value, write_value

__all__ = ["PREPARED", "is_known", "read_observer", "read_prepared", "write_observer", "write_prepared"]

#: Where prepare_pt2e leaves what convert_pt2e looks for, in the metadata of the graph module.
PREPARED = "_observed_graph_module_attrs"

_MODULES = frozenset(
    {
        "torchao.quantization.pt2e.observer",
        "torchao.quantization.pt2e.fake_quantize",
        "torchao.quantization.pt2e.learnable_fake_quantize",
        "torch.ao.quantization.observer",
        "torch.ao.quantization.fake_quantize",
    }
)
#: What `torch.nn.Module.__init__` makes, and each instance has of its own.
_MODULE_STATE = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training"})


def is_known(module: Any) -> bool:
    """Tell whether a module is an observer or fake-quantize module of the closed list."""
    return type(module).__module__ in _MODULES


def write_observer(writer: Writer, module: Any) -> dict[str, Any]:
    """Encode an observer with all that it has observed.

    Raises:
        UsageError: an attribute of a type that cannot be kept; names it.
    """
    import torch

    from stages.codec.graphs import write_owned

    plain = torch.nn.Module().__dict__
    attributes = []
    for name, value in module.__dict__.items():
        if name in _MODULE_STATE or (name in plain and not value):
            continue
        if name in plain and value == plain[name]:
            continue
        try:
            attributes.append([name, write_value(writer, value)])
        except Unkept as e:
            raise refuse(
                writer.where,
                f"attribute {name!r} of the observer {type(module).__qualname__}, of type {e.args[0]},",
                "Use an observer of torchao with plain settings.",
            ) from None
    return {
        "class": [type(module).__module__, type(module).__qualname__],
        "attributes": attributes,
        "owned": write_owned(writer, module),
        "training": bool(module.training),
    }


def read_observer(reader: Reader, encoded: dict[str, Any]) -> Any:
    """Make an observer again, as it was."""
    import torch

    from stages.codec.graphs import check_path, read_owned

    module_name, name = encoded["class"]
    if module_name not in _MODULES or not name.isidentifier():
        raise malformed("the class of an observer", encoded["class"])
    cls = getattr(importlib.import_module(module_name), name, None)
    if not isinstance(cls, type) or not issubclass(cls, torch.nn.Module) or cls.__module__ != module_name:
        raise malformed("the class of an observer", encoded["class"])
    module = cls.__new__(cls)
    torch.nn.Module.__init__(module)
    for attribute, value in encoded["attributes"]:
        check_path(attribute)
        module.__dict__[attribute] = read_value(reader, value)
    read_owned(reader, module, encoded["owned"])
    for buffer, held in module.named_buffers(recurse=False):
        # An observer resizes its buffers as it sees values, and memory that lies in a file cannot be resized.
        setattr(module, buffer, held.clone())
    module.training = encoded["training"]
    return module


def write_prepared(writer: Writer, attrs: Any) -> dict[str, Any]:
    """Encode what `prepare_pt2e` leaves for `convert_pt2e`.

    Raises:
        UsageError: settings of the older FX mode, which no PT2E preparation makes.
    """
    from torch.ao.quantization.qconfig_mapping import QConfigMapping

    older = (
        attrs.node_name_to_qconfig
        or attrs.equalization_node_name_to_qconfig
        or attrs.prepare_custom_config.to_dict()
        or attrs.qconfig_mapping.to_dict() != QConfigMapping().to_dict()
        or attrs.is_observed_standalone_module
    )
    if older:
        raise refuse(writer.where, "a graph prepared in FX graph mode", "Prepare it with prepare_pt2e.")
    scopes = [
        [name, path, kind if isinstance(kind, str) else None] for name, (path, kind) in attrs.node_name_to_scope.items()
    ]
    return {
        "scopes": scopes,
        "qat": bool(attrs.is_qat),
        "observed": sorted(attrs.observed_node_names),
    }


def read_prepared(encoded: dict[str, Any]) -> Any:
    """Make what `convert_pt2e` looks for."""
    from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
    from torch.ao.quantization.fx.utils import ObservedGraphModuleAttrs
    from torch.ao.quantization.qconfig_mapping import QConfigMapping

    return ObservedGraphModuleAttrs(
        node_name_to_qconfig={},
        node_name_to_scope={
            name: (path, type(None) if kind is None else kind) for name, path, kind in encoded["scopes"]
        },
        prepare_custom_config=PrepareCustomConfig(),
        equalization_node_name_to_qconfig={},
        qconfig_mapping=QConfigMapping(),
        is_qat=encoded["qat"],
        observed_node_names=set(encoded["observed"]),
    )
