"""`etgraph run`: from SOURCE to the kind asked for, and into a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etgraph.cli import many, numerics, options, verification
from etgraph.cli.beside import NOTHING, Beside
from etgraph.cli.delegation import taken
from etgraph.cli.job import Asked, Job, prepare
from etgraph.cli.outfile import made_folder, output_path
from etgraph.cli.output import Output, reporting
from etgraph.cli.plan import planned, show_plan
from etgraph.cli.progress import Progress
from etgraph.cli.report import ReportFile
from etgraph.cli.resume import Dump, add_resume_command
from etgraph.errors import EtgraphError, StageError, UsageError
from etgraph.words import reason_lines, seconds, size, table

if TYPE_CHECKING:
    from etgraph.numerics import Comparison
    from etgraph.result import Result
    from etgraph.runner import Event

__all__ = ["execute", "register", "show_result"]

#: Reasons for running a step that go without saying.
_UNREMARKABLE = ("the cache is off", "it has not run on this before", "asked to refresh")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Bring a program to a kind, by default to a .pte.")(run)


def run(
    source: options.SourceArgument,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The file to write, named after SOURCE by default; with several targets, the folder.",
        ),
    ] = None,
    recipe: options.Recipe = None,
    target: options.Target = None,
    to: options.To = "executorch",
    start: options.From = None,
    shape: options.Shape = None,
    inputs: options.Inputs = None,
    calibration: options.Calibration = None,
    path: options.Path = "auto",
    eval_mode: options.Eval = False,
    trust: options.Trust = False,
    cache_dir: options.CacheDirectory = None,
    no_cache: options.NoCache = False,
    refresh: options.Refresh = False,
    check_cache: options.CheckCache = False,
    dump_stages: Annotated[
        str | None,
        typer.Option(
            "--dump-stages",
            metavar="DIR",
            help="Write every artifact on the way into this folder; with several targets, into a folder of each there.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Execute the .pte on this host and compare its outputs with SOURCE; exit 1 when one is off by more "
            "than 1e-3 relative and 1e-4 absolute, and than the signal-to-noise ratio that is fit for a quantized or "
            "half-precision target.",
        ),
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write a report, also of a run that fails: FILE.html for the eyes, .md, or .json.",
        ),
    ] = None,
    trace_numerics: Annotated[
        bool,
        typer.Option(
            "--trace-numerics",
            help="Compute the example inputs with the program at every kind on the way, and name the first node where "
            "the numbers go wrong; exit 1 when they do.",
        ),
    ] = False,
    etrecord: Annotated[
        str | None,
        typer.Option("--etrecord", metavar="FILE", help="Write the ETRecord of the .pte, for ExecuTorch's Inspector."),
    ] = None,
    bundled: Annotated[
        str | None,
        typer.Option(
            "--bundled", metavar="FILE.bpte", help="Write the .pte with the example inputs and the expected outputs."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Bring SOURCE to the kind asked for and write it to a file.

    \b
    Examples:
      etgraph run net.py:model                           model.pte, on XNNPACK
      etgraph run net.py:Net --shape 1x3x224x224 --eval  with random inputs
      etgraph run colleague.pt2 --recipe portable -o model.pte
      etgraph run net.py:model --to edge                 stops at model.edge.etg
      etgraph run model.edge.etg                         goes on from there
      etgraph run net.py:model --dump-stages stages      keeps all on the way
      etgraph run net.py:model --verify --report run.html
      etgraph run net.py:model --trace-numerics          where numbers go wrong
      etgraph run net.py:model --target ios-arm64-coreml-fp16 -o model.pte
    """
    with reporting(as_json=as_json, quiet=quiet, verbose=verbose) as output:
        asked = Asked.read(
            source,
            recipe=recipe,
            target=target,
            to=to,
            start=start,
            shape=shape,
            inputs=inputs,
            calibration=calibration,
            path=path,
            eval_mode=eval_mode,
            trust=trust,
            cache_dir=cache_dir,
            no_cache=no_cache,
            refresh=refresh,
            check_cache=check_cache,
        )
        if verify and to != "executorch":
            raise UsageError(
                f"--verify executes a .pte, and --to {to} stops before there is one",
                hint="Leave --verify out, or go on with --to executorch.",
            )
        if report is not None and dry_run:
            raise UsageError("--report is about a run, and --dry-run runs nothing", hint="Leave one of them out.")
        page = ReportFile(report, source)
        beside = Beside.read(etrecord, bundled, to)
        if len(asked.targets) > 1:
            many.refuse_single(asked, trace_numerics=trace_numerics, beside=beside)
            if dry_run:
                many.show_plans(output, asked)
                return
            dump_into = made_folder(dump_stages, "--dump-stages") if dump_stages else None
            many.execute(output, asked, many.folder(out), page, verify=verify, dump=dump_into)
            return
        file = output_path(out, asked.reference, to)
        if dry_run:
            show_plan(output, asked, planned(prepare(asked)), dry_run=True)
            output.say("nothing was run (--dry-run)")
            return
        dump_into = made_folder(dump_stages, "--dump-stages") if dump_stages else None
        dump = Dump(dump_into, asked.reference.stem)
        execute(output, prepare(asked), file, dump, page, verify=verify, trace_numerics=trace_numerics, beside=beside)


