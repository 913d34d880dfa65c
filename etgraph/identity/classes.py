"""Classes as content: a library's by name and version, a user's by bases and members."""

from __future__ import annotations

import enum
import functools
import re
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.errors import Undescribable
from etgraph.identity import origin
from etgraph.identity.description import Description
from etgraph.identity.reached import library_leaf

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_class"]

#: Class attributes that Python and its library keep for themselves; what they hold shows in other members.
_BOOKKEEPING = frozenset(
    {
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__match_args__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__protocol_attrs__",
        "__qualname__",
        "__slotnames__",
        "__static_attributes__",
        "__subclasshook__",
        "__weakref__",
        "_abc_impl",
    }
)
_ENUM_BOOKKEEPING = re.compile(r"_[a-z0-9_]+_$|_value2member_map_$")


def describe_class(walk: Walk, cls: type, *, called: bool) -> Description:
    """Describe a class.

    Args:
        walk: the description in the making.
        cls: the class.
        called: whether it may be called, or is only what an instance is made of; decides if `__init__`
        matters.
    """
    library = origin.library_of_class(cls)
    if called:
        walk.reach.called.update(dict.fromkeys(id(c) for c in cls.__mro__))
    if library is not None:
        name = f"{cls.__module__}.{cls.__qualname__}"
        leaf = library_leaf(walk, cls, name, library) if called else _leaf(name, library)
        patched = tuple(_patched(walk, cls))
        return Description(leaf.kind, leaf.own, patched, shown=leaf.shown) if patched else leaf
    same = walk.once(cls)
    if same is not None:
        return same
    children: list[tuple[str, Description]] = []
    if type(cls) is not type:
        children.append(("(metaclass)", describe_class(walk, type(cls), called=False)))
    for i, base in enumerate(cls.__bases__):
        if base is not object:
            children.append((f"(base {i})", describe_class(walk, base, called=False)))
    children += _members(walk, cls)
    return Description("class", cls.__qualname__, tuple(children))


def _leaf(name: str, library: str) -> Description:
    return Description("library", f"{name} @ {library}", shown=name)


def _patched(walk: Walk, cls: type) -> Iterator[tuple[str, Description]]:
    """Functions of a user that were put into a library's class: its version does not tell of them."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if (
                isinstance(function, types.FunctionType)
                and not function.__code__.co_filename.startswith("<")
                and origin.library_of_code(function.__code__, function.__globals__) is None
                and origin.library_of_class(base) is not None
            ):
                step = f"(patched {base.__qualname__}.{name})"
                yield step, walk.visit(function, step)


def _members(walk: Walk, cls: type) -> Iterator[tuple[str, Description]]:
    is_enum = issubclass(cls, enum.Enum)
    for name, value in sorted(vars(cls).items()):
        if name in _BOOKKEEPING or isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            continue
        if is_enum and _ENUM_BOOKKEEPING.match(name):
            continue
        step = f".{name}"
        if not _may_stay_unfollowed(cls, name, value):
            yield step, walk.visit(value, step)
            continue
        try:
            with walk.attempt():
                described = walk.visit(value, step)
        except Undescribable as why:
            described = _unfollowed(walk, cls, name, value, why)
        yield step, described


def _unfollowed(walk: Walk, cls: type, name: str, value: Any, why: Undescribable) -> Description:
    from etgraph.identity.code import own_code

    walk.reach.leave_out(name, (id(cls),), why)
    functions = [f for f in _functions_of(value) if isinstance(f, types.FunctionType)]
    return Description("unfollowed", name, tuple((f"(code {i})", own_code(f)) for i, f in enumerate(functions)))


def _functions_of(value: Any) -> tuple[Any, ...]:
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    return (getattr(value, "__func__", value),)


def _may_stay_unfollowed(cls: type, name: str, value: Any) -> bool:
    """Whether only code that names the member can reach it.

    `__init__` has run when there is an instance. The methods of an nn.Module are called by name, except those
    that torch itself knows: `forward`, the special methods, and overrides of a library's methods.
    """
    if not isinstance(_functions_of(value)[0], types.FunctionType):
        return False
    if name == "__init__":
        return True
    if name == "forward" or (name.startswith("__") and name.endswith("__")) or not _is_torch_module(cls):
        return False
    return not any(name in vars(base) for base in cls.__mro__ if origin.library_of_class(base) is not None)


def _is_torch_module(cls: type) -> bool:
    return any(base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module" for base in cls.__mro__)
