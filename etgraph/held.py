"""A program on its way through a run: in memory, in a file, or in the cache, and loaded only when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from etgraph.artifact import Artifact, Kind, Provenance
from etgraph.encoding import fingerprint
from etgraph.errors import Undescribable
from etgraph.identity import Description, describe, describe_modules
from etgraph.registry import registry

__all__ = ["Held", "identity_of", "input_values_of", "inputs_identity", "program_identity"]


class Held:
    """What the planner and the cache need to know of an artifact, and a way to have the artifact itself.

    Args:
        kind: its kind.
        methods: the names of its methods.
        provenance: the steps that led to it.
        label: what the user would call it, to tell runs of different models apart; it enters no key.
        artifact: the artifact, where it is in memory.
        load: makes or reads the artifact, where it is not.
        identity: tells what it is, as parts of a key; by default worked out from the artifact.
        input_values: describes its example inputs, numbers and all; by default worked out from the artifact.
        in_file: it comes from a file, which nobody else writes to.
    """

    def __init__(
        self,
        kind: str,
        methods: Iterable[str],
        *,
        provenance: tuple[Provenance, ...] = (),
        label: str = "",
        artifact: Artifact | None = None,
        load: Callable[[], Artifact] | None = None,
        identity: Callable[[], Mapping[str, Description]] | None = None,
        input_values: Callable[[], Description] | None = None,
        in_file: bool = False,
    ) -> None:
        self.kind = Kind(kind)
        self.methods = tuple(methods)
        self.provenance = provenance
        self.label = label
        self.in_file = in_file
        #: What it takes in the cache, in bytes, and how long the stage took that made it; 0 where it is not kept.
        self.kept_bytes = 0
        self.built_seconds = 0.0
        self._artifact = artifact
        self._load = load
        self._identify = identity
        self._identity: Mapping[str, Description] | None = None
        self._describe_inputs = input_values
        self._inputs_of: Held = self
        self._input_values: Description | None = None
        self._debug: Description | None = None

    @classmethod
    def of(cls, artifact: Artifact, label: str = "") -> Held:
        """Hold an artifact that is in memory."""
        return cls(artifact.kind, artifact.methods, provenance=artifact.provenance, label=label, artifact=artifact)

    @property
    def passed(self) -> frozenset[str]:
        """The kinds that it is known to have passed, its own included."""
        return frozenset(step.kind for step in self.provenance) | {self.kind}

    def artifact(self) -> Artifact:
        """Return the artifact; load it when it is not in memory."""
        if self._artifact is None:
            assert self._load is not None
            self._artifact = self._load()
        return self._artifact

    def identity(self) -> Mapping[str, Description]:
        """Return what it is, as named parts of a key.

        Raises:
            Undescribable: some part of an eager model cannot be followed with certainty.
            UsageError: something in a program cannot be encoded.
        """
        if self._identity is None:
            self._identity = self._identify() if self._identify else identity_of(self.artifact())
        return self._identity

    def input_values(self) -> Description:
        """Describe its example inputs, numbers and all.

        Raises:
            Undescribable: one of them has no description.
        """
        if self._inputs_of is not self:
            return self._inputs_of.input_values()
        if self._input_values is None:
            describe_them = self._describe_inputs or (lambda: input_values_of(self.artifact()))
            self._input_values = describe_them()
        return self._input_values

    def example_inputs(self) -> Mapping[str, Any]:
        """Return its example inputs; where they are those of what it was made from, it need not be loaded for that."""
        return self._inputs_of.artifact().example_inputs

    def debug(self) -> Description:
        """Say what only people and tools read of it, such as stack traces.

        Raises:
            Undescribable: it is an eager model; which lines its code stands on has no part in its description.
        """
        if self.kind == "module":
            raise Undescribable(
                "stack traces are to be written into the program, and in which lines code stands is not described",
                path="the model",
                type_name="module",
                hint="It is exported each time; with emit_stacktrace=False it need not be.",
            )
        if self._debug is None:
            self.has_debug(registry.service("debug_fingerprint")(self.artifact()))
            assert self._debug is not None
        return self._debug

    def has_debug(self, digest: str) -> None:
        """Say what only people and tools read of it by its digest."""
        self._debug = Description("debug", digest, shown=digest[:16])

    def is_program(self, digest: str) -> None:
        """Say what it is by the fingerprint of its program, without example inputs."""
        self._identity = program_identity(digest)

    def is_what_made_it(self, key: str) -> None:
        """Say what it is by the key of the step that made it, for what has no fingerprint of its own."""
        self._identity = {"input": Description("key", key, shown=key[:16])}

    def has_inputs(self, digest: str) -> None:
        """Say what its example inputs are by the digest of their description."""
        self._input_values = inputs_identity(digest)

    def has_inputs_of(self, other: Held) -> None:
        """Say that its example inputs are those of what it was made from."""
        self._inputs_of = other._inputs_of

    def is_as(self, other: Held) -> None:
        """Say that it is what was made in its place."""
        self._identity, self._identify = other._identity, other._identify
        self._input_values, self._describe_inputs = other._input_values, other._describe_inputs
        self._inputs_of = self if other._inputs_of is other else other._inputs_of
        self._debug = other._debug

    def can_be_loaded(self, load: Callable[[], Artifact]) -> None:
        """Say how the artifact can be had again after it was released."""
        self._load = load

    def release(self) -> None:
        """Let go of the artifact, if it can be had again."""
        if self._load is not None:
            self._artifact = None


def identity_of(artifact: Artifact) -> Mapping[str, Description]:
    """Say what an artifact is: a program by its fingerprint, an eager model part by part.

    Of example inputs, what an export depends on enters: how they are nested, plain values, and of tensors dtype,
    shape and layout. `torch.export` traces with fake tensors, so the numbers in them change no program.
    """
    if artifact.kind != "module":
        bare = registry.service("without_inputs")(artifact)[0]
        return program_identity(fingerprint(bare))
    parts = describe_modules(artifact.methods, "model")
    specs = registry.service("input_specs")(artifact)
    belongings: dict[str, Any] = {
        "example inputs": specs,
        "dynamic shapes": dict(artifact.dynamic_shapes),
        "constant methods": dict(artifact.constant_methods),
    }
    parts.update((name, describe(value, name)) for name, value in belongings.items())
    return parts


def input_values_of(artifact: Artifact) -> Description:
    """Describe an artifact's example inputs, numbers and all, with those that its programs hold themselves."""
    return inputs_identity(describe(registry.service("input_values")(artifact), "example inputs").digest)


def inputs_identity(digest: str) -> Description:
    """Say what example inputs are by the digest of their description."""
    return Description("inputs", digest, shown=digest[:16])


def program_identity(digest: str) -> Mapping[str, Description]:
    """Say what a program is by its fingerprint."""
    return {"input": Description("program", digest, shown=digest[:16])}
