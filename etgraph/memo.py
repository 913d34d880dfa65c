"""Running steps through the cache: reuse what is there, build the rest once, and say why."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from etgraph.artifact import Artifact, Later
from etgraph.declaration import listening, warn
from etgraph.encoding import can_be_kept, decode, encode, fingerprint_of_document
from etgraph.errors import CacheEntryError, CacheMismatchError, Undescribable, UsageError
from etgraph.held import Held
from etgraph.keys import Key, key_of, why_changed
from etgraph.owncode import describe_own_code
from etgraph.planner import PlannedStep
from etgraph.registry import registry
from etgraph.store import Cache, Entry

__all__ = ["Memo", "Outcome"]

#: Runs a step on an artifact.
Build = Callable[[PlannedStep, Artifact], Artifact]


class Outcome:
    """What became of a step: what it gave, whether it was reused, and why."""

    def __init__(self, held: Held, reused: bool, reason: str) -> None:
        self.held = held
        self.reused = reused
        self.reason = reason


class Memo:
    """The cache as one run sees it.

    Args:
        cache: where entries are.
        refresh: build everything anew and store it.
        check: build what is reused too, and compare.
    """

    def __init__(self, cache: Cache, *, refresh: bool = False, check: bool = False) -> None:
        self.cache = cache
        self.refresh = refresh
        self.check = check

    def step(self, planned: PlannedStep, given: Held, build: Build) -> Outcome:
        """Reuse or run one step."""
        try:
            key = key_of(planned, given)
        except (Undescribable, UsageError) as error:
            held = Held.of(build(planned, given.artifact()), given.label)
            return Outcome(held, False, f"ran uncached: {error}")
        step_id = f"{planned.stage}/{planned.consumes}/{given.label}"
        if not can_be_kept(planned.produces):
            held = Held.of(build(planned, given.artifact()), given.label)
            # What it is, is what made it: the steps after it can be reused though it cannot be kept itself.
            held.is_what_made_it(key.digest)
            return Outcome(held, False, f"ran: a program at {planned.produces} is not kept")
        entry = None if self.refresh else self.cache.peek(key.digest)
        why = "asked to refresh" if self.refresh else why_changed(self.cache.last_parts(step_id), key.parts)
        self.cache.remember(step_id, key.parts)
        if entry is not None:
            return self._reused(entry, planned, given, build)
        with self.cache.building(key.digest):
            entry = None if self.refresh else self.cache.peek(key.digest)
            if entry is not None:
                return self._reused(entry, planned, given, build)
            return Outcome(self._built(planned, given, build, key), False, why)

    def peek(self, planned: PlannedStep, given: Held) -> Held | None:
        """Return what a step would give, if it is in the cache; for planning."""
        try:
            entry = self.cache.peek(key_of(planned, given).digest)
        except (Undescribable, UsageError):
            return None
        if entry is None:
            return None
        return self._held(entry, planned, given, lambda planned, artifact: artifact)

    # -- building -----------------------------------------------------------------------------------------------

    def _built(self, planned: PlannedStep, given: Held, build: Build, key: Key) -> Held:
        started = time.perf_counter()
        with listening() as told:
            artifact = build(planned, given.artifact())
        seconds = time.perf_counter() - started
        held = Held.of(artifact, given.label)
        own_inputs = artifact.example_inputs != given.artifact().example_inputs
        try:
            describe_own_code()  # still what the key says
            document, blobs, holding = _encoded(artifact, own_inputs)
        except (UsageError, Undescribable):
            held.is_what_made_it(key.digest)
            return held
        fingerprint = fingerprint_of_document(document)
        about = {
            "stage": planned.stage,
            "consumes": str(planned.consumes),
            "produces": str(planned.produces),
            "label": given.label,
            "methods": list(artifact.methods),
            "holding": list(holding),
            "own_inputs": own_inputs,
            "fingerprint": fingerprint,
            "seconds": seconds,
            "told": told,
            "parts": dict(key.parts),
        }
        entry = self.cache.store(key.digest, document, blobs, about=about)
        held.is_program(fingerprint)
        if entry is not None:
            held.can_be_loaded(self._loader(entry, planned, given, build))
        return held

    # -- reusing ---------------------------------------------------------------------------------------------------

    def _reused(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> Outcome:
        if self.check:
            self._compare(entry, planned, given, build)
        for message in entry.about["told"]:
            warn(message)
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
        held = self._held(entry, planned, given, build)
        return Outcome(held, True, f"reused what was built on {when}: nothing that it depends on has changed")

    def _held(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> Held:
        held = Held(
            planned.produces,
            entry.about["methods"],
            provenance=(*given.provenance, planned.provenance),
            label=given.label,
            load=self._loader(entry, planned, given, build),
        )
        held.is_program(entry.about["fingerprint"])
        return held

    def _loader(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> Callable[[], Artifact]:
        return lambda: self._load(entry.key, planned, given, build)

    def _load(self, key: str, planned: PlannedStep, given: Held, build: Build) -> Artifact:
        """Read an entry, every byte verified; when it is damaged or gone, build the step again."""
        entry = self.cache.lookup(key)
        if entry is not None:
            try:
                artifact = decode(entry.document, _EntryBlobs(entry))
            except CacheEntryError:
                entry = None
        if entry is None:
            return self._built(planned, given, build, key_of(planned, given)).artifact()
        if not entry.about["own_inputs"]:
            artifact = _with_inputs(artifact, given, entry.about["holding"])
        return replace(artifact, provenance=(*given.provenance, planned.provenance))

    def _compare(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> None:
        document = _encoded(build(planned, given.artifact()), entry.about["own_inputs"])[0]
        fingerprint = fingerprint_of_document(document)
        if fingerprint != entry.about["fingerprint"]:
            raise CacheMismatchError(
                f"stage {planned.stage} gives {fingerprint[:16]} now, and {entry.about['fingerprint'][:16]} is in the "
                "cache under the same key",
                hint="The stage is not deterministic, or something that it depends on is not in its key. Run with "
                "--refresh to replace the entry, and report it.",
            )


def _encoded(artifact: Artifact, own_inputs: bool) -> tuple[Any, Any, list[str]]:
    """Encode an artifact for the cache: without its example inputs, unless they are of this step's making."""
    holding: list[str] = []
    if not own_inputs:
        artifact, holding = registry.service("without_inputs")(artifact)
    document, blobs = encode(artifact)
    return document, blobs, holding


