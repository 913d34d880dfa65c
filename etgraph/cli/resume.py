"""Artifacts on the way as files, and the command that goes on from the last good one after a failure."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from etgraph.cli.job import Job
from etgraph.cli.outfile import file_name
from etgraph.cli.output import command_line
from etgraph.errors import StageError

if TYPE_CHECKING:
    from etgraph.runner import Event

__all__ = ["Dump", "add_resume_command"]


class Dump:
    """Writes every artifact on the way as `NAME.<n>.<kind>.<suffix>`; does nothing without a folder.

    A module is code and cannot be written; it is what the run began with.
    """

    def __init__(self, folder: Path | None, stem: str) -> None:
        self.folder = folder
        self.stem = stem
        self.files: list[Path] = []
        self.finished = 0

    def __call__(self, event: Event) -> None:
        """Write what a step gave, once it has finished."""
        if event.name != "step_finished":
            return
        self.finished += 1
        kind = str(event.planned.produces)
        if self.folder is None or kind == "module" or event.artifact is None:
            return
        path = self.folder / f"{self.stem}.{event.index + 1}.{kind}{Path(file_name('x', kind)).suffix}"
        event.artifact.save(path)
        self.files.append(path)


def add_resume_command(error: StageError, job: Job, file: Path, dump: Dump) -> None:
    """Give a stage's failure the command that goes on from the last good artifact, as part of its hint."""
    last = error.last_good
    kind = str(last.kind) if last is not None else ""
    if not dump.finished or kind == "module":
        command, how = command_line(without=("--refresh",)), "Nothing was finished before it. To try again:"
    elif dump.files:
        command = _from_file(dump.files[-1], job, file)
        how = f"To go on from the last good artifact, at {kind}:"
    elif last is not None and last._load is not None:
        # It can be loaded again, so it is in the cache; a step that could not be described is not.
        command = command_line(without=("--refresh",))
        how = f"To go on from the last good artifact, at {kind}, which is in the cache:"
    else:
        command = command_line(extra=("--dump-stages", f"{dump.stem}.stages"))
        how = "No intermediate artifact was kept. To keep each of them, and go on from the last good one:"
    error.hint = "\n  ".join(filter(None, (error.hint, how, f"  {command}")))
    error.resume_command = command  # type: ignore[attr-defined]


def _from_file(start: Path, job: Job, file: Path) -> str:
    asked = job.asked
    words = ["etgraph", "run", str(start)]
    if asked.recipe:
        words += ["--recipe", asked.recipe]
    for target in asked.targets:
        words += ["--target", target]
    if asked.to != "executorch":
        words += ["--to", asked.to]
    return shlex.join([*words, "-o", str(file)])
