"""From the arguments of `run` and `plan` to those of `etgraph.run` and `etgraph.plan`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from etgraph.cli.samples import load_samples, parse_samples
from etgraph.cli.shapes import parse_shape, random_inputs
from etgraph.cli.source import Reference, load_object, parse_source
from etgraph.errors import UsageError
from etgraph.recipes import closest
from etgraph.spelling import read_options

if TYPE_CHECKING:
    from etgraph.targets import Target

__all__ = ["Asked", "Job", "prepare"]


@dataclass(frozen=True)
class Asked:
    """What a user wrote, checked as far as that is possible without importing anything of theirs."""

    reference: Reference
    to: str
    start: str | None
    recipe: str | None
    targets: tuple[str, ...]
    path: str
    shapes: tuple[Any, ...]
    inputs: Reference | None
    calibration: Reference | None
    eval_mode: bool
    trust: bool
    cache: Any
    refresh: bool
    check_cache: bool

    @classmethod
    def read(
        cls,
        source: str,
        *,
        recipe: str | None = None,
        target: Sequence[str] | None = None,
        to: str = "executorch",
        start: str | None = None,
        shape: Sequence[str] | None = None,
        inputs: str | None = None,
        calibration: str | None = None,
        path: str = "auto",
        eval_mode: bool = False,
        trust: bool = False,
        cache_dir: str | None = None,
        no_cache: bool = False,
        refresh: bool = False,
        check_cache: bool = False,
    ) -> Asked:
        """Check the arguments; raise `UsageError` for the first that is wrong."""
        reference = parse_source(source)
        for flag, kind in (("--to", to), ("--from", start)):
            if kind is not None:
                _check_kind(flag, kind)
        if trust and not reference.is_program_file:
            raise UsageError(
                f"--trust is about files that hold programs, and SOURCE {source} is code, which is run in any case"
            )
        if shape and inputs is not None:
            raise UsageError(
                "--shape and --inputs were both given, and each says the example inputs", hint="Leave one of them out."
            )
        return cls(
            reference=reference,
            to=to,
            start=start,
            recipe=recipe,
            targets=_targets_named(recipe, target or ()),
            path=path,
            shapes=tuple(parse_shape(one) for one in shape or ()),
            inputs=parse_samples(inputs, "--inputs") if inputs is not None else None,
            calibration=parse_samples(calibration, "--calibration") if calibration is not None else None,
            eval_mode=eval_mode,
            trust=trust,
            cache=_cache(cache_dir, no_cache, refresh, check_cache),
            refresh=refresh,
            check_cache=check_cache,
        )

    def require_one_way(self, command: str) -> None:
        """Refuse several targets for a command that is about one way.

        Raises:
            UsageError: several were given.
        """
        if len(self.targets) > 1:
            raise UsageError(
                f"{command} is about one way, and {len(self.targets)} targets were given", hint="Give one --target."
            )


def _cache(directory: str | None, off: bool, refresh: bool, check: bool) -> Any:
    """Return the cache as `etgraph.run` takes it."""
    given = {"--no-cache": off, "--refresh": refresh, "--check-cache": check}
    exclusive = [flag for flag, there in given.items() if there]
    if off and directory is not None:
        exclusive.append("--cache-dir")
    if len(exclusive) > 1:
        raise UsageError(f"{' and '.join(exclusive[:2])} were both given", hint="Leave one of them out.")
    if directory is None:
        return not off
    from etgraph.store import Cache

    return Cache(directory)


def _check_kind(flag: str, kind: str) -> None:
    from etgraph.artifact import KINDS
    from etgraph.registry import registry

    registry.load_plugins()
    if kind not in KINDS:
        raise UsageError(
            f"{flag} {kind}: there is no such kind{closest(kind, KINDS)}", hint=f"Kinds: {', '.join(KINDS)}."
        )


def _targets_named(recipe: str | None, targets: Sequence[str]) -> tuple[str, ...]:
    """Check the names of targets; no name twice."""
    if targets and recipe is not None:
        raise UsageError(
            f"--recipe {recipe} and --target {targets[0]} were both given, and a target is a recipe",
            hint="Give one of the two.",
        )
    from etgraph.cli.listing import target_names

    known = target_names() if targets else []
    for target in targets:
        name, _ = read_options(target)
        if name not in known:
            raise UsageError(
                f"--target {name}: there is no such target{closest(name, known)}",
                hint="`etgraph list targets` shows all." if known else "No target is installed; take a --recipe.",
            )
    return tuple(dict.fromkeys(targets))


@dataclass(frozen=True)
class Job:
    """Arguments for `etgraph.run` and `etgraph.plan`, and the kind that the source is at."""

    asked: Asked
    kind: str
    source: Any = field(repr=False)
    arguments: dict[str, Any] = field(repr=False)


def prepare(asked: Asked) -> Job:
    """Import or open the source, and check what depends on it. No stage runs."""
    from etgraph.api import detect
    from etgraph.artifact import Source

    source = _opened(asked)
    kind = str(detect(source))
    given = asked.reference.given
    if asked.start is not None and kind != asked.start:
        raise UsageError(f"SOURCE {given} is at {kind}, and --from {asked.start} was asked for")
    if asked.eval_mode and kind != "module":
        raise UsageError(
            f"--eval switches a module before it is exported, and SOURCE {given} is at {kind} already",
            hint="Leave --eval out, or start from the module.",
        )
    arguments: dict[str, Any] = {"to": asked.to, "path": asked.path, "cache": asked.cache, **_recipe_or_target(asked)}
    if asked.refresh:
        arguments["refresh"] = True
    if asked.check_cache:
        arguments["check_cache"] = True
    if asked.trust:
        arguments["trust"] = True
    if asked.shapes:
        arguments["example_inputs"] = random_inputs(asked.shapes)
    if asked.inputs is not None:
        arguments["example_inputs"] = load_samples(asked.inputs, call=True)
    if asked.calibration is not None:
        arguments["calibration_inputs"] = load_samples(asked.calibration, call=False)
    elif isinstance(source, Source) and source.calibration_inputs is not None:
        arguments["calibration_inputs"] = source.calibration_inputs
    return Job(asked=asked, kind=kind, source=source, arguments=arguments)


def _opened(asked: Asked) -> Any:
    if asked.reference.is_program_file:
        return os.fspath(asked.reference.path or "")
    return load_object(asked.reference)


def _recipe_or_target(asked: Asked) -> dict[str, Any]:
    """Return what `etgraph.run` is to go by; `--eval` is an option of the stage that exports."""
    if asked.targets:
        from etgraph.lookup import get_target

        targets = [_evaluating(get_target(name)) if asked.eval_mode else get_target(name) for name in asked.targets]
        return {"target": targets[0] if len(targets) == 1 else targets}
    if not asked.eval_mode:
        return {"recipe": asked.recipe}
    from etgraph.api import DEFAULT_RECIPE, get_recipe

    return {"recipe": get_recipe(asked.recipe or DEFAULT_RECIPE).with_options("torch_export", eval_mode=True)}


def _evaluating(target: Target) -> Target:
    return replace(target, build=lambda: target.build().with_options("torch_export", eval_mode=True))
