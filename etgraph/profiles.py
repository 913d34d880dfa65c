"""Where the time and the memory of a `.pte` go on this host: what `etgraph.profile` finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Holder", "KernelTime", "MemoryArena", "MethodProfile", "Profile"]


@dataclass(frozen=True)
class KernelTime:
    """One kernel call of a method, or one kernel inside of a delegate.

    Args:
        instruction: the number of the instruction.
        name: the kernel, such as `aten::mean.out`; of a delegate its backend; inside one, as the backend calls it.
        inside: the backend of the delegate that it runs inside of; empty for an instruction of its own.
        milliseconds, least, most: the median over the runs, the shortest and the longest.
        share: of the time of all instructions; None inside of a delegate.
        operators: the operators of the edge program that it stands for, where an ETRecord says so.
        source_lines: the lines of the model that these come from.
    """

    instruction: int
    name: str
    inside: str
    milliseconds: float
    least: float
    most: float
    share: float | None = None
    operators: tuple[str, ...] = ()
    source_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Holder:
    """A tensor that takes room in an arena.

    Args:
        value: its number in the program.
        what: dtype and sizes (the largest, where they are dynamic).
        nbytes: its size in bytes.
        role: `input 0`, `output 0`, `buffer`, or what writes it.
        source_lines: the lines of the model that it comes from, where an ETRecord says so.
    """

    value: int
    what: str
    nbytes: int
    role: str
    source_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryArena:
    """One planned arena of a method.

    Args:
        memory_id: its number in the program, from 1.
        nbytes: what the runtime sets aside for it.
        peak_bytes: the most that tensors hold of it at a time.
        peak_at: the instruction where they do.
        holders: who holds it then, the largest first.
    """

    memory_id: int
    nbytes: int
    peak_bytes: int
    peak_at: str
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True)
class MethodProfile:
    """One method: how long it takes to load and to run, kernel by kernel, and its memory.

    Args:
        load_milliseconds: to load the method, its delegates initialised.
        run_milliseconds: the median over the runs, the first left out.
        kernels: in the order in which they run, those of a delegate after it.
    """

    method: str
    load_milliseconds: float
    run_milliseconds: float
    kernels: tuple[KernelTime, ...]
    arenas: tuple[MemoryArena, ...]


@dataclass(frozen=True)
class Profile:
    """What `etgraph.profile` found.

    Args:
        methods: method name to its profile.
        program_bytes: the size of the `.pte`.
        runs: how many runs were timed.
        inputs: which inputs they were on.
        notes: what is not known, and how to come to know it.
    """

    methods: Mapping[str, MethodProfile]
    program_bytes: int
    runs: int
    inputs: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        return {**asdict(self), "methods": {name: asdict(method) for name, method in self.methods.items()}}

    def __str__(self) -> str:
        from etgraph.profiles_text import profile_text

        return profile_text(self)