def _with_inputs(artifact: Artifact, given: Held, holding: list[str]) -> Artifact:
    """Give a program from the cache the example inputs of the run that it serves, when somebody asks for them."""
    if holding:
        served: Artifact = registry.service("with_inputs")(artifact, given.artifact().example_inputs, holding)
        return served
    return replace(artifact, example_inputs=Later(lambda: given.artifact().example_inputs))


class _EntryBlobs:
    """The blobs of a cache entry, as a decoder asks for them."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def view(self, digest: str) -> memoryview:
        """Give the blob to read."""
        return self._entry.blob(digest)

    def private(self, digest: str) -> memoryview:
        """Give the blob to write to; entries map copy-on-write, and each is decoded once."""
        return self._entry.blob(digest)

    def copy(self, digest: str) -> bytes:
        """Give the blob as `bytes` of its own."""
        return bytes(self._entry.blob(digest))


def opened(cache: Any) -> Cache | None:
    """Return the cache that `etgraph.run(cache=)` means: True for the default one, False for none."""
    if cache is False or cache is None:
        return None
    if cache is True:
        return Cache()
    if isinstance(cache, Cache):
        return cache
    raise UsageError(
        f"cache={cache!r} is a {type(cache).__name__}", hint="Give True, False, or etgraph.Cache(directory)."
    )
