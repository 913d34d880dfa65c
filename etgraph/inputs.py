"""Example inputs and dynamic shapes, in every form that a caller may give them, as one mapping per method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from etgraph.artifact import Inputs
from etgraph.errors import UsageError
from etgraph.recipes import closest

__all__ = ["dynamic_shapes_by_method", "samples_by_method"]

_FORMS = (
    "Give a tuple of positional inputs, a list of such tuples, etgraph.Inputs(*args, **kwargs), "
    "or a mapping from method name to one of these."
)


def samples_by_method(given: Any, methods: Iterable[str]) -> dict[str, tuple[Inputs, ...]]:
    """Return samples of inputs for each method.

    Args:
        given: a tuple of positional inputs, a list of such samples, `Inputs`, or a mapping from method to one of
            these. None stands for no samples.
        methods: the names of the methods that there are.
    """
    names = list(methods)
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: _samples(one, f"method {name!r}") for name, one in _of_methods(given, names)}
    samples = _samples(given, "the model")
    if len(names) > 1:
        raise UsageError(
            f"example inputs were given as {_form(given)}, and the program has the methods {', '.join(names)}",
            hint=f"Say which inputs are for which method: {{{names[0]!r}: (...,), {names[1]!r}: (...,)}}.",
        )
    return {names[0]: samples}


def _of_methods(given: Mapping[Any, Any], names: list[str]) -> Iterable[tuple[str, Any]]:
    for name, value in given.items():
        if name not in names:
            keyword = " For keyword inputs, write etgraph.Inputs(**inputs)." if names == ["forward"] else ""
            raise UsageError(
                f"inputs are given for {name!r}, and the program has {', '.join(names)}{closest(str(name), names)}",
                hint=f"A mapping goes from method name to inputs.{keyword}",
            )
        yield name, value


def _samples(given: Any, whose: str) -> tuple[Inputs, ...]:
    if isinstance(given, Inputs):
        return (given,)
    if isinstance(given, tuple):
        return (Inputs(*given),)
    if isinstance(given, list):
        if not given:
            raise UsageError(f"the example inputs of {whose} are an empty list", hint=_FORMS)
        return tuple(_sample(one, whose, i) for i, one in enumerate(given))
    raise UsageError(f"the example inputs of {whose} are {_form(given)}", hint=_FORMS)


def _sample(one: Any, whose: str, position: int) -> Inputs:
    if isinstance(one, Inputs):
        return one
    if isinstance(one, tuple):
        return Inputs(*one)
    raise UsageError(
        f"sample {position} of the example inputs of {whose} is {_form(one)}",
        hint="Each sample of a list is a tuple of positional inputs or etgraph.Inputs; a lone tensor is (tensor,).",
    )


def _form(given: Any) -> str:
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        return f"a lone tensor of shape {list(given.shape)}"
    return f"a {type(given).__name__}"


def dynamic_shapes_by_method(
    given: Any, methods: Iterable[str], parameters: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return dynamic shapes for each method that has some, in whatever form `torch.export.export` takes them.

    A mapping is read as per-method when its keys are methods, and as per-argument when they are arguments of the
    one method that there is; nothing is guessed, and nothing dropped.

    Args:
        given: what `torch.export.export(dynamic_shapes=)` takes, or a mapping from method to that.
        methods: the names of the methods that there are.
        parameters: method name to the names of its arguments.
    """
    names = list(methods)
    if given is None:
        return {}
    if isinstance(given, Mapping) and given:
        arguments = {p for name in names for p in parameters.get(name, ())}
        by_method = set(given) <= set(names)
        by_argument = set(given) <= arguments
        if by_method and by_argument:
            raise UsageError(
                f"dynamic_shapes has the keys {', '.join(map(repr, given))}, which name both methods and arguments",
                hint=f"Write it per method: {{{names[0]!r}: dynamic_shapes}}.",
            )
        if by_method:
            return dict(given)
        if len(names) > 1:
            odd = sorted(map(str, set(given) - set(names)))
            raise UsageError(
                f"dynamic_shapes names {', '.join(odd)}, and the program has the methods {', '.join(names)}",
                hint="With several methods, dynamic_shapes is a mapping from method name to that method's shapes.",
            )
    elif len(names) > 1:
        raise UsageError(
            f"dynamic_shapes was given as a {type(given).__name__} for the methods {', '.join(names)}",
            hint="With several methods, dynamic_shapes is a mapping from method name to that method's shapes.",
        )
    return {names[0]: given}
