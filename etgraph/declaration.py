"""Declaring a stage: a typed function from one kind of artifact to another.

    @etgraph.stage
    def to_edge(program: Exported | Quantized, *, compile_config: Any = None) -> Edge:
        "Decompose to Core ATen and convert to the edge dialect."

The signature is the declaration: the first parameter says what is consumed, the return annotation what is
produced, keyword-only parameters are the options. Mistakes are reported when the stage is declared.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from etgraph.artifact import Artifact, Kind
from etgraph.errors import EtgraphWarning, StageDeclarationError

__all__ = ["Idle", "Situation", "Stage", "at", "declare", "listening", "progress", "reporting", "warn"]

#: From the options of a stage to those that enter its cache key.
OptionsFilter = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Situation:
    """What a stage may know of a run before anything has run.

    Args:
        start: the kind in hand.
        goal: the kind asked for.
        recipe: the name of the recipe, for messages.
        in_hand: returns the program in hand; loads it when it is in a file.
    """

    start: Kind
    goal: Kind
    recipe: str
    in_hand: Callable[[], Artifact]


#: Says why an attached stage has nothing to do, or nothing.
Idle = Callable[[Mapping[str, Any], Situation], str]


@dataclass(frozen=True, eq=False)
class Stage:
    """A declared stage. Calling it calls the function.

    Args:
        name: unique among the registered stages.
        consumes: the kinds that it takes.
        produces: the kind that it returns; None when it returns the kind that it was given, so that it is
            *attached* to each kind that it consumes, as a pass is.
        options: keyword-only parameters by name.
        on_request: used only when a recipe names it. Attached stages always are.
        way: a label that `path=` can choose by, such as `combined` or `split`; empty when there is no choice.
        covers: attached stages whose work this stage does itself when it is on the way. It takes the options
            of each as an option of that stage's name.
        note: why one would choose it where there is a choice; shown in plans.
        cost: rough work, relative to `to_executorch` = 1; orders the ways before anything was measured.
        check: called with the artifact in hand before any work, when the way begins with this stage; raises
            `UsageError` when something that only the caller can give is missing.
        key_options: what of the options the result depends on, where that is less than all of them; called with
            the options and returns the ones that enter the cache key.
        reads_debug: whether, under these options, stack traces and the like enter the result.
        reads_inputs: whether, under these options, the numbers in the example inputs can enter the result.
        reads_provenance: whether the steps that led to the program can enter the result.
        idle: of an attached stage, called while planning with its options and the `Situation`; says why it has
            nothing to do, so that it is left out, or returns an empty string. Raises `UsageError` when something that
            only the caller can give is missing.
        redefines: in words, what it makes of a program that computes something else from then on, on purpose
            (`trained`). What comes after is checked against that, and no longer against the source.
    """

    name: str
    function: Callable[..., Artifact]
    consumes: tuple[Kind, ...]
    produces: Kind | None
    options: Mapping[str, inspect.Parameter]
    on_request: bool = False
    way: str = ""
    covers: tuple[str, ...] = ()
    note: str = ""
    cost: float = 1.0
    check: Callable[[Any], None] | None = None
    key_options: OptionsFilter | None = None
    reads_debug: Callable[[Mapping[str, Any]], bool] | None = None
    reads_inputs: bool | Callable[[Mapping[str, Any]], bool] = True
    reads_provenance: bool = False
    idle: Idle | None = None
    redefines: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "__wrapped__", self.function)
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.function, attribute):
                object.__setattr__(self, attribute, getattr(self.function, attribute))

    def __call__(self, artifact: Artifact, **options: Any) -> Artifact:
        """Call the function."""
        return self.function(artifact, **options)

    def __repr__(self) -> str:
        return f"<stage {self.name}: {' | '.join(self.consumes)} -> {self.produces or 'the same'}>"

    @property
    def attached(self) -> bool:
        """Whether it stays at its kind, as a pass does."""
        return self.produces is None

    def result_of(self, kind: str) -> Kind:
        """Return the kind that it gives for the one consumed."""
        return self.produces or Kind(kind)

    @property
    def required(self) -> tuple[str, ...]:
        """Options without a default."""
        return tuple(name for name, p in self.options.items() if p.default is inspect.Parameter.empty)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return summary_of(self.function)

    @property
    def where(self) -> str:
        """Module and name of the function, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


