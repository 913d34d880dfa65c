"""The walk over a value: one visit per object, with sharing and cycles told by path.

Plain containers and frozen values are described by value wherever they appear. Every other object is
described at its first visit; a later visit says "same as PATH", so that two references to one object differ
from two equal copies, and a cycle ends.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from etgraph.errors import Undescribable
from etgraph.identity import code, data, objects, plain, tensors
from etgraph.identity.description import Description
from etgraph.identity.reach import Reach

__all__ = ["Walk", "describe", "describe_module", "describe_modules", "register_describer"]

DECLARE = (
    "Give its class a method __etgraph_fingerprint__(self) that returns plain data which says what it is, or "
    "call etgraph.identity.register_describer(cls, function) for a class that you do not own."
)

Handler = Callable[["Walk", Any], "Description | None"]

#: Asked in this order; the first that answers wins. The last one answers or refuses.
_HANDLERS: tuple[Handler, ...] = (
    plain.describe_plain,
    tensors.describe_torch_value,
    data.describe_data,
    code.describe_code_like,
    objects.describe_known,
    objects.describe_object,
)

_REGISTERED: dict[str, Callable[[Any], Any]] = {}


def register_describer(cls: type | str, function: Callable[[Any], Any]) -> None:
    """Say how to describe the instances of a class, and of its subclasses, that you do not own.

    Args:
        cls: the class, or its "module.qualname" where importing it would be heavy.
        function: takes an instance and returns plain describable data that says all that can change a result.
        Put
            a version number into it, for the code of the class does not enter any more.
    """
    name = cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"
    _REGISTERED[name] = function


def describe(obj: Any, name: str = "") -> Description:
    """Describe an option: any value, config, pass, partitioner, quantizer, callable, or calibration data.

    Args:
        obj: what to describe. It is only read.
        name: what it is called in messages.

    Raises:
        Undescribable: some part has no stable description; says which, why, and how to declare it.
    """
    return _described(Walk(name), {"": obj})[""]


def _described(walk: Walk, steps: Mapping[str, Any]) -> dict[str, Description]:
    """Describe objects, each reached by its step, in one walk: what they share is told."""
    described: dict[str, Description] = {}
    for step, obj in steps.items():
        try:
            described[step] = walk.visit(obj, step)
        except RecursionError:
            walk.refuse(obj, "it is nested deeper than Python can follow", hint="Flatten it. " + DECLARE)
    walk.reach.check()
    return described


def describe_module(module: Any, name: str = "model") -> Description:
    """Describe an eager module, or a bound method of one, with the state of torch that its export depends on.

    Raises:
        Undescribable: some part of it cannot be followed with certainty. Export it, and fingerprint the
        result.
    """
    described = describe(module, name)
    state = ("(torch state)", tensors.ambient_state())
    return Description(described.kind, described.own, (*described.children, state), shown=described.shown)


def describe_modules(methods: Mapping[str, Any], name: str = "model") -> dict[str, Description]:
    """Describe eager modules, or bound methods of some, and which of their parts are one and the same.

    Returns:
        parts of a key by name: `model[forward]` for each method, and the state of torch that an export depends on.

    Raises:
        Undescribable: as `describe_module`.
    """
    described = _described(Walk(name), {f"[{method}]": held for method, held in methods.items()})
    return {**{f"{name}{step}": one for step, one in described.items()}, "torch state": tensors.ambient_state()}


class Walk:
    """One description in the making."""

    def __init__(self, name: str = "") -> None:
        """Start at a value that is called `name` in messages."""
        self.path: list[str] = [name]
        #: id -> (path of the first visit, the object, kept alive so that its id stays its own)
        self.seen: dict[int, tuple[str, Any]] = {}
        self.open: dict[int, int] = {}
        #: storage address -> (path, byte offset of the first view, the view itself, kept alive)
        self.storages: dict[int, tuple[str, int, Any]] = {}
        self.reach = Reach()

    @property
    def place(self) -> str:
        """The path from the root of the description; what the root is called must not enter."""
        return "".join(self.path[1:]).removeprefix(".")

    @property
    def where(self) -> str:
        """The path of the object under visit, as `partitioners[0].config`."""
        return "".join(self.path).removeprefix(".")

    def visit(self, obj: Any, step: str = "") -> Description:
        """Describe an object that is reached by `step` from the one under visit."""
        self.path.append(step)
        try:
            declared = self._declared(obj)
            if declared is not None:
                return declared
            for handler in _HANDLERS:
                found = handler(self, obj)
                if found is not None:
                    return found
        except (Undescribable, RecursionError):
            raise
        except Exception as error:  # what an object does when it is read is beyond us; a build must not fail of it
            try:
                self.refuse(obj, f"reading it raised {type(error).__name__}: {error}")
            except Undescribable as refusal:
                raise refusal from error
        finally:
            self.path.pop()
        raise AssertionError("the last handler describes or refuses")

    def children(self, pairs: Iterator[tuple[str, Any]]) -> tuple[tuple[str, Description], ...]:
        """Describe several values, each reached by its step."""
        return tuple((step, self.visit(value, step)) for step, value in pairs)

    def once(self, obj: Any) -> Description | None:
        """Return "same as PATH" when the object was met before, else note it and return None."""
        met = self.seen.get(id(obj))
        if met is not None:
            return Description("same", f"same as {met[0] or 'the whole'}")
        self.seen[id(obj)] = (self.place, obj)
        return None

    @contextmanager
    def inside(self, container: Any) -> Iterator[Description | None]:
        """Guard a value-like container against holding itself; yields the back reference if it does."""
        level = self.open.get(id(container))
        if level is not None:
            yield Description("cycle", f"the container {len(self.open) - level} levels up")
            return
        self.open[id(container)] = len(self.open)
        try:
            yield None
        finally:
            del self.open[id(container)]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget everything met inside the block if it raises Undescribable, and pass the error on."""
        seen, storages, reach = len(self.seen), len(self.storages), self.reach.mark()
        opened = dict(self.open)
        try:
            yield
        except Undescribable:
            for table, size in ((self.seen, seen), (self.storages, storages)):
                for key in list(table)[size:]:
                    del table[key]
            self.reach.rewind(reach)
            self.open = opened
            raise

    def refuse(self, obj: Any, why: str, *, hint: str = "") -> NoReturn:
        """Raise Undescribable for the object under visit."""
        cls = type(obj)
        raise Undescribable(
            why, path=self.where, type_name=f"{cls.__module__}.{cls.__qualname__}", hint=hint or DECLARE
        )

    def _declared(self, obj: Any) -> Description | None:
        cls = type(obj)
        own = getattr(cls, "__etgraph_fingerprint__", None)
        if own is not None:
            return self._from_declaration(obj, lambda: own(obj))
        if isinstance(obj, types.FunctionType):
            said = vars(obj).get("__etgraph_fingerprint__")
            if said is not None:
                child = self.visit(said() if callable(said) else said, ".__etgraph_fingerprint__")
                return Description("declared", code.public_name(obj), ((".declared", child),))
            return None
        if _REGISTERED:
            for base in cls.__mro__:
                function = _REGISTERED.get(f"{base.__module__}.{base.__qualname__}")
                if function is not None:
                    return self._from_declaration(obj, functools.partial(function, obj))
        return None

    def _from_declaration(self, obj: Any, say: Callable[[], Any]) -> Description:
        same = self.once(obj)
        if same is not None:
            return same
        try:
            said = say()
        except Undescribable:
            raise
        except Exception as error:
            self.refuse(obj, f"its declared description raised {type(error).__name__}: {error}")
        if said is obj:
            self.refuse(obj, "its declared description is the object itself")
        child = self.visit(said, ".declared")
        return Description("declared", code.public_name(type(obj)), ((".declared", child),))
