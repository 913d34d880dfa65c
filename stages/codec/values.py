"""Values: a closed set of plain types as tagged JSON.

None, bool, int, finite float, str and list stand for themselves. Everything else is an object with one key, its tag.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse

__all__ = ["Unkept", "read_value", "write_value"]


class Unkept(Exception):
    """A value of a type that is not in the closed set; `args[0]` names the type."""


def write_value(writer: Writer, value: Any) -> Any:
    """Encode a value.

    Raises:
        Unkept: a type outside of the closed set.
        UsageError: a value that is of a known type and still cannot be kept, for instance a sparse tensor.
    """
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(writer, value)
    return _write_other(writer, value)


def _write_other(writer: Writer, value: Any) -> Any:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.fx.immutable_collections import immutable_dict, immutable_list
    from torch.fx.passes.shape_prop import TensorMetadata

    from stages.codec import tensors
    from stages.codec.operators import write_target
    from stages.codec.symbols import write_symbolic

    if isinstance(value, FakeTensor):
        return tensors.write_fake(writer, value)
    if isinstance(value, torch.Tensor):
        return {"tensor": tensors.write_tensor(writer, value)}
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return write_symbolic(writer, value)
    if isinstance(value, torch.fx.Node):
        if value not in writer.nodes:
            raise Unkept("a node of another graph")
        return {"n": writer.nodes[value]}
    if isinstance(value, torch.Size):
        return {"size": [write_value(writer, v) for v in value]}
    if type(value) is immutable_list:
        return {"il": [write_value(writer, v) for v in value]}
    if type(value) is immutable_dict:
        return {"id": [[write_value(writer, k), write_value(writer, v)] for k, v in value.items()]}
    if isinstance(value, torch.dtype):
        return {"dtype": tensors.write_dtype(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, (torch.layout, torch.memory_format, torch.qscheme)):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    if type(value) is TensorMetadata:
        return {"meta": [write_value(writer, v) for v in value]}
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)):
        return {"op": write_target(writer, value)}
    return _write_rare(writer, value)


def _write_rare(writer: Writer, value: Any) -> Any:
    import sympy
    import torch
    import torch.utils._pytree as pytree
    from torch.utils._sympy.value_ranges import ValueRanges

    from stages.codec.operators import function_name, write_target
    from stages.codec.symbols import write_expression

    if type(value).__module__ in (
        "executorch.exir.dialects.edge._ops",
        "executorch.exir.dialects.backend._ops",
    ):
        return {"op": write_target(writer, value)}
    if isinstance(value, torch.ScriptObject) or type(value).__name__ == "FakeScriptObject":
        raise refuse(
            writer.where,
            f"an object of the TorchScript class {getattr(value, '_type', lambda: type(value))()}",
            "Replace it by tensors and plain values before export.",
        )
    if isinstance(value, pytree.TreeSpec):
        from stages.codec.specs import write_spec

        return {"spec": write_spec(writer, value)}
    if isinstance(value, sympy.Symbol):
        return {"symbol": _write_symbol(writer, value)}
    if isinstance(value, ValueRanges):
        bounds = (value.lower, value.upper)
        if any(bound.free_symbols for bound in bounds):
            raise Unkept("a range with symbols")
        return {"range": [write_expression(writer, 0, bound) for bound in bounds]}
    if type(value).__name__ in _KEYS:
        return {"key": [type(value).__name__, *(write_value(writer, v) for v in _key_fields(value))]}
    if type(value).__name__ == "ArmAnnotationInfo" and isinstance(value, dict):
        # What Arm's quantizers note at nodes; it is read by its entries, and upstream writes it as a dict as well.
        return _write_pairs(writer, value)
    name = function_name(value) if callable(value) else None
    if name is not None:
        return {"op": f"py:{name}"}
    if isinstance(value, type) or callable(value):
        return {"name": _public_name(value)}
    raise Unkept(f"{type(value).__module__}.{type(value).__qualname__}")


#: How the value of an unbacked symbol is reached from an output: pytree keys and torch.fx's own.
_KEYS = {
    "SequenceKey": "torch.utils._pytree",
    "MappingKey": "torch.utils._pytree",
    "GetAttrKey": "torch.utils._pytree",
    "CallMethodKey": "torch.fx.experimental.symbolic_shapes",
    "DivideByKey": "torch.fx.experimental.symbolic_shapes",
    "ConvertIntKey": "torch.fx.experimental.symbolic_shapes",
    "InnerTensorKey": "torch.fx.experimental.symbolic_shapes",
}


def _key_fields(key: Any) -> list[Any]:
    return [getattr(key, f.name) for f in dataclasses.fields(key)]


def _read_key(reader: Reader, body: list[Any]) -> Any:
    if body[0] not in _KEYS:
        raise malformed("a key", body)
    return getattr(importlib.import_module(_KEYS[body[0]]), body[0])(*_many(reader, body[1:]))


def _write_symbol(writer: Writer, symbol: Any) -> list[Any]:
    """Encode a symbol that stands alone, in the environment that knows it."""
    from stages.codec.symbols import write_expression

    for position, env in enumerate(writer.environments):
        if symbol in env.var_to_range or symbol in env.replacements or symbol in env.unbacked_renamings:
            return [position, write_expression(writer, position, symbol)]
    raise Unkept("a symbol of no ShapeEnv")


def _read_range(_: Reader, body: list[Any]) -> Any:
    from torch.utils._sympy.value_ranges import ValueRanges

    from stages.codec.symbols import read_expression

    return ValueRanges(*(read_expression({}, bound) for bound in body))


def _read_symbol(reader: Reader, body: list[Any]) -> Any:
    from stages.codec.symbols import read_environment

    symbols = read_environment(reader, body[0]).etgraph_symbols
    if body[1] not in symbols:
        raise malformed("the name of a symbol of the program", body)
    return symbols[body[1]]


def _public_name(value: Any) -> str:
    """Name a class or function of torch that metadata mentions, for instance `torch.nn.modules.linear.Linear`."""
    own = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    for name in (own, f"torch.{getattr(value, '__name__', '')}"):
        if name.startswith("torch.") and _find_public(name) is value:
            return name
    raise Unkept(own.strip(".") or type(value).__qualname__)


def _find_public(name: str) -> Any:
    import torch

    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _write_float(_: Writer, value: float) -> Any:
    return value if math.isfinite(value) else {"float": repr(value)}


def _write_pairs(writer: Writer, value: Any) -> Any:
    pairs = [[write_value(writer, k), write_value(writer, v)] for k, v in value.items()]
    return {"od" if type(value) is OrderedDict else "d": pairs}


def _write_sorted(writer: Writer, value: Any) -> Any:
    items = sorted((write_value(writer, v) for v in value), key=str)
    return {type(value).__name__: items}


def _write_bytes(writer: Writer, value: bytes) -> Any:
    if len(value) <= 64:
        return {"hex": value.hex()}
    return {"bytes": write_blob(writer, value)}


def write_blob(writer: Writer, value: Any) -> str:
    """Keep bytes as a blob and give their digest."""
    from etgraph.blobs import digest_of

    digest = digest_of(value)
    writer.blobs.setdefault(digest, value)
    return digest


def _itself(_: Writer, value: Any) -> Any:
    return value


_WRITERS: dict[type, Callable[[Writer, Any], Any]] = {
    type(None): _itself,
    bool: _itself,
    int: _itself,
    str: _itself,
    float: _write_float,
    list: lambda w, v: [write_value(w, x) for x in v],
    tuple: lambda w, v: {"t": [write_value(w, x) for x in v]},
    dict: _write_pairs,
    OrderedDict: _write_pairs,
    set: _write_sorted,
    frozenset: _write_sorted,
    complex: lambda _, v: {"complex": [repr(v.real), repr(v.imag)]},
    slice: lambda w, v: {"slice": [write_value(w, x) for x in (v.start, v.stop, v.step)]},
    type(Ellipsis): lambda _, v: {"ellipsis": 0},
    bytes: _write_bytes,
}


def read_value(reader: Reader, encoded: Any) -> Any:
    """Make a value again.

    Raises:
        ArtifactFileError: a tag that is not known.
    """
    if isinstance(encoded, list):
        return [read_value(reader, v) for v in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if len(encoded) != 1:
        raise malformed("a value with one tag", encoded)
    ((tag, body),) = encoded.items()
    if tag not in _READERS:
        raise malformed("a value with a known tag", encoded)
    return _READERS[tag](reader, body)


def _many(reader: Reader, body: list[Any]) -> list[Any]:
    return [read_value(reader, v) for v in body]


def _pairs(reader: Reader, body: list[Any]) -> dict[Any, Any]:
    return {read_value(reader, k): read_value(reader, v) for k, v in body}


def _read_tensor(reader: Reader, body: int) -> Any:
    from stages.codec.tensors import read_tensor

    return read_tensor(reader, body)


def _read_fake(reader: Reader, body: Any) -> Any:
    from stages.codec.tensors import read_fake

    return read_fake(reader, body)


def _read_symbolic(reader: Reader, body: Any) -> Any:
    from stages.codec.symbols import read_symbolic

    return read_symbolic(reader, body)


def _read_op(reader: Reader, body: str) -> Any:
    from stages.codec.operators import read_target

    return read_target(reader, body)


def _read_spec(reader: Reader, body: Any) -> Any:
    from stages.codec.specs import read_spec

    return read_spec(reader, body)


def _read_torch_constant(kind: str) -> Callable[[Reader, str], Any]:
    def read(_: Reader, body: str) -> Any:
        import torch

        found = getattr(torch, body, None)
        if not isinstance(found, getattr(torch, kind)):
            raise malformed(f"a torch.{kind}", body)
        return found

    return read


def _read_device(_: Reader, body: str) -> Any:
    import torch

    return torch.device(body)


def _read_size(reader: Reader, body: list[Any]) -> Any:
    import torch

    return torch.Size(_many(reader, body))


def _read_immutable_list(reader: Reader, body: list[Any]) -> Any:
    from torch.fx.immutable_collections import immutable_list

    return immutable_list(_many(reader, body))


def _read_immutable_dict(reader: Reader, body: list[Any]) -> Any:
    from torch.fx.immutable_collections import immutable_dict

    return immutable_dict(_pairs(reader, body))


def _read_tensor_metadata(reader: Reader, body: list[Any]) -> Any:
    from torch.fx.passes.shape_prop import TensorMetadata

    return TensorMetadata(*_many(reader, body))


def _read_name(_: Reader, body: str) -> Any:
    found = _find_public(body)
    if not callable(found):
        raise malformed("the name of a class or function of torch", body)
    return found


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "t": lambda r, b: tuple(_many(r, b)),
    "d": _pairs,
    "od": lambda r, b: OrderedDict(_pairs(r, b)),
    "il": _read_immutable_list,
    "id": _read_immutable_dict,
    "set": lambda r, b: set(_many(r, b)),
    "frozenset": lambda r, b: frozenset(_many(r, b)),
    "n": lambda r, b: r.nodes[b],
    "float": lambda _, b: float(b),
    "complex": lambda _, b: complex(float(b[0]), float(b[1])),
    "slice": lambda r, b: slice(*_many(r, b)),
    "ellipsis": lambda *_: Ellipsis,
    "hex": lambda _, b: bytes.fromhex(b),
    "bytes": lambda r, b: r.blobs.copy(b),
    "tensor": _read_tensor,
    "fake": _read_fake,
    "sym": _read_symbolic,
    "size": _read_size,
    "meta": _read_tensor_metadata,
    "dtype": _read_torch_constant("dtype"),
    "layout": _read_torch_constant("layout"),
    "memory_format": _read_torch_constant("memory_format"),
    "qscheme": _read_torch_constant("qscheme"),
    "device": _read_device,
    "op": _read_op,
    "spec": _read_spec,
    "symbol": _read_symbol,
    "range": _read_range,
    "key": _read_key,
    "name": _read_name,
}
