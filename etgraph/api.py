"""The calls that users make: `run`, `plan`, `detect`, `load`, `fingerprint`, `get_recipe`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from etgraph import planner
from etgraph.artifact import KINDS, Artifact, Executorch, Kind, Module, Source
from etgraph.errors import UsageError
from etgraph.inputs import dynamic_shapes_by_method, samples_by_method
from etgraph.planner import Plan, request_for
from etgraph.recipes import Recipe, closest
from etgraph.registry import registry
from etgraph.result import Result
from etgraph.runner import OnEvent, execute

__all__ = ["DEFAULT_RECIPE", "artifact_of", "detect", "fingerprint", "get_recipe", "load", "plan", "run"]

DEFAULT_RECIPE = "xnnpack_fp32"

_ACCEPTED = (
    "Accepted: an nn.Module (or a bound method of one), an ExportedProgram, an EdgeProgramManager, an "
    "ExecutorchProgramManager, a mapping from method name to one of the first three, a path to a file, an "
    "etgraph.Source, or an artifact."
)


def run(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
) -> Result:
    """Bring a program from the kind it is at to the kind asked for.

    Args:
        source: a module, an ExportedProgram, an EdgeProgramManager, a mapping of methods, a path, an artifact.
        example_inputs: a tuple of positional inputs, a list of such samples, `etgraph.Inputs(*args, **kwargs)`, or a
            mapping from method to one of these. The first sample is traced with; all are verified with.
        recipe: a `Recipe`, the name of one, or one of upstream's; `xnnpack_fp32` when not given.
        to: the kind to end at.
        path: `auto`, `combined` or `split`.
        dynamic_shapes: as `torch.export.export` takes them, or a mapping from method to that.
        constant_methods: method name to the constant that it returns.
        calibration_inputs: samples for static quantization, as `example_inputs`.
        keep: kinds whose artifacts stay in memory, for `result[kind]`.
        on_event: called with an `Event` as steps start and finish.

    Raises:
        UsageError: the request is wrong; nothing was run.
        StageError: a stage failed; the error has its address.
    """
    artifact = artifact_of(source, example_inputs, dynamic_shapes, constant_methods)
    made = _planned(artifact, recipe, to, path, calibration_inputs)
    unknown = sorted(set(keep) - set(made.kinds))
    if unknown:
        raise UsageError(
            f"keep names {', '.join(unknown)}, and the way is {' -> '.join(made.kinds)}",
            hint="Keep kinds that are on the way.",
        )
    state = registry.services.get("state_of", lambda artifact: None)
    before = state(artifact)

    def rebuild(kind: str) -> Artifact:
        if state(artifact) != before:
            raise UsageError(
                f"{kind!r} was released during the run, and the source has changed since, so it cannot be made again",
                hint=f"Pass keep=[{kind!r}] to etgraph.run to hold on to it.",
            )
        last = max(i for i, step in enumerate(made.steps) if step.produces == kind)
        return execute(replace(made, steps=made.steps[: last + 1]), artifact)[0]

    last, steps, kept = execute(made, artifact, on_event=on_event, keep=keep)
    return Result(artifact=last, plan=made, steps=steps, source=artifact, kept=kept, rebuild=rebuild)


def plan(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
) -> Plan:
    """Plan what `run` with the same arguments would do, and do nothing."""
    del keep, on_event
    artifact = artifact_of(source, example_inputs, dynamic_shapes, constant_methods)
    return _planned(artifact, recipe, to, path, calibration_inputs)


def _planned(artifact: Artifact, recipe: Any, to: str, path: str, calibration_inputs: Any) -> Plan:
    registry.load_plugins()
    supplied = {}
    if calibration_inputs is not None:
        supplied["calibration_inputs"] = samples_by_method(calibration_inputs, artifact.methods)
    request = request_for(
        artifact,
        goal=_kind_named(to),
        recipe=get_recipe(DEFAULT_RECIPE if recipe is None else recipe),
        path=path,
        supplied=supplied,
    )
    made = planner.make(request, registry.stages)
    for step in made.steps:
        if step.definition.check is not None and step.consumes == artifact.kind:
            step.definition.check(artifact)
    if recipe is None and made.steps:
        made = replace(made, notes=(f"no recipe was given, so {DEFAULT_RECIPE} is meant", *made.notes))
    return made


def _kind_named(name: str) -> Kind:
    if name not in KINDS:
        raise UsageError(
            f"there is no kind {str(name)!r}{closest(str(name), KINDS)}", hint=f"Kinds: {', '.join(KINDS)}."
        )
    return Kind(name)


def get_recipe(given: Any, **options: Any) -> Recipe:
    """Return a recipe by name, from one of upstream's recipe objects, or as it is.

    Args:
        given: a `Recipe`, a name that `etgraph list recipes` shows, an upstream `ExportRecipe` or `RecipeType`.
        options: what the recipe can be asked to vary, such as `group_size=32`.
    """
    if isinstance(given, Recipe):
        if options:
            raise UsageError(f"options {', '.join(options)} were given for recipe {given.name}, already made")
        return given
    registry.load_plugins()
    if isinstance(given, str) and given in registry.recipes:
        return _built(given, options)
    for adapter in registry.adapters:
        adapted = adapter(given, options)
        if adapted is not None:
            return adapted
    if isinstance(given, str):
        raise UsageError(
            f"there is no recipe {given!r}{closest(given, registry.recipes)}",
            hint=f"Known: {', '.join(sorted(registry.recipes))}, and every recipe of upstream's by its name.",
        )
    raise UsageError(
        f"a {type(given).__name__} is not a recipe",
        hint="Give an etgraph.Recipe, the name of a recipe, or upstream's ExportRecipe or RecipeType.",
    )


def _built(name: str, options: Mapping[str, Any]) -> Recipe:
    build = registry.recipes[name].build
    known = inspect.signature(build).parameters
    for option in options:
        if option not in known:
            raise UsageError(
                f"recipe {name} has no option {option!r}{closest(option, known)}",
                hint=f"Its options: {', '.join(known) or 'none'}.",
            )
    return build(**options)


def detect(source: Any) -> Kind:
    """Say which kind an object or a file is; raise `UsageError` when it is none, or one that cannot be used."""
    if isinstance(source, str | os.PathLike):
        described = registry.service("describe_file")(source)
        return Kind(described.kind)
    if isinstance(source, Source):
        return detect(source.model)
    return _recognised(source).kind


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Artifact:
    """Load an artifact from a file: etgraph's own, or one that torch or executorch wrote.

    Args:
        trust: load a foreign file even if that may run code which is inside it.
    """
    loaded: Artifact = registry.service("load_file")(path, trust=trust)
    return loaded


def fingerprint(source: Any) -> str:
    """Return a digest of what a program is: equal for equal programs, in every process."""
    digest: str = registry.service("fingerprint")(artifact_of(source))
    return digest


def artifact_of(
    source: Any,
    example_inputs: Any = None,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
) -> Artifact:
    """Turn anything that `run` takes into an artifact."""
    if isinstance(source, Source):
        return artifact_of(
            source.model,
            source.example_inputs if example_inputs is None else example_inputs,
            source.dynamic_shapes if dynamic_shapes is None else dynamic_shapes,
            source.constant_methods if constant_methods is None else constant_methods,
        )
    if isinstance(source, str | os.PathLike):
        artifact = load(source)
    else:
        artifact = _recognised(_methods_of_module(source, example_inputs))
    changes: dict[str, Any] = {}
    if example_inputs is not None:
        changes["example_inputs"] = samples_by_method(example_inputs, artifact.methods)
    if dynamic_shapes is not None:
        changes["dynamic_shapes"] = _shapes(artifact, dynamic_shapes)
    if constant_methods is not None:
        changes["constant_methods"] = _constants(artifact, constant_methods)
    return replace(artifact, **changes) if changes else artifact


def _recognised(source: Any) -> Artifact:
    if isinstance(source, Artifact):
        return source
    registry.load_plugins()
    for recognise in registry.recognizers:
        artifact = recognise(source)
        if artifact is not None:
            return artifact
    shown = f"a {type(source).__module__}.{type(source).__qualname__}"
    if isinstance(source, Mapping):
        inside = ", ".join(f"{name!r}: {type(value).__qualname__}" for name, value in source.items())
        shown = f"a mapping of {{{inside}}}" if source else "an empty mapping"
    raise UsageError(f"{shown} is not a program", hint=_ACCEPTED)


def _methods_of_module(source: Any, example_inputs: Any) -> Any:
    """Turn one module, with inputs for several of its methods, into a mapping of those methods."""
    if not isinstance(example_inputs, Mapping) or isinstance(source, Mapping | Artifact):
        return source
    names = [name for name in example_inputs if isinstance(name, str)]
    if names == ["forward"] or not names or not hasattr(source, "named_parameters"):
        return source
    methods = {}
    for name in names:
        method = getattr(source, name, None)
        if not inspect.ismethod(method):
            has = sorted(n for n in vars(type(source)) if inspect.isfunction(getattr(type(source), n, None)))
            raise UsageError(
                f"inputs are given for {name!r}, and {type(source).__name__} has no method of that name"
                f"{closest(name, has)}",
                hint=f"Its own methods: {', '.join(has)}. For keyword inputs, write etgraph.Inputs(**inputs).",
            )
        methods[name] = source if name == "forward" else method
    return methods


def _shapes(artifact: Artifact, given: Any) -> dict[str, Any]:
    if not isinstance(artifact, Module):
        raise UsageError(
            f"dynamic_shapes were given for a program at {artifact.kind}, whose shapes are fixed already",
            hint="Dynamic shapes enter when the module is exported; start from the module, or export it with them.",
        )
    parameters = {name: _parameters(value) for name, value in artifact.methods.items()}
    return dynamic_shapes_by_method(given, artifact.methods, parameters)


def _parameters(method: Any) -> Iterable[str]:
    try:
        return list(inspect.signature(getattr(method, "forward", method)).parameters)
    except (TypeError, ValueError):
        return ()


def _constants(artifact: Artifact, given: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(artifact, Executorch):
        raise UsageError("constant_methods were given for a program that is already emitted")
    clash = sorted(set(given) & set(artifact.methods))
    if clash:
        raise UsageError(
            f"constant_methods names {', '.join(clash)}, which the program has as methods",
            hint="Give constants names of their own.",
        )
    return {**artifact.constant_methods, **given}
