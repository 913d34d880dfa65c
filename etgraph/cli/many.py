"""`etgraph run` for several targets: one file for each, one table, and no failure that loses the others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from etgraph.cli import verification
from etgraph.cli.beside import NOTHING, Beside
from etgraph.cli.delegation import share, taken
from etgraph.cli.job import Asked, Job, prepare
from etgraph.cli.outfile import check_writable, file_name
from etgraph.cli.output import Output, seconds, size, table
from etgraph.cli.progress import Progress
from etgraph.cli.report import ReportFile
from etgraph.errors import EtgraphError, UsageError

if TYPE_CHECKING:
    from etgraph.many import Results
    from etgraph.report import Told

__all__ = ["execute", "folder", "refuse_single"]


def refuse_single(
    asked: Asked, *, dump_stages: str | None, dry_run: bool, trace_numerics: bool = False, beside: Beside = NOTHING
) -> None:
    """Refuse flags that are about one way, where there are several."""
    flags = {"--dump-stages": dump_stages is not None, "--dry-run": dry_run, "--trace-numerics": trace_numerics}
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
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {path}: the folder cannot be made: {error.strerror}") from error
    check_writable(path / "x")
    return path


def execute(output: Output, asked: Asked, into: Path, page: ReportFile, *, verify: bool) -> None:
    """Run for every target, write what succeeded, and print one table.

    Raises:
        typer.Exit: with 1 when a target failed, its program is not what the source computes, or the report could not
            be written.
    """
    import etgraph

    job = prepare(asked)
    if verify:
        verification.require_inputs(job.source, job.arguments)
    with Progress(output) as progress:
        results = etgraph.run(job.source, **job.arguments, on_event=progress)
    rows = [_row(output, results, name, into, asked, verify) for name in results]
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


def _row(output: Output, results: Results, name: str, into: Path, asked: Asked, verify: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "target": name, "outcome": "failed", "path": None, "bytes": 0, "delegated": "", "delegation": {},
        "seconds": None, "steps": [], "notes": [], "host_problem": "", "verification": None, "error": "",
        "exit_code": 0,
    }  # fmt: skip
    outcome = results.outcomes[name]
    if isinstance(outcome, EtgraphError):
        return {**row, "error": str(outcome), "exit_code": outcome.exit_code}
    file = into / file_name(f"{asked.reference.stem}.{name}", asked.to)
    try:
        outcome.save(file)
    except EtgraphError as error:
        return {**row, "error": str(error), "exit_code": error.exit_code}
    found = verification.verify(output, outcome, _snr(name)) if verify else None
    wrong = found is not None and found["passed"] is False
    for line in taken(outcome.delegation):
        output.note(f"{name}: {line}")
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


def _snr(name: str) -> float:
    from etgraph.lookup import get_target

    return get_target(name).snr
