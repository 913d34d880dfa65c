"""Cache keys: a list of named parts for each step, so that a miss can be explained.

| part | what it is |
|---|---|
| `stage` | the stage's name and the kinds that it goes between |
| `code` | the stage's file with all of its project that it imports; a library's by its version |
| `toolchain.X` | the version of X; of etgraph itself its code, whole |
| `option X` | the description of an option; of a deferred one, the file that makes it |
| `input` | the fingerprint of the program that goes in; of an eager model, each of its parts |
| `debug` | stack traces and the like, only for a step whose options write them into its output |

Times, paths and the order of a set never enter. What has no description makes the step run uncached.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from etgraph.held import Held
from etgraph.identity import Description, describe, describe_files_of, differences, toolchain
from etgraph.owncode import describe_own_code
from etgraph.planner import PlannedStep
from etgraph.recipes import Deferred
from etgraph.registry import registry

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
    options = dict(planned.options)
    if stage.key_options is not None:
        options = dict(stage.key_options(options))
    for name, value in sorted(options.items()):
        described[f"option {name}"] = describe_option(name, value)
    described.update(given.identity())
    if stage.reads_debug is not None and stage.reads_debug(planned.options):
        described["debug"] = Description("debug", registry.service("debug_fingerprint")(given.artifact()))
    return Key(_digest(described), _text(described))


def describe_option(name: str, value: object) -> Description:
    """Describe an option; a deferred one by the file of the function that makes it."""
    if isinstance(value, Deferred):
        return describe_code(value.make)
    if isinstance(value, Mapping) and any(isinstance(one, Deferred) for one in value.values()):
        return Description("options", "", tuple((key, describe_option(key, one)) for key, one in value.items()))
    return describe(value, name)


def describe_code(function: Callable[..., Any]) -> Description:
    """Describe the code of a stage or of a deferred option: by its files, with what it captured."""
    assert isinstance(function, types.FunctionType)  # checked where stages and deferred options are declared
    by_files = describe_files_of(function)
    if function.__closure__ is None:
        return by_files
    # A stage made by another function: what it captured is not in its file.
    captured = {
        name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
    }
    return Description("closure", "", (("(function)", by_files), ("(captured)", describe(captured, "captured"))))


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
