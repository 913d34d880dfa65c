"""The calls that users make: `run`, `plan`, `detect`, `load`, `fingerprint`, `get_recipe`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from etgraph.artifact import Artifact, Kind, Source
from etgraph.declaration import warn
from etgraph.errors import EtgraphError, UsageError
from etgraph.job import Job
from etgraph.lookup import get_recipe, get_target
from etgraph.many import Results, run_targets
from etgraph.memo import Memo, opened
from etgraph.planned import Plan
from etgraph.preparation import DEFAULT_RECIPE, Asked, calibration_of, needs_the_backend, planned
from etgraph.records import check_path
from etgraph.registry import registry
from etgraph.result import Result
from etgraph.runner import OnEvent
from etgraph.sources import artifact_of, hold, recognised
from etgraph.targets import Target

__all__ = ["DEFAULT_RECIPE", "detect", "fingerprint", "get_recipe", "load", "plan", "run"]


@overload
def run(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    target: str | Target | None = None,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
    etrecord: str | os.PathLike[str] | None = None,
    bundled: str | os.PathLike[str] | None = None,
) -> Result: ...
@overload
def run(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    target: Sequence[str | Target],
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
) -> Results: ...
def run(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    target: str | Target | Sequence[str | Target] | None = None,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
    etrecord: str | os.PathLike[str] | None = None,
    bundled: str | os.PathLike[str] | None = None,
) -> Result | Results:
    """Bring a program from the kind it is at to the kind asked for.

    Args:
        source: a module, an ExportedProgram, an EdgeProgramManager, a mapping of methods, a path, an artifact. A module
            that brings its own way of exporting is exported by it first, and its ExportedProgram given here.
        example_inputs: a tuple of positional inputs, a list of such samples, `etgraph.Inputs(*args, **kwargs)`, or a
            mapping from method to one of these. The first sample is traced with; all are verified with.
        recipe: a `Recipe`, the name of one, one of upstream's, or a list of these, which are combined in that order;
            `xnnpack_fp32` when not given.
        to: the kind to end at.
        target: instead of a recipe, hardware by name, as `etgraph list targets` shows; or a list of names.
        path: `auto`, `combined` or `split`.
        dynamic_shapes: as `torch.export.export` takes them, or a mapping from method to that.
        constant_methods: method name to the constant that it returns.
        calibration_inputs: samples for static quantization: a list, a function that returns an iterable, a generator,
            a DataLoader, or a mapping from method to one of these. Planning reads none of them.
        cache: True for the user's cache, an `etgraph.Cache`, or False for none.
        refresh: build everything anew, and store it.
        check_cache: build what is in the cache too, and compare; raises `CacheMismatchError`.
        keep: kinds whose artifacts stay in memory, for `result[kind]`.
        on_event: called with an `Event` as steps start, report progress and finish.
        trust: load a foreign file even if that may run code which is inside it.
        etrecord: write the ETRecord of the run into this file; a failure to do so is a warning.
        bundled: write the `.pte` with the example inputs and expected outputs into this `.bpte`; likewise.

    Returns:
        the outcome; for a list of targets a mapping from the name of each to its outcome, or to the error that it ended
        in. Steps that several of them begin with are run once.

    Raises:
        UsageError: the request is wrong; nothing was run.
        StageError: a stage failed; the error has its address.
    """
    _check_types(keep=keep, on_event=on_event, trust=trust)
    targets = _targets(recipe, target)
    beside = {"etrecord": check_path("etrecord", etrecord, to), "bundled": check_path("bundled", bundled, to)}
    if isinstance(targets, list) and any(beside.values()):
        raise UsageError(
            "etrecord and bundled name one file, and several targets make a program each",
            hint="Use save_etrecord and save_bundled of each result.",
        )
    store = opened(cache)
    held = hold(source, example_inputs, dynamic_shapes, constant_methods, trust=trust, cache=store)
    memo = Memo(store, refresh=refresh, check=check_cache) if store is not None else None
    calibration = calibration_of(source, held, calibration_inputs)
    job = Job(held, calibration, store, memo, keep, on_event)
    if isinstance(targets, list):
        return run_targets(job, targets, to, path)
    made = planned(held, Asked(recipe, targets, to, path), calibration, memo)
    if targets is not None and needs_the_backend(made):
        targets.require()
    return _with_files(job.run(made), beside["etrecord"], beside["bundled"])


def _with_files(result: Result, etrecord: Path | None, bundled: Path | None) -> Result:
    """Write what was asked for beside the program; the program is not lost when that fails."""
    for path, save in ((etrecord, result.save_etrecord), (bundled, result.save_bundled)):
        try:
            if path is not None:
                save(path)
        except EtgraphError as error:
            warn(f"{path} was not written: {error.problem}")
    return result


def _check_types(*, keep: Any = (), on_event: Any = None, trust: Any = False) -> None:
    if isinstance(keep, str) or not isinstance(keep, Collection):
        raise UsageError(f"keep is {keep!r}", hint="Give a list of kinds: keep=['edge'].")
    if on_event is not None and not callable(on_event):
        raise UsageError(f"on_event is {on_event!r}", hint="Give a function that takes an etgraph.Event.")
    if not isinstance(trust, bool):
        raise UsageError(f"trust is {trust!r}", hint="Give True only for a file whose maker you trust.")


def plan(
    source: Any,
    example_inputs: Any = None,
    recipe: Any = None,
    to: str = "executorch",
    *,
    target: str | Target | None = None,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    refresh: bool = False,
    check_cache: bool = False,
    keep: Collection[str] = (),
    on_event: OnEvent | None = None,
    trust: bool = False,
) -> Plan:
    """Plan what `run` with the same arguments would do, and do nothing; for one target at a time."""
    del keep, on_event
    targets = _targets(recipe, target)
    assert not isinstance(targets, list)
    store = opened(cache)
    held = hold(source, example_inputs, dynamic_shapes, constant_methods, trust=trust, cache=store)
    memo = Memo(store, refresh=refresh, check=check_cache) if store is not None else None
    calibration = calibration_of(source, held, calibration_inputs)
    return planned(held, Asked(recipe, targets, to, path), calibration, memo)


def _targets(recipe: Any, given: Any) -> Target | list[Target] | None:
    if given is None:
        return None
    if recipe is not None:
        raise UsageError("recipe and target were both given, and a target is a recipe", hint="Give one of the two.")
    if not isinstance(given, list | tuple):
        return get_target(given)
    targets = [get_target(one) for one in given]
    if not targets:
        raise UsageError("an empty list of targets was given", hint="Give at least one name.")
    return list({target.name: target for target in targets}.values())


def detect(source: Any) -> Kind:
    """Say which kind an object or a file is; raise `UsageError` when it is none, or one that cannot be used."""
    if isinstance(source, str | os.PathLike):
        described = registry.service("describe_file")(source)
        return Kind(described.kind)
    if isinstance(source, Source):
        return detect(source.model)
    return recognised(source).kind


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Artifact:
    """Load an artifact from a file: etgraph's own, or one that torch or executorch wrote.

    Args:
        trust: load a foreign file even if that may run code which is inside it.
    """
    _check_types(trust=trust)
    loaded: Artifact = registry.service("load_file")(path, trust=trust)
    return loaded


def fingerprint(source: Any) -> str:
    """Return a digest of what a program is: equal for equal programs, in every process."""
    return artifact_of(source).fingerprint
