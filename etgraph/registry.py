"""What is known: stages, recognizers, codecs, recipes. One door for what is built in and for third parties.

A distribution plugs in with one entry point in the group `etgraph.stages`, naming a module. Importing that module
runs its decorators, which register here. Such a module imports torch inside its functions, not at its top, so that
listing what there is stays fast.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from etgraph.artifact import KINDS, Artifact
from etgraph.blobs import BlobSource
from etgraph.declaration import Idle, OptionsFilter, Stage, declare
from etgraph.errors import EtgraphWarning, StageDeclarationError, UsageError
from etgraph.recipes import Recipe, closest
from etgraph.targets import Needs, Target

__all__ = [
    "ENTRY_POINT_GROUP",
    "Codec",
    "RecipeEntry",
    "Registry",
    "codec",
    "recipe",
    "recipe_adapter",
    "recognizer",
    "registry",
    "stage",
    "target",
]

ENTRY_POINT_GROUP = "etgraph.stages"

#: Turns an object into an artifact, or returns None when the object is none of its business.
Recognizer = Callable[[Any], Artifact | None]
#: Turns a foreign recipe object or a name into a Recipe, or returns None.
RecipeAdapter = Callable[[Any, Mapping[str, Any]], Recipe | None]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RecipeEntry:
    """A recipe by name, built only when it is asked for."""

    name: str
    build: Callable[..., Recipe]
    summary: str
    backends: tuple[str, ...] = ()


@dataclass(frozen=True)
class Codec:
    """How artifacts of a kind become data that can be kept, and back.

    Args:
        encode: from an artifact to a JSON-able document, and the blobs that it names by their blake3 digest.
        decode: from a document and a source of blobs to the artifact; executes nothing from the document.
        meaning: the part of a document that says what the program is, and of which the fingerprint is the digest.
    """

    encode: Callable[[Artifact], tuple[Mapping[str, Any], Mapping[str, Any]]]
    decode: Callable[[Mapping[str, Any], BlobSource], Artifact]
    meaning: Callable[[Mapping[str, Any]], Any]


@dataclass
class Registry:
    """Everything that was registered, in order of registration."""

    stages: dict[str, Stage] = field(default_factory=dict)
    recipes: dict[str, RecipeEntry] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    recognizers: list[Recognizer] = field(default_factory=list)
    adapters: list[RecipeAdapter] = field(default_factory=list)
    codecs: dict[str, Codec] = field(default_factory=dict)
    services: dict[str, Callable[..., Any]] = field(default_factory=dict)
    loaded: bool = False

    def add_stage(self, stage: Stage) -> None:
        """Register a stage; a second one of the same name from another place is an error."""
        known = self.stages.get(stage.name)
        if known is not None and known.where != stage.where:
            raise StageDeclarationError(
                f"stage {stage.name!r} of {stage.where} has the name of {known.where}",
                hint="Give it another one: @etgraph.stage(name=...).",
            )
        self.stages[stage.name] = stage

    def stage(self, name: str) -> Stage:
        """Return the stage of that name, or say which there are."""
        self.load_plugins()
        try:
            return self.stages[name]
        except KeyError:
            raise UsageError(
                f"there is no stage {name!r}{closest(name, self.stages)}",
                hint="`etgraph list stages` shows all of them.",
            ) from None

    def service(self, name: str) -> Callable[..., Any]:
        """Return what a plugin provides under this name: how to verify, encode, read a file and so on."""
        self.load_plugins()
        try:
            return self.services[name]
        except KeyError:
            raise UsageError(
                f"nothing that is installed provides {name!r}",
                hint="Reinstall etgraph: its own plugin `stages` provides it.",
            ) from None

    def load_plugins(self) -> None:
        """Import every module named by an entry point; a broken one is a warning that names it."""
        if self.loaded:
            return
        self.loaded = True
        for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            try:
                point.load()
            except Exception as error:
                distribution = point.dist.name if point.dist else "an unknown distribution"
                warnings.warn(
                    f"the etgraph plugin {point.value!r} of {distribution} could not be loaded and is left out: "
                    f"{type(error).__name__}: {error}",
                    EtgraphWarning,
                    stacklevel=2,
                )

    @contextmanager
    def scratch(self) -> Iterator[Registry]:
        """Undo, on leaving, whatever was registered meanwhile. For tests and for notebooks."""
        self.load_plugins()
        names = ("stages", "recipes", "targets", "recognizers", "adapters", "codecs", "services")
        before = {name: getattr(self, name).copy() for name in names}
        kinds = dict(KINDS)
        try:
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)
            KINDS.clear()
            KINDS.update(kinds)


#: The registry of this process.
registry = Registry()


@overload
def stage(function: Callable[..., Artifact], /) -> Stage: ...
@overload
def stage(
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
) -> Callable[[Callable[..., Artifact]], Stage]: ...
def stage(function: Callable[..., Artifact] | None = None, /, **declaration: Any) -> Any:
    """Declare a function as a stage and register it.

    Args:
        name: the stage's name; the function's when not given.
        on_request: use it only when a recipe names it. A stage that stays at its kind always is on request.
        way: a label that `path=` chooses by.
        covers: attached stages whose work this one does itself; it takes the options of each under its name.
        note: why one would choose it where there is a choice.
        cost: rough work, relative to `to_executorch` = 1.
        check: called with the artifact in hand before any work; raises `UsageError` when something is missing.
        key_options: what of the options the result depends on, where that is less than all of them.
        reads_debug: whether, under these options, stack traces and the like enter the result.
        reads_inputs: whether (or under which options) the numbers in the example inputs can enter the result. A stage
            that is known to look at no numbers says False, and is then reused when only they have changed.
        reads_provenance: whether the steps that led to the program can enter the result.
        idle: of a stage that stays at its kind, says while planning why it has nothing to do, or nothing.
        redefines: in words, what it makes of a program that then computes something else on purpose (`trained`).
    """

    def register(f: Callable[..., Artifact]) -> Stage:
        declared = declare(f, **declaration)
        registry.add_stage(declared)
        return declared

    return register if function is None else register(function)


def recipe(name: str, *, backends: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a function that builds a recipe, under a name. Its docstring's first line is the summary."""

    def register(build: F) -> F:
        summary = (build.__doc__ or "").strip().partition("\n")[0]
        registry.recipes[name] = RecipeEntry(name=name, build=build, summary=summary, backends=backends)
        return build

    return register


