"""Plain values: by exact type and value, so that 1, 1.0 and True are three things."""

from __future__ import annotations

import enum
import math
import pathlib
import types
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from etgraph.hashing import hasher
from etgraph.identity import origin
from etgraph.identity.description import Description

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_alone", "describe_plain", "file_digest"]

_LONG = 4096


def describe_plain(walk: Walk, obj: Any) -> Description | None:
    """Describe builtin scalars and containers, enum members and paths; None for anything else."""
    cls = type(obj)
    scalar = _SCALARS.get(cls)
    if scalar is not None:
        return Description(cls.__name__, scalar(obj))
    if cls in (bytes, bytearray):
        if len(obj) <= 64:
            return Description(cls.__name__, repr(obj))
        return Description(cls.__name__, f"{cls.__name__} of {len(obj)} bytes #{blake3(obj).hexdigest()}")
    if cls in (list, tuple, set, frozenset, dict, slice, range, types.MappingProxyType):
        with walk.inside(obj) as cycle:
            return cycle or _container(walk, obj, cls)
    if isinstance(obj, enum.Enum):
        return _enum_member(walk, obj)
    if isinstance(obj, pathlib.PurePath):
        return _path(walk, obj)
    return None


def _string(value: str) -> str:
    if len(value) <= _LONG:
        return repr(value)
    exact = blake3(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"string of {len(value)} characters #{exact}: {value[:40]!r}…"


def _float(value: float) -> str:
    if math.isnan(value):
        import struct

        return f"nan:{struct.pack('>d', value).hex()}"
    return repr(value)


def _complex(value: complex) -> str:
    return f"complex({_float(value.real)}, {_float(value.imag)})"


_SCALARS: dict[type, Any] = {
    type(None): repr,
    bool: repr,
    int: repr,
    float: _float,
    complex: _complex,
    str: _string,
    type(...): repr,
    type(NotImplemented): repr,
}


def _container(walk: Walk, obj: Any, cls: type) -> Description:
    if cls in (list, tuple):
        pairs = ((f"[{i}]", item) for i, item in enumerate(obj))
        empty = "[]" if cls is list else "()"
        return Description(cls.__name__, "" if obj else empty, walk.children(pairs))
    if cls in (set, frozenset):
        items = sorted((describe_alone(walk, item) for item in obj), key=lambda d: d.digest)
        children = tuple((f"{{{item.text}}}", item) for item in items)
        return Description(cls.__name__, "" if obj else f"{cls.__name__}()", children)
    if cls is slice:
        pairs = ((f".{n}", getattr(obj, n)) for n in ("start", "stop", "step"))
        return Description("slice", "", walk.children(pairs))
    if cls is range:
        return Description("range", repr(obj))
    return Description("dict", "" if obj else "{}", mapping_children(walk, obj))


def mapping_children(walk: Walk, mapping: Any) -> tuple[tuple[str, Description], ...]:
    """Describe the pairs of a mapping, sorted by key, and the order of the keys as a part of its own.

    Order enters: a mapping of passes runs in its order. It is a separate part, so that a new key and a new
    order read as what they are.
    """
    keys = [(describe_alone(walk, key), value) for key, value in mapping.items()]
    children: list[tuple[str, Description]] = []
    if len(keys) > 1:
        order = ", ".join(key.text for key, _ in keys)
        exact = blake3("".join(key.digest for key, _ in keys).encode()).hexdigest()
        children.append(("(order)", Description("order", exact, shown=order)))
    for key, value in sorted(keys, key=lambda pair: (pair[0].text, pair[0].digest)):
        evident = not key.children and not key.shown and len(key.own) < 160
        step = f"[{key.text}]" if evident else f"[{key.text} #{key.digest}]"
        children.append((step, walk.visit(value, step)))
    return tuple(children)


def describe_alone(walk: Walk, obj: Any) -> Description:
    """Describe a set element or a mapping key by itself: what was met before must not enter."""
    from etgraph.identity.describe import Walk

    alone = Walk("".join(walk.path) + " key ")
    alone.open = dict(walk.open)
    found = alone.visit(obj)
    alone.reach.check()
    return found


def _enum_member(walk: Walk, obj: enum.Enum) -> Description:
    cls = type(obj)
    name = obj.name if isinstance(obj.name, str) else repr(obj.value)
    children = [("(class)", walk.visit(cls, "(class)"))]
    if type(obj.value) in _SCALARS or origin.library_of_class(cls) is None:
        children.insert(0, ("(value)", walk.visit(obj.value, "(value)")))
    return Description("enum", f"{cls.__qualname__}.{name}", tuple(children))


def _path(walk: Walk, obj: pathlib.PurePath) -> Description:
    """A path is its text, and the content of the file that it names where it names one."""
    own = f"{type(obj).__name__}({str(obj)!r})"
    if not isinstance(obj, pathlib.Path):
        return Description("path", own)
    if obj.is_dir():
        walk.refuse(
            obj,
            f"{str(obj)!r} is a directory, and whether its files matter is not known",
            hint="Give the name as a str if only the name matters, or a list of the files as Path.",
        )
    if obj.is_file():
        try:
            content = file_digest(obj)
        except OSError as error:
            walk.refuse(obj, f"the file cannot be read: {error}", hint="Make it readable, or give its name as a str.")
        return Description("path", f"{own} file #{content}")
    return Description("path", f"{own} absent")


def file_digest(path: pathlib.Path) -> str:
    """Return the blake3 of a file's bytes, read through a memory map."""
    return str(hasher().update_mmap(path).hexdigest())
