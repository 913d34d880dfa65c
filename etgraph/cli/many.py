"""`etgraph run` for several targets: one file for each, one table, and no failure that loses the others."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from etgraph.cli import verification
from etgraph.cli.beside import NOTHING, Beside
from etgraph.cli.delegation import share, taken
from etgraph.cli.job import Asked, Job, prepare
from etgraph.cli.outfile import file_name, made_folder
from etgraph.cli.output import Output
from etgraph.cli.plan import planned
from etgraph.cli.progress import Progress
from etgraph.cli.report import ReportFile
from etgraph.cli.resume import Dump, add_resume_command
from etgraph.errors import EtgraphError, StageError, UsageError
from etgraph.words import seconds, size, table

if TYPE_CHECKING:
    from etgraph.many import Results
    from etgraph.report import Told
    from etgraph.runner import Event

__all__ = ["execute", "folder", "refuse_single", "show_plans"]


def refuse_single(asked: Asked, *, trace_numerics: bool = False, beside: Beside = NOTHING) -> None:
    """Refuse flags that are about one way, where there are several."""
    flags = {"--trace-numerics": trace_numerics}
    flags.update({f"--{name}": True for name in beside.files()})
    for flag, given in flags.items():
        if given:
            raise UsageError(
                f"{flag} is about one target, and {len(asked.targets)} were given",
                hint="Give one --target, or leave it out.",
            )


def folder(given: str | None) -> Path:
    """Return the folder that the files go into, made when it is not there."""
    path = Path("." if given is None else given)
    if path.suffix in (".pte", ".etg", ".pt2") and not path.is_dir():
        raise UsageError(
            f"-o {path} names a file, and several targets make one each",
            hint=f"Name a folder: -o {path.with_suffix('')}",
        )
    return made_folder(path, "-o")


def show_plans(output: Output, asked: Asked) -> None:
    """Print the plan for every target, and what is wrong where there is none.

    Raises:
        typer.Exit: with the exit code of the first target for which there is no plan.
    """
    job = prepare(asked)
    rows: list[dict[str, Any]] = []
    for target in job.arguments["target"]:
        try:
            made = planned(replace(job, arguments={**job.arguments, "target": target}))
        except EtgraphError as error:
            rows.append({"target": target.name, "plan": None, "error": str(error), "exit_code": error.exit_code})
            output.say(f"no plan for {target.name}")
            output.note(f"error: {target.name}: {error}")
        else:
            rows.append({"target": target.name, "plan": made.to_dict(), "error": "", "exit_code": 0})
            output.say(made.explain())
        output.say()
    output.say("nothing was run (--dry-run)")
    output.document({"source": asked.reference.given, "targets": rows, "dry_run": True})
    failed = [row["exit_code"] for row in rows if row["error"]]
    if failed:
        raise typer.Exit(failed[0])


class _Dumps:
    """Writes the artifacts on the way to each target into a folder of that target's."""

    def __init__(self, folder: Path | None, stem: str) -> None:
        self.folder = folder
        self.stem = stem
        self.of: dict[str, Dump] = {}

    def __call__(self, event: Event) -> None:
        """Write what a step gave, once it has finished."""
        self.dump(event.target)(event)

    def dump(self, target: str) -> Dump:
        """Return what writes for one target; its folder is made when it is first needed."""
        if target not in self.of:
            folder = made_folder(self.folder / plain(target), "--dump-stages") if self.folder is not None else None
            self.of[target] = Dump(folder, self.stem)
        return self.of[target]


