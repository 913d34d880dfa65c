"""Targets: hardware by name, what its programs are made with, and what a host needs for that. Nothing is imported."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

from etgraph.errors import StageDeclarationError, UsageError
from etgraph.recipes import Recipe

__all__ = ["Needs", "Target", "not_installed"]

_NAME = re.compile(r"[a-z0-9_.]+-[a-z0-9_.]+-[a-z0-9_.]+-[a-z0-9_.]+")


@dataclass(frozen=True)
class Needs:
    """What a host must have; looked up by name and version, without importing or downloading any of it.

    Args:
        distributions: requirements as pip takes them, such as `openvino>=2025.4,<2026`.
        extra: the extra of etgraph that brings them.
        variable: an environment variable that must name a folder, and what must be in it, in words.
        python: the oldest Python that will do, and why, in words.
        systems: what `platform.system()` may be; any where empty.
        machines: what `platform.machine()` may be on Linux; any where empty.
    """

    distributions: tuple[str, ...] = ()
    extra: str = ""
    variable: tuple[str, str] | None = None
    python: tuple[tuple[int, int], str] | None = None
    systems: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()

    def missing(self) -> tuple[str, ...]:
        """Say what this host lacks, each in a few words; nothing when it has all."""
        lacks = []
        system, machine = platform.system(), platform.machine()
        if self.systems and system not in self.systems:
            lacks.append(f"runs on {' or '.join(self.systems)}, and this is {system}")
        elif self.machines and system == "Linux" and machine not in self.machines:
            lacks.append(f"on Linux it needs {' or '.join(self.machines)}, and this is {machine}")
        if self.python is not None and sys.version_info[:2] < self.python[0]:
            oldest, why = self.python
            lacks.append(f"Python {'.'.join(map(str, oldest))} ({why}), and this is {platform.python_version()}")
        lacks += filter(None, map(not_installed, self.distributions))
        if self.variable is not None:
            lacks += _variable_missing(*self.variable)
        return tuple(lacks)

    @property
    def install(self) -> str:
        """What to do to have it, in one line; empty where nothing can be done about it."""
        steps = []
        if any(map(not_installed, self.distributions)):
            named = " ".join(f'"{one}"' for one in self.distributions)
            steps.append(f'pip install "etgraph[{self.extra}]"' if self.extra else f"pip install {named}")
        if self.variable is not None and _variable_missing(*self.variable):
            steps.append(f"install {self.variable[1]} and set {self.variable[0]} to its folder; etgraph downloads none")
        if self.python is not None and sys.version_info[:2] < self.python[0]:
            steps.append(f"use Python {'.'.join(map(str, self.python[0]))} or later")
        return "; ".join(steps)


def not_installed(requirement: str) -> str:
    """Say how a requirement is not met in this environment; nothing when it is."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    wanted = requirement[len(name) :]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{requirement} is not installed"
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        # It comes with executorch. Without it, any version is taken for a good one.
        return ""
    fits = SpecifierSet(wanted).contains(version, prereleases=True)
    return "" if fits else f"{name} {version} is installed, and {wanted} is needed"


def _variable_missing(name: str, what: str) -> list[str]:
    value = os.environ.get(name, "")
    if value and os.path.isdir(value):
        return []
    return [f"{what} ({name} is {'not set' if not value else f'{value!r}, which is no folder'})"]


@dataclass(frozen=True)
class Target:
    """A named recipe for a piece of hardware.

    Args:
        name: `<os or board>-<arch>-<backend>-<precision>`, with the options that its recipe is given, if any.
        build: makes the recipe; called only when the target is used.
        backends: the backends that its programs use, in order: each takes what those before it left.
        to_lower: what a host needs to make its programs.
        to_run: what a host needs to execute them; None where only the device can.
        snr: the signal-to-noise ratio in dB, against the eager model, that is fit for its precision.
    """

    name: str
    build: Callable[[], Recipe]
    summary: str
    backends: tuple[str, ...]
    to_lower: Needs
    to_run: Needs | None
    snr: float

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name.partition("(")[0]):
            raise StageDeclarationError(
                f"a target cannot be named {self.name!r}",
                hint="Name it <os or board>-<arch>-<backend>-<precision> in lower case, as ios-arm64-coreml-fp16.",
            )
        if not self.backends:
            raise StageDeclarationError(f"target {self.name} names no backend", hint="Give backends=(...), in order.")

    @property
    def precision(self) -> str:
        """The last part of its name."""
        return self.name.partition("(")[0].rpartition("-")[2]

    def require(self) -> None:
        """Refuse to go on where this host lacks something to lower with.

        Raises:
            UsageError: one line that says what, and what to do.
        """
        lacks = self.to_lower.missing()
        if lacks:
            raise UsageError(
                f"target {self.name} cannot be lowered here: {'; '.join(lacks)}",
                hint=self.to_lower.install or "Lower it on another host.",
            )

    def why_not_run_here(self) -> str:
        """Say why this host cannot execute its programs; nothing when it can."""
        if self.to_run is None:
            return "only the device has its runtime"
        return "; ".join(self.to_run.missing())