def declare(
    function: Callable[..., Artifact],
    *,
    name: str | None = None,
    on_request: bool = False,
    way: str = "",
    covers: tuple[str, ...] = (),
    note: str = "",
    cost: float = 1.0,
    check: Callable[[Any], None] | None = None,
    key_options: OptionsFilter | None = None,
    reads_debug: Callable[[Mapping[str, Any]], bool] | None = None,
    reads_inputs: bool | Callable[[Mapping[str, Any]], bool] = True,
    reads_provenance: bool = False,
    idle: Idle | None = None,
    redefines: str = "",
) -> Stage:
    """Read a function's signature as a stage; raise `StageDeclarationError` when it is not one."""
    if not inspect.isfunction(function):
        raise StageDeclarationError(
            f"@etgraph.stage takes a function, and was given {function!r}",
            hint="Write a module-level function whose signature says what it consumes and produces.",
        )
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) != 1:
        raise _refused(function, signature, f"it has {len(positional)} positional parameters")
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise _refused(function, signature, "it takes *args or **kwargs, so its options have no names")
    if not summary_of(function):
        raise _refused(function, signature, "it has no docstring, so that nobody could tell what it does")
    first = _evaluated(function, signature, positional[0].annotation, f"parameter {positional[0].name!r}")
    returned = _evaluated(function, signature, signature.return_annotation, "the return value")
    consumes = _kinds_of(function, signature, first, f"parameter {positional[0].name!r}")
    produces = _kinds_of(function, signature, returned, "the return value")
    stays = returned is first and returned is not inspect.Parameter.empty
    if len(produces) != 1 and not stays:
        raise _refused(function, signature, f"it returns {len(produces)} kinds")
    if not stays and produces[0] in consumes and len(consumes) > 1:
        raise _refused(function, signature, "it returns one of the kinds it takes; a pass returns the one it got")
    if cost < 0:
        raise _refused(function, signature, f"its cost is {cost}; costs are not negative")
    if idle is not None and not stays:
        raise _refused(function, signature, "it can be idle, and only a stage that stays at its kind can be left out")
    options = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
    for covered in covers:
        if covered not in options:
            raise _refused(function, signature, f"it covers {covered!r} and has no option of that name")
    return Stage(
        name=name or function.__name__,
        function=function,
        consumes=consumes,
        produces=None if stays else produces[0],
        options=types.MappingProxyType(options),
        on_request=on_request or stays,
        way=way,
        covers=covers,
        note=note,
        cost=cost,
        check=check,
        key_options=key_options,
        reads_debug=reads_debug,
        reads_inputs=reads_inputs,
        reads_provenance=reads_provenance,
        idle=idle,
        redefines=redefines,
    )


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring, or nothing."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _evaluated(function: Callable[..., Any], signature: inspect.Signature, annotation: Any, what: str) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except Exception as error:
        raise _refused(
            function, signature, f"the annotation {annotation!r} of {what} cannot be read: {error}"
        ) from error


def _kinds_of(
    function: Callable[..., Any], signature: inspect.Signature, annotation: Any, what: str
) -> tuple[Kind, ...]:
    if isinstance(annotation, typing.TypeVar):
        members: tuple[Any, ...] = annotation.__constraints__
    else:
        members = typing.get_args(annotation) or (annotation,)
    for member in members or (annotation,):
        if not (isinstance(member, type) and issubclass(member, Artifact)) or member is Artifact:
            shown = "missing" if annotation is inspect.Parameter.empty else f"{annotation!r}"
            raise _refused(function, signature, f"the annotation of {what} is {shown}, not a kind of artifact")
    return tuple(member.kind for member in members)


def _refused(function: Callable[..., Any], signature: inspect.Signature, why: str) -> StageDeclarationError:
    return StageDeclarationError(
        f"stage {function.__module__}.{function.__qualname__}{signature} cannot be declared: {why}",
        hint=(
            "A stage takes one artifact, keyword-only options, and returns one artifact, for instance "
            "`def to_edge(program: Exported | Quantized, *, preserve_ops: tuple[str, ...] = ()) -> Edge`. "
            "A pass over several kinds uses a TypeVar constrained to them."
        ),
    )


@contextmanager
def at(method: str) -> Iterator[None]:
    """Mark the work on one method, so that a failure inside names it."""
    try:
        yield
    except Exception as error:
        if not getattr(error, "etgraph_method", ""):
            error.etgraph_method = method  # type: ignore[attr-defined]
        raise


_told: ContextVar[list[str] | None] = ContextVar("etgraph_told", default=None)


def warn(message: str) -> None:
    """Tell the user something from inside a stage, without stopping it; told again when its result is reused."""
    told = _told.get()
    if told is not None:
        told.append(message)
    warnings.warn(message, EtgraphWarning, stacklevel=3)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect what stages tell the user inside the block; it is shown all the same."""
    told: list[str] = []
    token = _told.set(told)
    try:
        yield told
    finally:
        _told.reset(token)


#: Told how far a stage has come: how much is done, and of how much, where that is known.
Report = Callable[[int, int | None], None]

_report: ContextVar[Report | None] = ContextVar("etgraph_report", default=None)


def progress(done: int, of: int | None = None) -> None:
    """Say from inside a stage how far it has come; becomes an event `step_progress`.

    Args:
        done: how many pieces of work are done.
        of: how many there are, where that is known.
    """
    report = _report.get()
    if report is not None:
        report(done, of)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Pass on what stages report with `progress` inside the block."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)
