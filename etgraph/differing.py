"""`etgraph.diff`: how two programs differ."""

from __future__ import annotations

import os
from typing import Any

from etgraph.artifact import Artifact
from etgraph.difference import TOPICS, Difference, ProgramChange, Side
from etgraph.errors import EtgraphError, Undescribable, UsageError
from etgraph.held import identity_of
from etgraph.identity import differences
from etgraph.registry import registry
from etgraph.sources import artifact_of

__all__ = ["diff"]


def diff(a: Any, b: Any, *, names: tuple[str, str] | None = None, trust: bool = False) -> Difference:
    """Compare two programs of any kinds, each given as anything that `etgraph.run` takes.

    Args:
        names: what to call them; paths are called by themselves, everything else `a` and `b`.
        trust: load foreign files even if that may run code which is inside them.

    Returns:
        operators added and gone, moved into or out of delegates, or called with other constants; weights, inputs,
        outputs, options, sizes and versions that changed. It is `same` where nothing did.
    """
    called = names or (_called(a, "a"), _called(b, "b"))
    first, second = artifact_of(a, trust=trust), artifact_of(b, trust=trust)
    sides = _side(called[0], first), _side(called[1], second)
    if sides[0].fingerprint and sides[0].fingerprint == sides[1].fingerprint:
        return Difference(*sides, ())
    changes, notes = registry.service("differences")(first, second)
    if first.kind == second.kind == "module":
        changes += _code(first, second, notes)
    changes += _versions(a, b)
    if not changes and sides[0].fingerprint and sides[1].fingerprint:
        # Never to be called equal: something that enters the fingerprint is not among what is compared.
        changes.append(ProgramChange("bytes", "", "fingerprint", sides[0].fingerprint, sides[1].fingerprint))
    order = list(TOPICS)
    return Difference(*sides, tuple(sorted(changes, key=lambda change: order.index(change.topic))), tuple(notes))


def _called(given: Any, otherwise: str) -> str:
    return os.fspath(given) if isinstance(given, str | os.PathLike) else otherwise


def _side(name: str, artifact: Artifact) -> Side:
    try:
        return Side(name, str(artifact.kind), artifact.fingerprint)
    except EtgraphError as error:
        return Side(name, str(artifact.kind), "", error.problem)


def _code(a: Artifact, b: Artifact, notes: list[str]) -> list[ProgramChange]:
    """Compare eager models by what the cache knows them by: their code, and what they hold besides weights."""
    try:
        before, after = (_parts(one) for one in (a, b))
    except (Undescribable, UsageError) as error:
        notes.append(f"the code of the models is not compared: {error.problem}")
        return []
    # Weights are compared number by number.
    return [
        ProgramChange("code", "", one.path.removesuffix("(code)") or one.path, one.old, one.new)
        for one in differences(before, after)
        if not (one.old or one.new or "").startswith(("Parameter ", "Tensor ", "Buffer "))
    ]


def _parts(artifact: Artifact) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, description in identity_of(artifact).items():
        found.update(description.parts(name))
    return found


def _versions(a: Any, b: Any) -> list[ProgramChange]:
    """Compare the versions that two files of etgraph's were written with."""
    known = [registry.service("file_versions")(one) if isinstance(one, str | os.PathLike) else {} for one in (a, b)]
    if not all(known):
        return []
    names = dict.fromkeys([*known[0], *known[1]])
    return [
        ProgramChange("versions", "", name, known[0].get(name), known[1].get(name))
        for name in names
        if known[0].get(name) != known[1].get(name)
    ]
