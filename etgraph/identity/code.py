"""Functions as content: their own code, and whatever that code reaches.

A library function is its name and the version of its distribution, with the values that it closes over. A
user's function is its compiled code with defaults, closure, and every global that it names, followed to the
end. What cannot be followed with certainty is refused.
"""

from __future__ import annotations

import functools
import random
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etgraph.identity import classes, origin
from etgraph.identity.description import Description
from etgraph.identity.files import describe_module_files
from etgraph.identity.instructions import code_digest
from etgraph.identity.reached import UNFOLLOWABLE, library_leaf, reached

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["code_of", "describe_code_like", "describe_function", "public_name"]

_WRAPPER_DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def code_of(obj: Any, name: str = "") -> Description:
    """Describe the code of a function or class with every helper that it reaches.

    Raises:
        Undescribable: the code reaches something by a name that is made at run time, or reads from outside.
    """
    from etgraph.identity.describe import describe

    return describe(obj, name or public_name(obj))


def public_name(obj: Any) -> str:
    """`module.qualname` for a library's function or class, `qualname` for a user's: files may be renamed."""
    qualname = str(getattr(obj, "__qualname__", type(obj).__qualname__))
    module = getattr(obj, "__module__", None)
    if isinstance(obj, types.FunctionType):
        library = origin.library_of_code(obj.__code__, obj.__globals__)
    else:
        library = origin.library_of_module(module) if isinstance(module, str) else None
    return f"{module}.{qualname}" if library and module else qualname


def describe_code_like(walk: Walk, obj: Any) -> Description | None:
    """Describe functions, methods, classes, properties, partials and modules; None for anything else."""
    if isinstance(obj, types.FunctionType):
        return describe_function(walk, obj)
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return classes.describe_class(walk, obj, called=True)
    if isinstance(obj, types.ModuleType):
        return _module(walk, obj)
    if isinstance(obj, types.MethodType):
        walk.reach.names[obj.__func__.__name__ if hasattr(obj.__func__, "__name__") else "__call__"] = None
        pairs = iter((("(self)", obj.__self__), ("(function)", obj.__func__)))
        return Description("method", getattr(obj, "__name__", ""), walk.children(pairs))
    if isinstance(obj, types.BuiltinFunctionType):
        return _builtin(walk, obj)
    if isinstance(obj, _WRAPPER_DESCRIPTORS):
        owner = obj.__objclass__
        return Description("builtin", f"{owner.__module__}.{obj.__qualname__}")
    if isinstance(obj, types.MethodWrapperType):
        return Description("method", obj.__name__, walk.children(iter((("(self)", obj.__self__),))))
    return _wrapper(walk, obj)


def _wrapper(walk: Walk, obj: Any) -> Description | None:
    """Things that hold functions: partial, property, staticmethod, cached functions."""
    pairs: list[tuple[str, Any]]
    if type(obj) in (functools.partial, functools.partialmethod):
        pairs = [("(function)", obj.func), *((f"[{i}]", a) for i, a in enumerate(obj.args))]
        pairs += [(f".{k}", v) for k, v in sorted(obj.keywords.items())]
    elif type(obj) is property:
        pairs = [(f"(f{n})", getattr(obj, f"f{n}")) for n in ("get", "set", "del")]
    elif type(obj) in (staticmethod, classmethod):
        pairs = [("(function)", obj.__func__)]
    elif type(obj) is functools.cached_property:
        pairs = [("(function)", obj.func)]
    elif type(obj) is functools._lru_cache_wrapper:
        pairs = [("(function)", obj.__wrapped__)]
    else:
        return None
    return Description("object", type(obj).__name__, walk.children(iter(pairs)))


def _module(walk: Walk, module: types.ModuleType) -> Description:
    name = module.__name__
    library = origin.library_of_module(name)
    if library is None and type(module) is not types.ModuleType:
        library = origin.library_of_class(type(module))  # namespaces of operators are such modules
    if library is not None:
        return Description("module", f"{name} @ {library}")
    return describe_module_files(walk, name)


def _builtin(walk: Walk, obj: types.BuiltinFunctionType) -> Description:
    owner = obj.__self__
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        if owner is getattr(random, "_inst", None) or type(owner).__module__.startswith("numpy.random"):
            walk.refuse(obj, "it draws random numbers from a shared generator", hint=UNFOLLOWABLE)
        return Description("method", obj.__name__, walk.children(iter((("(self)", owner),))))
    module = obj.__module__ or getattr(owner, "__module__", None) or "builtins"
    return library_leaf(walk, obj, f"{module}.{obj.__qualname__}", origin.library_of_module(module) or "")


def describe_function(walk: Walk, function: types.FunctionType) -> Description:
    """Describe a Python function; a library's by version, a user's by code and all that it reaches."""
    same = walk.once(function)
    if same is not None:
        return same
    library = origin.library_of_code(function.__code__, function.__globals__)
    pairs: list[tuple[str, Any]] = []
    children: list[tuple[str, Description]] = []
    if library is None:
        pairs += [(f"(default {i})", d) for i, d in enumerate(function.__defaults__ or ())]
        pairs += [(f"(default {k})", d) for k, d in sorted((function.__kwdefaults__ or {}).items())]
        pairs += _attributes(function)
        children.append(("(code)", own_code(function)))
        children += walk.children(iter(pairs))
        children += _closure(walk, function)
        children += reached(walk, function)
        return Description("function", function.__qualname__, tuple(children))
    qualname = getattr(function.__code__, "co_qualname", function.__code__.co_name)
    leaf = library_leaf(walk, function, f"{function.__globals__.get('__name__')}.{qualname}", library)
    if not function.__closure__ and "<" not in qualname and qualname == function.__qualname__:
        return leaf
    children.append(("(code)", own_code(function)))
    pairs += [(f"(default {i})", d) for i, d in enumerate(function.__defaults__ or ())]
    children += walk.children(iter(pairs))
    children += _closure(walk, function)
    return Description("library", leaf.own, tuple(children), shown=leaf.shown)


def own_code(function: types.FunctionType) -> Description:
    """A function's own compiled code, with its annotations, and without what it reaches."""
    notes = ", ".join(f"{k}: {_annotation(v)}" for k, v in sorted(function.__annotations__.items()))
    return Description("code", f"{code_digest(function.__code__)} {notes}", shown="code")


def _annotation(value: Any) -> str:
    """Annotations are text or types; the name of a user's type stands without its module."""
    if isinstance(value, str):
        return value
    if isinstance(value, type) and not isinstance(value, types.GenericAlias):
        return value.__qualname__
    return repr(value).partition(" at 0x")[0]


def _attributes(function: types.FunctionType) -> list[tuple[str, Any]]:
    return [(f".{k}", v) for k, v in sorted(vars(function).items()) if k != "__wrapped__"]


def _closure(walk: Walk, function: types.FunctionType) -> Iterator[tuple[str, Description]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        step = f"(closure {name})"
        try:
            value = cell.cell_contents
        except ValueError:
            yield step, Description("empty", "not set yet")
            continue
        if name == "__class__" and isinstance(value, type):  # how `super()` works: nothing is called by it
            yield step, classes.describe_class(walk, value, called=False)
        else:
            yield step, walk.visit(value, step)
