"""Instances: class and state. The last to be asked; it describes in full or refuses."""

from __future__ import annotations

import collections
import contextvars
import copyreg
import functools
import logging
import random
import re
import sys
import threading
import types
import typing
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.identity import classes, origin
from etgraph.identity.description import Description

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_known", "describe_object"]

_LOCKS = (type(threading.Lock()), type(threading.RLock()))

#: Builtin types that a class can extend, and how to read the part of an instance that they hold.
_BUILTIN_PARTS: dict[type, Any] = {
    collections.OrderedDict: lambda o: collections.OrderedDict.items(o),
    dict: dict.items,
    list: list.__iter__,
    tuple: tuple.__iter__,
    set: set.copy,
    frozenset: frozenset.copy,
    str: str.__str__,
    bytes: bytes,
    bytearray: bytes,
    int: int.__int__,
    float: float.__float__,
    complex: lambda o: complex(o.real, o.imag),
}

_REFUSED: dict[type, str] = {
    types.FrameType: "it is a running frame",
    types.CoroutineType: "it is a running coroutine",
    threading.Thread: "it is a running thread",
    types.CellType: "it is a bare closure cell",
}


def describe_known(walk: Walk, obj: Any) -> Description | None:
    """Describe what Python's own library makes and what has no telling state; None for anything else."""
    if isinstance(obj, logging.Logger):
        return Description("logger", obj.name if origin.library_of_module(obj.name.split(".")[0]) else "a logger")
    if isinstance(obj, _LOCKS):
        return Description("lock", "a lock")
    if isinstance(obj, re.Pattern):
        return Description("pattern", f"re.compile({obj.pattern!r}, {obj.flags})")
    if isinstance(obj, weakref.ref):
        target = obj()
        if target is None:
            return Description("weakref", "to nothing")
        return Description("weakref", "", walk.children(iter((("(target)", target),))))
    if isinstance(obj, contextvars.ContextVar):
        value = walk.visit(obj.get(None), "(value)")
        return Description("contextvar", "", (("(value)", value),))  # torch puts an address into the name
    if isinstance(obj, random.Random) and obj is getattr(random, "_inst", None):
        walk.refuse(obj, "it is the random generator that the whole process shares")
    if isinstance(obj, (types.GenericAlias, types.UnionType)) or type(obj).__module__ == "typing":
        return _typing(walk, obj)
    for cls, why in _REFUSED.items():
        if isinstance(obj, cls):
            walk.refuse(obj, why)
    if type(obj).__module__ == "os" and type(obj).__name__ == "_Environ":
        walk.refuse(obj, "it is the environment of this process", hint="Read what you need into an option.")
    return None


def _typing(walk: Walk, obj: Any) -> Description:
    arguments = typing.get_args(obj)
    if arguments:
        pairs = [("(origin)", typing.get_origin(obj)), *((f"[{i}]", a) for i, a in enumerate(arguments))]
        return Description("type", "generic", walk.children(iter(pairs)))
    return Description("type", repr(obj).partition(" at 0x")[0])


def describe_object(walk: Walk, obj: Any) -> Description:
    """Describe an instance by its class and its state.

    Raises:
        Undescribable: part of its state is hidden in C, or is itself not describable.
    """
    cls = type(obj)
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False) or _is_named_tuple(cls)
    if frozen:
        with walk.inside(obj) as cycle:
            return cycle or _instance(walk, obj, cls)
    return walk.once(obj) or _instance(walk, obj, cls)


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _instance(walk: Walk, obj: Any, cls: type) -> Description:
    children = [("(class)", classes.describe_class(walk, cls, called=False))]
    base = _builtin_base(cls)
    if base is None and _has_hidden_state(cls):
        children += _reduced(walk, obj)
        return Description("object", cls.__qualname__, tuple(children))
    if base is not None:
        children += _builtin_part(walk, obj, base)
    if issubclass(cls, collections.defaultdict):
        children.append((".default_factory", walk.visit(obj.default_factory, ".default_factory")))
    children += walk.children(iter(_state(walk, obj, cls)))
    return Description("object", cls.__qualname__, tuple(children))


def _state(walk: Walk, obj: Any, cls: type) -> list[tuple[str, Any]]:
    """Attributes by name, from `__dict__` and slots; what a cached_property has filled in is not state."""
    found: dict[str, Any] = {}
    for name, value in list(getattr(obj, "__dict__", {}).items()):
        if name in ("__module__", "__doc__", "__annotations__"):  # functools.wraps puts them into instances too
            continue
        if not isinstance(getattr(cls, name, None) if isinstance(name, str) else None, functools.cached_property):
            found[str(name)] = value
    for base in cls.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{base.__name__.lstrip('_')}{name}" if _is_private(name) else name
            if name not in ("__dict__", "__weakref__") and hasattr(obj, mangled):
                found[mangled] = getattr(obj, mangled)
    return [(f".{name}", value) for name, value in sorted(found.items())]


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _builtin_base(cls: type) -> type | None:
    return next((base for base in cls.__mro__ if base in _BUILTIN_PARTS), None)


def _builtin_part(walk: Walk, obj: Any, base: type) -> Iterator[tuple[str, Description]]:
    content = _BUILTIN_PARTS[base](obj)
    if issubclass(base, dict):
        from etgraph.identity.plain import mapping_children

        yield from mapping_children(walk, dict(content))
    elif base in (list, tuple):
        names = getattr(type(obj), "_fields", ()) if base is tuple else ()
        for i, item in enumerate(content):
            step = f".{names[i]}" if i < len(names) else f"[{i}]"
            yield step, walk.visit(item, step)
    else:
        yield "[:]", walk.visit(content, "[:]")


def _has_hidden_state(cls: type) -> bool:
    """Whether an instance is larger than `__dict__`, slots and weak references explain: state in C."""
    while cls is not object and cls not in _BUILTIN_PARTS:
        base = cls.__base__ or object
        slots = vars(cls).get("__slots__", ())
        names = [slots] if isinstance(slots, str) else list(slots)
        explained = sum(n not in ("__dict__", "__weakref__") for n in names)
        explained += cls.__dictoffset__ > 0 and base.__dictoffset__ == 0
        explained += cls.__weakrefoffset__ > 0 and base.__weakrefoffset__ == 0
        pointer = 8 if sys.maxsize > 2**32 else 4
        if cls.__basicsize__ - base.__basicsize__ > explained * pointer or cls.__itemsize__ > base.__itemsize__:
            return True
        cls = base
    return False


def _reduced(walk: Walk, obj: Any) -> Iterator[tuple[str, Description]]:
    """State that is hidden in C, by what the object itself gives to be copied."""
    reducer = copyreg.dispatch_table.get(type(obj))
    try:
        said = reducer(obj) if reducer else obj.__reduce_ex__(4)
    except Exception as error:
        walk.refuse(obj, f"its state is hidden in C and it gives no copy of it ({type(error).__name__}: {error})")
    if isinstance(said, str):
        yield "(name)", Description("str", said)
        return
    names = ("(made by)", "(arguments)", "(state)", "[]", "(pairs)")
    for step, value in zip(names, said, strict=False):
        if value is None:
            continue
        if step in ("[]", "(pairs)"):
            value = list(value)
        yield step, walk.visit(value, step)
