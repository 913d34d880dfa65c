"""What can go wrong, as types: every message says who, what was given, what was wanted and what to do."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArtifactFileError",
    "BackendUnavailableError",
    "CacheEntryError",
    "CacheMismatchError",
    "EtgraphError",
    "EtgraphWarning",
    "PlanError",
    "StageDeclarationError",
    "StageError",
    "Undescribable",
    "UntrustedFileError",
    "UsageError",
]


class EtgraphError(Exception):
    """The base of all errors that etgraph raises on purpose.

    `problem` is the message; `hint`, where there is one, says what to do and is shown on a line of its own.
    """

    exit_code = 1

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        #: The plan of the run that it ended, and what became of the steps before it; None and empty outside of a run.
        self.plan: Any = None
        self.steps: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.hint}" if self.hint else self.problem


class UsageError(EtgraphError):
    """The request itself is wrong: a wrong type, an unknown name, a missing input. Nothing was run."""

    exit_code = 2


class StageDeclarationError(UsageError):
    """A stage was declared against the rules; raised when it is declared, never when it runs."""


class PlanError(UsageError):
    """There is no way from what was given to what was asked for. Nothing was run."""


class BackendUnavailableError(UsageError):
    """This host's runtime lacks a backend or a kernel that a program needs to be executed."""


class ArtifactFileError(UsageError):
    """A file is not what it should be: foreign, damaged, truncated, or of another version."""


class UntrustedFileError(ArtifactFileError):
    """Loading this foreign file could run code that is inside it, and nobody said that it is trusted."""


class CacheEntryError(EtgraphError):
    """A cache entry was found damaged or gone when its bytes were asked for; to be treated as a miss."""


class CacheMismatchError(EtgraphError):
    """A cache entry was built again and came out different: what it depends on is not all in its key."""


class StageError(EtgraphError):
    """A stage failed while it worked on a program. The cause is chained as `__cause__`.

    `method`, `node` and `source_line` are the address inside the model where it is known, else empty.
    """

    def __init__(
        self,
        problem: str,
        *,
        stage: str,
        method: str = "",
        node: str = "",
        source_line: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(problem, hint=hint)
        self.stage = stage
        self.method = method
        self.node = node
        self.source_line = source_line
        #: What the stage was given, as the run held it; None where it is not known.
        self.last_good: Any = None

    def __str__(self) -> str:
        address = [f"stage {self.stage}"]
        if self.method:
            address.append(f"method {self.method}")
        if self.node:
            address.append(f"node {self.node}")
        lines = [f"{', '.join(address)}: {self.problem}"]
        if self.source_line:
            lines.append(f"  model source: {self.source_line}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class Undescribable(EtgraphError):
    """A value has no stable description, so whatever depends on it is run and not cached.

    `path` is where the value sits, as `partitioners[0].config`; `type_name` and `why` say what stopped it.
    `outside` is set where code reads something from outside, such as a file, the environment, the clock, or chance.
    """

    outside = False

    def __init__(self, why: str, *, path: str, type_name: str, hint: str = "") -> None:
        where = path or "the value itself"
        super().__init__(f"{where} ({type_name}) cannot be described: {why}", hint=hint)
        self.path = path
        self.type_name = type_name
        self.why = why


class EtgraphWarning(UserWarning):
    """Something that a user should know, though the result is right."""
