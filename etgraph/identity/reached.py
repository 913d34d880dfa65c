"""What a function's code reaches: globals, attributes of modules, imports inside; followed, or refused."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from etgraph.errors import Undescribable
from etgraph.identity import origin
from etgraph.identity.description import Description
from etgraph.identity.files import describe_module_files, find_module
from etgraph.identity.instructions import References, references
from etgraph.identity.outside import why_outside

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["UNFOLLOWABLE", "library_leaf", "reached"]

UNFOLLOWABLE = (
    "Set the function's attribute `__etgraph_fingerprint__` to a version of your own (a str that you change "
    "with the code), or write the code without it."
)


def library_leaf(walk: Walk, obj: Any, dotted: str, library: str) -> Description:
    """A library's function or class by name and version, unless it brings something in from outside."""
    why = why_outside(dotted)
    if why:
        walk.refuse(obj, f"{dotted} {why}", hint=UNFOLLOWABLE)
    return Description("library", f"{dotted} @ {library}" if library else dotted, shown=dotted)


def reached(walk: Walk, function: types.FunctionType) -> Iterator[tuple[str, Description]]:
    """Describe everything that a user's function names outside of itself."""
    found = references(function.__code__)
    if found.dynamic:
        walk.refuse(
            function,
            f"its code asks for an attribute whose name is made at run time (getattr), {_at(function)}",
            hint=UNFOLLOWABLE,
        )
    if found.dynamic_self or {"__dict__", "__getattribute__", "_modules"} & set(found.attributes):
        walk.reach.dynamic = True
    walk.reach.names.update(dict.fromkeys(n for n in found.attributes if n != "__init__"))
    for chain in found.chains:
        if chain[0] in ("vars", "attrgetter", "methodcaller") or chain[-1] in ("attrgetter", "methodcaller"):
            walk.reach.dynamic = True
        described = _global(walk, function, chain)
        if described is not None:
            yield f"(global {'.'.join(chain)})", described
    for level, name, names in found.imports:
        yield f"(import {name})", _import(walk, function, level, name, names, found)


def _at(function: types.FunctionType) -> str:
    return f"in {function.__qualname__} ({function.__code__.co_filename}:{function.__code__.co_firstlineno})"


def _global(walk: Walk, function: types.FunctionType, chain: tuple[str, ...]) -> Description | None:
    """Describe what a global name with its attributes stands for; None where it says nothing."""
    name = chain[0]
    step = f"(global {'.'.join(chain)})"
    namespace: Mapping[str, Any] = function.__globals__
    if name in namespace:
        value = namespace[name]
    elif hasattr(builtins, name):
        if name in ("__name__", "__file__", "__build_class__"):
            return None
        value = getattr(builtins, name)
    else:
        return Description("absent", f"{name} is not defined")
    if name in ("__name__", "__file__", "__spec__", "__package__", "__loader__", "__path__"):
        if name in ("__name__", "__package__"):
            return None  # a renamed file is the same code
        walk.refuse(
            function,
            f"its code uses {name}, which depends on where the file is, {_at(function)}",
            hint=UNFOLLOWABLE,
        )
    rest = list(chain[1:])
    while rest and isinstance(value, types.ModuleType):
        attribute = rest.pop(0)
        found, value = _member(value, attribute), value
        if found is _MISSING:
            library = origin.library_of_module(value.__name__)
            return library_leaf(walk, value, f"{value.__name__}.{attribute}", library or "not found")
        value = _checked(walk, function, value, attribute, found)
    while rest and _is_operator_packet(value):
        value = getattr(value, rest.pop(0), value)
    if type(value).__name__ in ("OpOverload", "OpOverloadPacket"):
        _refuse_custom_operator(walk, function, str(value))
    if rest and isinstance(value, type):
        _refuse_outside(walk, function, f"{value.__module__}.{value.__qualname__}.{rest[0]}")
    return walk.visit(value, step)


_MISSING = object()


def _member(module: types.ModuleType, attribute: str) -> Any:
    if attribute in vars(module):
        return vars(module)[attribute]
    submodule = sys.modules.get(f"{module.__name__}.{attribute}")
    if submodule is not None:
        return submodule
    try:  # a module that makes its members when asked, as `torch.ops.aten` does
        return getattr(module, attribute)
    except Exception:
        return _MISSING


def _checked(walk: Walk, function: types.FunctionType, module: types.ModuleType, name: str, found: Any) -> Any:
    """Refuse a member of a library module that brings something in from outside."""
    if not isinstance(found, types.ModuleType) and origin.library_of_module(module.__name__):
        _refuse_outside(walk, function, f"{module.__name__}.{name}")
    return found


def _refuse_outside(walk: Walk, function: types.FunctionType, dotted: str) -> None:
    why = why_outside(dotted)
    if not why:
        return
    try:
        walk.refuse(function, f"its code uses {dotted}, which {why}, {_at(function)}", hint=UNFOLLOWABLE)
    except Undescribable as error:
        error.outside = True
        raise


#: Operators of these are defined by torch and its libraries; their versions tell what they do.
_LIBRARY_OPERATORS = frozenset(
    ("aten", "prim", "prims", "quantized", "quantized_decomposed", "torchao", "torchvision", "dim_order_ops")
)


def _refuse_custom_operator(walk: Walk, function: types.FunctionType, name: str) -> None:
    """An operator that torch takes apart while exporting is code that its name does not tell."""
    if name.split(".")[0] not in _LIBRARY_OPERATORS:
        walk.refuse(
            function,
            f"its code calls the custom operator {name}, whose implementation cannot be seen, {_at(function)}",
            hint=UNFOLLOWABLE,
        )


def _is_operator_packet(value: Any) -> bool:
    return type(value).__name__ in ("OpOverloadPacket", "EdgeOpOverloadPacket")


def _import(
    walk: Walk,
    function: types.FunctionType,
    level: int,
    name: str,
    names: tuple[str, ...],
    found: References,
) -> Description:
    """Describe an import statement inside a function: a library by version, a user's module by its files."""
    package = str(function.__globals__.get("__package__") or "")
    absolute, library, exists = find_module(name, level, package)
    if not exists:
        return Description("absent", f"module {absolute} is not installed")
    if library is None:
        return describe_module_files(walk, absolute, names)
    imported = [f"{absolute}.{n}" for n in names] or [absolute]
    for dotted in [*imported, *(f"{absolute}.{a}" for a in found.attributes)]:
        _refuse_outside(walk, function, dotted)
    return Description("library", f"{', '.join(imported)} @ {library}")