def execute(
    output: Output, asked: Asked, into: Path, page: ReportFile, *, verify: bool, dump: Path | None = None
) -> None:
    """Run for every target, write what succeeded, and print one table.

    Args:
        dump: the folder for artifacts on the way, in which each target has its own.

    Raises:
        typer.Exit: with 1 when a target failed, its program is not what the source computes, or the report could not
            be written.
    """
    import etgraph

    job = prepare(asked)
    if verify:
        verification.require_inputs(job.source, job.arguments)
    dumps = _Dumps(dump, asked.reference.stem)
    with Progress(output) as progress:

        def show(event: Event) -> None:
            progress(event)
            dumps(event)

        results = etgraph.run(job.source, **job.arguments, on_event=show)
    for name, failure in results.failures.items():
        if isinstance(failure, StageError):
            own = replace(job, asked=replace(asked, targets=(name,)))
            add_resume_command(failure, own, into / _file_name(asked, name), dumps.dump(name))
    rows = [_row(output, results, name, into, asked, verify, dumps.dump(name)) for name in results]
    reported = page.path is None or page.write(output, results, _told(page, output, job, results, rows))
    cells = [
        (
            row["target"],
            row["outcome"],
            size(row["bytes"]) if row["bytes"] else "",
            row["delegated"],
            seconds(row["seconds"]) if row["seconds"] is not None else "",
            row["error"].partition("\n")[0] or row["path"] or "",
        )
        for row in rows
    ]
    output.say(table(cells, header=("target", "", "size", "delegated", "time", ""), right=(2, 3, 4)))
    for row in rows:
        if row["error"]:
            output.note(f"error: {row['target']}: {row['error']}")
    output.document({"source": {"given": asked.reference.given, "kind": job.kind}, "targets": rows})
    if not reported or any(row["outcome"] != "done" for row in rows):
        raise typer.Exit(1)


def _row(
    output: Output, results: Results, name: str, into: Path, asked: Asked, verify: bool, dump: Dump
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "target": name, "outcome": "failed", "path": None, "bytes": 0, "delegated": "", "delegation": {},
        "seconds": None, "steps": [], "notes": [], "host_problem": "", "verification": None, "error": "",
        "exit_code": 0, "resume_command": "", "dumped": [str(path) for path in dump.files],
    }  # fmt: skip
    outcome = results.outcomes[name]
    if isinstance(outcome, EtgraphError):
        resume = getattr(outcome, "resume_command", "")
        return {**row, "error": str(outcome), "exit_code": outcome.exit_code, "resume_command": resume}
    file = into / _file_name(asked, name)
    try:
        outcome.save(file)
    except EtgraphError as error:
        return {**row, "error": str(error), "exit_code": error.exit_code}
    found = verification.verify(output, outcome, _snr(name)) if verify else None
    wrong = found is not None and found["passed"] is False
    for line in taken(outcome.delegation):
        output.note(f"{name}: {line}")
    for dumped in dump.files:
        output.note(f"{name}: dumped {dumped}")
    if outcome.host_problem:
        output.note(f"{name}: {outcome.host_problem}")
    return {
        **row,
        "outcome": "wrong" if wrong else "done",
        "path": str(file),
        "bytes": file.stat().st_size,
        "delegated": share(outcome.delegation),
        "delegation": outcome.delegation,
        "seconds": sum(step.seconds for step in outcome.steps),
        "steps": [asdict(step) for step in outcome.steps],
        "notes": list(outcome.plan.notes),
        "host_problem": outcome.host_problem,
        "verification": found,
        "error": "its outputs differ from those of the source by more than is fit for its precision" if wrong else "",
    }


def _told(page: ReportFile, output: Output, job: Job, results: Results, rows: list[dict[str, Any]]) -> dict[str, Told]:
    """Return what a report says of each target besides, and under the empty name of all of them."""
    targets = {target.name: target for target in job.arguments["target"]}
    told = {}
    for row in rows:
        files = {row["path"]: row["bytes"]} if row["path"] else {}
        outcome = results.outcomes[row["target"]]
        if isinstance(outcome, EtgraphError):
            told[row["target"]] = page.told()
            continue
        arguments = {"source": job.source, **job.arguments, "target": targets[row["target"]]}
        told[row["target"]] = page.told_of(None, outcome, arguments, files=files, verification=row["verification"])
    return {**told, "": page.told(output)}


def _file_name(asked: Asked, target: str) -> str:
    return file_name(f"{asked.reference.stem}.{plain(target)}", asked.to)


def plain(name: str) -> str:
    """Return the name of a target as part of a file name: options without the parentheses of a call."""
    return re.sub(r"[^\w.=-]+", "-", name).strip("-")


def _snr(name: str) -> float:
    from etgraph.lookup import get_target

    return get_target(name).snr