def target(
    name: str,
    *,
    backends: tuple[str, ...],
    to_lower: Needs | None = None,
    to_run: Needs | None = None,
    snr: float,
) -> Callable[[F], F]:
    """Register a function that builds the recipe of a target, under `<os or board>-<arch>-<backend>-<precision>`.

    Its docstring's first line is the summary. One function may serve several targets.

    Args:
        backends: what its programs use, in order: each takes what those before it left.
        to_lower: what a host needs to make its programs; nothing but executorch when not given.
        to_run: what a host needs to execute them; None where only the device can.
        snr: the signal-to-noise ratio in dB that is fit for its precision.
    """

    def register(build: F) -> F:
        summary = (build.__doc__ or "").strip().partition("\n")[0]
        known = registry.targets.get(name)
        if known is not None and known.build.__module__ != build.__module__:
            raise StageDeclarationError(
                f"target {name} of {build.__module__} has the name of one of {known.build.__module__}",
                hint="Give it another name.",
            )
        registry.targets[name] = Target(name, build, summary, backends, to_lower or Needs(), to_run, snr)
        return build

    return register


def recipe_adapter(function: F) -> F:
    """Register a function that turns foreign recipe objects or names into a `Recipe`."""
    registry.adapters.append(function)
    return function


def recognizer(function: F) -> F:
    """Register a function that turns an object into an artifact, or returns None."""
    registry.recognizers.append(function)
    return function


def codec(
    kind: str,
    *,
    encode: Callable[[Any], tuple[Mapping[str, Any], Mapping[str, Any]]],
    decode: Callable[[Mapping[str, Any], BlobSource], Artifact],
    meaning: Callable[[Mapping[str, Any]], Any] = lambda document: document,
) -> None:
    """Register how artifacts of a kind are kept, so that they can be cached and put in files.

    Args:
        kind: the kind's name.
        encode: returns a JSON-able document, and blobs (bytes, memoryviews, or sequences of them) by blake3 digest.
        decode: makes the artifact again.
        meaning: what of the document the program *is*; the rest, such as stack traces, changes no fingerprint.
    """
    registry.codecs[kind] = Codec(encode, decode, meaning)


def service(name: str) -> Callable[[F], F]:
    """Register what the engine asks a plugin for by name, so that the engine needs no torch to be written."""

    def register(function: F) -> F:
        registry.services[name] = function
        return function

    return register
