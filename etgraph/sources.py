"""Whatever a user may hand in, as an artifact: modules, programs, managers, mappings, files, `Source`."""

from __future__ import annotations

import contextlib
import inspect
import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from etgraph.artifact import Artifact, Executorch, Module, Provenance, Source
from etgraph.errors import Undescribable, UsageError
from etgraph.hashing import hasher
from etgraph.held import Held, inputs_identity
from etgraph.identity import Description, toolchain
from etgraph.inputs import dynamic_shapes_by_method, samples_by_method
from etgraph.owncode import describe_own_code
from etgraph.recipes import closest
from etgraph.registry import registry
from etgraph.store import Cache

__all__ = ["artifact_of", "hold", "recognised"]

_ACCEPTED = (
    "Accepted: an nn.Module (or a bound method of one), an ExportedProgram, an EdgeProgramManager, an "
    "ExecutorchProgramManager, a mapping from method name to one of the first three, a path to a file, an "
    "etgraph.Source, or an artifact."
)


def hold(
    source: Any,
    example_inputs: Any = None,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    *,
    trust: bool = False,
    cache: Cache | None = None,
) -> Held:
    """Hold anything that `run` takes; a file whose content the cache knows is not loaded before somebody needs it."""
    asked = (example_inputs, dynamic_shapes, constant_methods)
    if isinstance(source, str | os.PathLike) and cache is not None and asked == (None, None, None):
        return _held_file(os.fspath(source), trust, cache)
    artifact = artifact_of(source, example_inputs, dynamic_shapes, constant_methods, trust=trust)
    return Held.of(artifact, _label(source, artifact))


def _held_file(path: str, trust: bool, cache: Cache) -> Held:
    """Hold a file by what the cache remembers of its content, if anything."""
    digest = _digest_of_file(path)

    def load() -> Artifact:
        artifact = artifact_of(path, trust=trust)
        if _digest_of_file(path) != digest:
            raise UsageError(
                f"{path} was changed while it was being run", hint="Run it again once it is written completely."
            )
        return artifact

    try:
        # With our own code, by which the facts were found.
        name = f"file/{digest}/{describe_own_code().digest}/{json.dumps(toolchain(), sort_keys=True)}"
    except Undescribable:
        return Held.of(load(), os.path.basename(path))
    known = cache.last_parts(name)
    if known is None:
        held = Held.of(load(), os.path.basename(path))
        # What has no description is loaded again the next time.
        with contextlib.suppress(Undescribable, UsageError):
            cache.remember(name, {"facts": json.dumps(_facts(held))})
        return held
    facts = json.loads(known["facts"])
    return Held(
        facts["kind"],
        facts["methods"],
        provenance=tuple(
            Provenance(stage, kind, tuple((a, b) for a, b in options)) for stage, kind, options in facts["provenance"]
        ),
        label=os.path.basename(path),
        load=load,
        identity=lambda: {
            part: Description(kind, own, shown=shown) for part, (kind, own, shown) in facts["identity"].items()
        },
        input_values=lambda: inputs_identity(facts["input values"]),
        in_file=True,
    )


def _facts(held: Held) -> dict[str, Any]:
    """Return what the cache remembers of a file, so that it need not be loaded to be planned with."""
    return {
        "kind": str(held.kind),
        "methods": list(held.methods),
        "provenance": [[step.stage, step.kind, step.options] for step in held.provenance],
        "identity": {part: [d.kind, d.own, d.shown] for part, d in held.identity().items()},
        "input values": held.input_values().own,
    }


def _digest_of_file(path: str) -> str:
    """Digest a file's content; of one that cannot be read, the loader says what is wrong."""
    hashing = hasher()
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    hashing.update(mapped)
    except OSError:
        # The loader finds the words for it.
        artifact_of(path)
        raise
    return str(hashing.hexdigest())


def _label(source: Any, artifact: Artifact) -> str:
    """Name what was given as its user would, to tell the runs of different models apart."""
    if isinstance(source, str | os.PathLike):
        return os.path.basename(os.fspath(source))
    owners = [getattr(held, "__self__", held) for held in artifact.methods.values()]
    names = dict.fromkeys(type(owner).__qualname__ for owner in owners)
    return f"{', '.join(names)} ({', '.join(artifact.methods)})"


def artifact_of(
    source: Any,
    example_inputs: Any = None,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    *,
    trust: bool = False,
) -> Artifact:
    """Turn anything that `run` takes into an artifact."""
    if isinstance(source, Source):
        return artifact_of(
            source.model,
            source.example_inputs if example_inputs is None else example_inputs,
            source.dynamic_shapes if dynamic_shapes is None else dynamic_shapes,
            source.constant_methods if constant_methods is None else constant_methods,
            trust=trust,
        )
    if isinstance(source, str | os.PathLike):
        artifact: Artifact = registry.service("load_file")(source, trust=trust)
    else:
        artifact = recognised(_methods_of_module(source, example_inputs))
    changes: dict[str, Any] = {}
    if example_inputs is not None:
        changes["example_inputs"] = samples_by_method(example_inputs, artifact.methods)
    if dynamic_shapes is not None:
        changes["dynamic_shapes"] = _shapes(artifact, dynamic_shapes)
    if constant_methods is not None:
        changes["constant_methods"] = _constants(artifact, constant_methods)
    return replace(artifact, **changes) if changes else artifact


def recognised(source: Any) -> Artifact:
    """Ask every recognizer; raise `UsageError` when none knows it."""
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
    if not isinstance(given, Mapping) or not all(isinstance(n, str) and n.isidentifier() for n in given):
        raise UsageError(
            f"constant_methods is {given!r}", hint="Give a mapping from method name to constant: {'width': 7}."
        )
    clash = sorted(set(given) & set(artifact.methods))
    if clash:
        raise UsageError(
            f"constant_methods names {', '.join(clash)}, which the program has as methods",
            hint="Give constants names of their own.",
        )
    return {**artifact.constant_methods, **given}