def execute(
    output: Output,
    job: Job,
    file: Path,
    dump: Dump,
    page: ReportFile,
    *,
    verify: bool,
    trace_numerics: bool = False,
    beside: Beside = NOTHING,
) -> None:
    """Run a job, write its result, check it where asked, and print what became of it.

    Raises:
        typer.Exit: with 1 when the result is not what the source computes, or the report could not be written.
    """
    import etgraph
    from etgraph.probe import precision_of

    if verify:
        verification.require_inputs(job.source, job.arguments)
    with Progress(output) as progress:

        def show(event: Event) -> None:
            progress(event)
            dump(event)

        trace = numerics.tracing(show) if trace_numerics else None
        try:
            result = etgraph.run(job.source, **job.arguments, on_event=trace or show)
        except EtgraphError as error:
            if isinstance(error, StageError):
                add_resume_command(error, job, file, dump)
            page.write_failure(output, error)
            raise
    target = job.arguments.get("target")
    snr = target.snr if target is not None else precision_of(result.plan.request.recipe.name)
    outcome = verification.verify(output, result, snr) if verify else None
    result.save(file)
    written = beside.write(output, result)
    numbers = numerics.compare(output, trace, result, job) if trace is not None else None
    files = {str(path): count for path, count in _written(result, file).items()}
    more = {"files": files, "verification": outcome, "numerics": numbers}
    arguments = {"source": job.source, **job.arguments}
    reported = page.path is None or page.write(output, result, page.told_of(output, result, arguments, **more))
    show_result(output, job, result, file, dump, outcome, numbers, written)
    wrong = (outcome is not None and outcome["passed"] is False) or (numbers is not None and not numbers.within)
    if wrong or not reported or len(written) < len(beside.files()):
        raise typer.Exit(1)


def show_result(
    output: Output,
    job: Job,
    result: Result,
    file: Path,
    dump: Dump,
    outcome: dict[str, Any] | None,
    numbers: Comparison | None = None,
    beside: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """Print what a run did: the steps, the file, the check."""
    for problem in result.cache_problems:
        output.warn(problem)
    written = _written(result, file)
    request = result.plan.request
    output.say(f"{' -> '.join(result.plan.kinds)}  (recipe {request.recipe.name})")
    for note in result.plan.notes:
        output.note(f"note: {note}")
    if result.steps and output.speaks:
        output.say(_steps(result))
    for line in taken(result.delegation):
        output.say(line)
    for path in dump.files:
        output.note(f"dumped {path}")
    for path, count in written.items():
        output.say(f"wrote {path}  ({size(count)})")
    for path in beside.values():
        output.say(f"wrote {path}  ({size(path.stat().st_size)})")
    host_problem = _host_problem(job, result)
    if job.asked.targets and outcome is None and host_problem:
        output.note(f"note: {host_problem}")
    if outcome is not None:
        verification.show_verification(output, outcome)
        if outcome["passed"] is False:
            output.note(f"the outputs differ from those of {job.asked.reference.given}: see above")
    if numbers is not None:
        output.say()
        output.say(str(numbers))
    output.document(
        lambda: {
            "source": {"given": job.asked.reference.given, "kind": job.kind},
            "kind": str(result.artifact.kind),
            "recipe": request.recipe.name,
            "plan": result.plan.to_dict(),
            "steps": [asdict(step) for step in result.steps],
            "output": {"path": str(file), "bytes": written[file]},
            "data_files": [{"path": str(p), "bytes": n} for p, n in written.items() if p != file],
            "delegation": result.delegation,
            "host_problem": host_problem,
            "dumped": [str(path) for path in dump.files],
            "verification": outcome,
            "numerics": numbers.to_json() if numbers is not None else None,
            "beside": {name: str(path) for name, path in beside.items()},
        }
    )


def _host_problem(job: Job, result: Result) -> str | None:
    """Say why this host cannot execute the result; None where nobody asked for a target and everything was reused.

    To know it loads the runtime, and with it torch, which takes longer than all the rest of a run that does nothing.
    """
    ran = any(step.outcome == "ran" for step in result.steps)
    return result.host_problem if ran or job.asked.targets else None


def _written(result: Result, file: Path) -> dict[Path, int]:
    """Return the files that were written, with their sizes in bytes; data files lie beside the program."""
    names = getattr(result.artifact, "data_pieces", {})
    files = [file, *(file.with_name(name) for name in names)]
    return {path: path.stat().st_size for path in files if path.exists()}


def _steps(result: Result) -> str:
    """Return a line per step, and under each that ran why it was not reused."""
    rows = [
        (f"  {step.stage}", step.outcome, seconds(step.seconds), size(step.peak_bytes) if step.peak_bytes else "")
        for step in result.steps
    ]
    head, *lines = table(rows, header=("  stage", "", "time", "peak memory"), right=(2, 3)).splitlines()
    shown = [head]
    for step, line in zip(result.steps, lines, strict=True):
        shown.append(line)
        if step.outcome == "ran" and step.reason not in _UNREMARKABLE:
            shown.extend(f"      {line}" for line in reason_lines(step.reason))
    return "\n".join(shown)
