"""Cache keys: a list of named parts for each step, so that a miss can be explained.

| part | what it is |
|---|---|
| `stage` | the stage's name and the kinds that it goes between |
| `code` | the stage's file with all that it imports of its project, defaults and captures; a library's by version |
| `toolchain.X` | the version of X; of etgraph itself its code, whole |
| `codec` | the code that keeps what the stage gives, described as the stage's |
| `option X` | the description of an option; of a deferred one, the file that makes it |
| `input` | the fingerprint of the program that goes in; of an eager model, each of its parts |
| `input values` | numbers in the example inputs, unless the stage is known to look at none |
| `provenance` | the steps that led to the program, only for a stage that looks at them |
| `debug` | stack traces and the like, only where the options of this step or a later one write them into its output |

Times, paths and the order of a set never enter. What has no description makes the step run uncached.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from etgraph.errors import Undescribable, UsageError
from etgraph.held import Held
from etgraph.identity import Description, describe, describe_files_of, differences, toolchain
from etgraph.owncode import describe_own_code
from etgraph.planned import PlannedStep
from etgraph.recipes import Deferred
from etgraph.registry import Codec, registry

__all__ = ["Key", "key_of", "why_changed"]


@dataclass(frozen=True)
class Key:
    """A cache key: its digest, and its parts as text for comparison."""

    digest: str
    parts: Mapping[str, str]


def key_of(planned: PlannedStep, given: Held) -> Key:
    """Make the key of a step on what goes into it.

    Raises:
        Undescribable: an option, or a part of the model, has no description.
    """
    stage = planned.definition
    described: dict[str, Description] = {
        "stage": Description("stage", f"{stage.name}: {planned.consumes} -> {planned.produces}"),
        "code": describe_code(stage.function),
    }
    for name, version in toolchain().items():
        described[f"toolchain.{name}"] = Description("version", version)
    described["toolchain.etgraph code"] = describe_own_code()
    for name, value in sorted(_options_that_count(planned).items()):
        described[f"option {name}"] = describe_option(name, value)
    if planned.produces in registry.codecs:
        described["codec"] = _describe_codec(registry.codecs[planned.produces])
    described.update(given.identity())
    if _asked(stage.reads_inputs, planned):
        described["input values"] = given.input_values()
    if stage.reads_provenance:
        steps = [(step.stage, str(step.kind), step.options) for step in given.provenance]
        described["provenance"] = describe(steps, "provenance")
    if planned.for_debug:
        described["debug"] = given.debug()
    return Key(_digest(described), _text(described))


def _describe_codec(codec: Codec) -> Description:
    """Describe how the result is written and read back; of a kind of our own, that is our own code."""
    functions = {"encode": codec.encode, "decode": codec.decode, "meaning": codec.meaning}
    described = {
        name: describe_code(one) if isinstance(one, types.FunctionType) else describe(one, name)
        for name, one in functions.items()
    }
    return Description("codec", "", tuple((f"({name})", one) for name, one in described.items()))


def _options_that_count(planned: PlannedStep) -> Mapping[str, Any]:
    narrow = planned.definition.key_options
    return planned.options if narrow is None else _answer(narrow, planned)


def _asked(whether: bool | Callable[[Mapping[str, Any]], bool] | None, planned: PlannedStep) -> bool:
    return bool(_answer(whether, planned) if callable(whether) else whether)


def _answer(question: Callable[[Mapping[str, Any]], Any], planned: PlannedStep) -> Any:
    """Ask a stage about its options; on options that it cannot read it is the stage that will complain."""
    try:
        return question(planned.options)
    except (Undescribable, UsageError):
        raise
    except Exception as error:
        raise Undescribable(
            f"what of them counts cannot be told: {type(error).__name__}: {error}",
            path=f"the options of {planned.stage}",
            type_name="options",
        ) from error


def describe_option(name: str, value: object) -> Description:
    """Describe an option; a deferred one by the code of the function that makes it, or where that reads something from
    outside, by what it makes.
    """
    if isinstance(value, Deferred):
        try:
            return describe_code(value.make)
        except Undescribable:
            return describe(value.make(), name)
    if isinstance(value, Mapping) and any(isinstance(one, Deferred) for one in value.values()):
        return Description("options", "", tuple((key, describe_option(key, one)) for key, one in value.items()))
    return describe(value, name)


def describe_code(function: Callable[..., Any]) -> Description:
    """Describe the code of a stage or of a deferred option: by its files, with what it captured."""
    assert isinstance(function, types.FunctionType)  # checked where stages and deferred options are declared
    by_files = describe_files_of(function)
    if by_files.kind == "library":
        return by_files
    # What a function made by another one captured, and defaults that were computed, are not in its file.
    own = {"captured": _captured(function), "defaults": [function.__defaults__, function.__kwdefaults__]}
    described = [(f"({name})", describe(value, name)) for name, value in own.items()]
    return Description("function", function.__qualname__, (("(function)", by_files), *described, *_reached(function)))


def _captured(function: types.FunctionType) -> dict[str, Any]:
    captured = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a cell that nothing was put into yet
            captured[name] = cell.cell_contents
    return captured


def _reached(function: types.FunctionType) -> list[tuple[str, Description]]:
    """Describe the values that a function reaches at this moment, such as globals that were changed since the import.

    Where they cannot be followed, as where it asks for attributes by name, its file and those that it imports speak for
    it. They do not speak for what it reads from outside.
    """
    try:
        return [("(reached)", describe(function, function.__qualname__))]
    except Undescribable as error:
        if error.outside:
            raise
        return []


def _digest(described: Mapping[str, Description]) -> str:
    hasher = blake3()
    for name, description in sorted(described.items()):
        hasher.update(len(name.encode()).to_bytes(8, "little") + name.encode() + bytes.fromhex(description.digest))
    return str(hasher.hexdigest())


def _text(described: Mapping[str, Description]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, description in described.items():
        found.update(description.parts(name))
    return found


def why_changed(old: Mapping[str, str] | None, new: Mapping[str, str]) -> str:
    """Say why a key is not the last one of the same step: the first parts that changed, and how many more."""
    if old is None:
        return "it has not run on this before"
    changes = differences(old, new)
    if not changes:
        return "its entry is gone from the cache"
    shown = "; ".join(str(change) for change in changes[:3])
    more = f"; and {len(changes) - 3} more" if len(changes) > 3 else ""
    return shown + more
