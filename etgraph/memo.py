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
from etgraph.planned import PlannedStep
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
        if not can_be_kept(planned.produces):
            held = Held.of(build(planned, given.artifact()), given.label)
            if planned.produces != "module":
                # What it is, is what made it: the steps after it can be reused though it cannot be kept itself.
                # An eager module is described itself: what made it may have drawn random numbers.
                held.is_what_made_it(key.digest)
            return Outcome(held, False, f"ran: a program at {planned.produces} is not kept")
        entry = None if self.refresh else self.cache.peek(key.digest)
        if entry is None:
            with self.cache.building(key.digest):
                # Another process may have built it meanwhile.
                entry = None if self.refresh else self.cache.peek(key.digest)
                if entry is None:
                    why = self.why(planned, given, key)
                    held = self._built(planned, given, build)
                    self.cache.remember(_step_id(planned, given), key.parts)
                    return Outcome(held, False, why)
        outcome = self._reused(entry, planned, given, build)
        self.cache.remember(_step_id(planned, given), key.parts)
        return outcome

    def why(self, planned: PlannedStep, given: Held, key: Key) -> str:
        """Say why a step whose result is not in the cache is to run."""
        if self.refresh:
            return "asked to refresh"
        return why_changed(self.cache.last_parts(_step_id(planned, given)), key.parts)

    def peek(self, planned: PlannedStep, given: Held) -> Held | None:
        """Return what a step would give, if it is in the cache; for planning. Nothing is built or stored."""
        return self.foresee(planned, given)[0]

    def foresee(self, planned: PlannedStep, given: Held) -> tuple[Held | None, str]:
        """Return what a step would give where that is in the cache, and why it would be reused or would run."""
        try:
            key = key_of(planned, given)
            entry = None if self.refresh else self.cache.peek(key.digest)
        except (Undescribable, UsageError) as error:
            return None, f"it would run uncached: {error}"
        except CacheEntryError as error:
            return None, f"its key is not known: {error.problem}"
        if not can_be_kept(planned.produces):
            return None, f"it runs each time: a program at {planned.produces} is not kept"
        if entry is None:
            return None, self.why(planned, given, key)
        return self._held(entry, planned, given, _refuse_to_build), _since(entry)

    # -- building -----------------------------------------------------------------------------------------------

    def _built(self, planned: PlannedStep, given: Held, build: Build) -> Held:
        source = given.artifact()
        # Only now: what goes in may have been lost, built again, and come out different. And before the stage runs,
        # which may write to options of which there is no faithful copy.
        key = key_of(planned, given)
        started = time.perf_counter()
        with listening() as told:
            artifact = build(planned, source)
        seconds = time.perf_counter() - started
        held = Held.of(artifact, given.label)
        own_inputs = artifact.example_inputs != source.example_inputs
        if not own_inputs:
            held.has_inputs_of(given)
        try:
            describe_own_code()  # still what the key says
        except Undescribable:
            return held
        try:
            document, blobs, holding = _encoded(artifact, own_inputs)
            input_values = held.input_values().own if own_inputs else ""
            debug = held.debug().own if planned.for_debug else ""
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
            "input_values": input_values,
            "debug": debug,
            "fingerprint": fingerprint,
            "seconds": seconds,
            "told": told,
            "parts": dict(key.parts),
        }
        entry = self.cache.store(key.digest, document, blobs, about=about)
        held.is_program(fingerprint)
        if entry is not None:
            self._identify(held, entry, planned, given, build)
        return held

    # -- reusing ---------------------------------------------------------------------------------------------------

    def _reused(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> Outcome:
        if self.check:
            self._compare(entry, planned, given, build)
        for message in entry.about["told"]:
            warn(message)
        return Outcome(self._held(entry, planned, given, build), True, _since(entry))

    def _held(self, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> Held:
        held = Held(
            planned.produces,
            entry.about["methods"],
            provenance=(*given.provenance, planned.provenance),
            label=given.label,
        )
        self._identify(held, entry, planned, given, build)
        return held

    def _identify(self, held: Held, entry: Entry, planned: PlannedStep, given: Held, build: Build) -> None:
        held.is_program(entry.about["fingerprint"])
        held.kept_bytes = entry.nbytes
        held.built_seconds = float(entry.about["seconds"])
        if entry.about["own_inputs"]:
            held.has_inputs(entry.about["input_values"])
        else:
            held.has_inputs_of(given)
        if entry.about["debug"]:
            held.has_debug(entry.about["debug"])
        held.can_be_loaded(lambda: self._load(held, entry.key, planned, given, build))

    def _load(self, held: Held, key: str, planned: PlannedStep, given: Held, build: Build) -> Artifact:
        """Read an entry, every byte verified; when it is damaged or gone, build the step again."""
        artifact = self._read(key, planned, given)
        if artifact is None:
            with self.cache.building(key):
                # Another process may have built it again meanwhile.
                artifact = self._read(key, planned, given)
                if artifact is None:
                    self.cache.note(f"what {planned.stage} gave was lost from the cache during the run; built again")
                    again = self._built(planned, given, build)
                    held.is_as(again)
                    artifact = again.artifact()
        return artifact

    def _read(self, key: str, planned: PlannedStep, given: Held) -> Artifact | None:
        entry = self.cache.lookup(key)
        if entry is None:
            return None
        try:
            artifact = decode(entry.document, _EntryBlobs(entry))
        except CacheEntryError:
            return None
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


def _step_id(planned: PlannedStep, given: Held) -> str:
    return f"{planned.stage}/{planned.consumes}/{given.label}"


def _since(entry: Entry) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
    return f"reused what was built on {when}: nothing that it depends on has changed"


def _refuse_to_build(planned: PlannedStep, artifact: Artifact) -> Artifact:
    raise CacheEntryError(f"what {planned.stage} gave is lost from the cache, and nothing is built while planning")


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
        served: Artifact = registry.service("with_inputs")(artifact, given.example_inputs(), holding)
        return served
    return replace(artifact, example_inputs=Later(given.example_inputs))


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
