"""Artifacts as documents and blobs: through the codec of their kind, and digested by what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from blake3 import blake3

from etgraph.artifact import Artifact
from etgraph.blobs import BlobSource
from etgraph.errors import UsageError
from etgraph.registry import registry

__all__ = ["can_be_kept", "decode", "encode", "fingerprint", "fingerprint_of_document"]


def can_be_kept(kind: str) -> bool:
    """Whether there is a codec for a kind, so that its artifacts can be cached and put in files."""
    registry.load_plugins()
    return kind in registry.codecs


def encode(artifact: Artifact) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Encode an artifact as a JSON-able document, with its kind, and the blobs that the document names by digest."""
    if not can_be_kept(artifact.kind):
        raise UsageError(
            f"an artifact of kind {artifact.kind!r} cannot be kept in a file; {', '.join(registry.codecs)} can",
            hint="Export a module first: etgraph.run(..., to='exported'). For a kind of your own, register "
            "etgraph.codec(kind, ...).",
        )
    document, blobs = registry.codecs[artifact.kind].encode(artifact)
    return {**document, "kind": str(artifact.kind)}, blobs


def decode(document: Mapping[str, Any], blobs: BlobSource) -> Artifact:
    """Make the artifact that was encoded; nothing from the document is executed."""
    kind = document.get("kind")
    if not isinstance(kind, str) or not can_be_kept(kind):
        raise UsageError(
            f"nothing that is installed reads a program of kind {kind!r}",
            hint="Install the package that declares this kind; `etgraph list kinds` shows what there is.",
        )
    return registry.codecs[kind].decode(document, blobs)


def fingerprint(artifact: Artifact) -> str:
    """Digest what an artifact is: equal for equal programs, in every process."""
    return fingerprint_of_document(encode(artifact)[0])


def fingerprint_of_document(document: Mapping[str, Any]) -> str:
    """Digest what the artifact in a document is, without decoding it."""
    meaning: Callable[[Mapping[str, Any]], Any] = registry.codecs[document["kind"]].meaning
    text = json.dumps([document["kind"], meaning(document)], separators=(",", ":"), sort_keys=True, allow_nan=False)
    return str(blake3(text.encode()).hexdigest())
