"""`etgraph cache`: where the cache is, what is in it, why a step would run, and how to make room."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etgraph.cli import options
from etgraph.cli.job import Asked, prepare
from etgraph.cli.output import Output, reporting
from etgraph.errors import UsageError
from etgraph.words import counted, reason_lines, size, table

if TYPE_CHECKING:
    from etgraph.store import Cache, Entry

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("path", short_help="Print where the cache is.")(path)
    group.command("ls", short_help="List what is in the cache.")(ls)
    group.command("why", short_help="Say what a run would reuse, and why the rest would run.")(why)
    group.command("verify", short_help="Check every byte, and set aside what is damaged.")(verify)
    group.command("prune", short_help="Make room: the least recently used entries go first.")(prune)
    group.command("clear", short_help="Remove everything.")(clear)
    app.add_typer(
        group,
        name="cache",
        short_help="Look at the cache, ask why a step would run, make room.",
        help="The cache of intermediate programs: each is kept by what it was made from, and reused while that is so.",
    )


def path(cache_dir: options.CacheDirectory = None, as_json: options.Json = False) -> None:
    """Print where the cache is: --cache-dir, else ETGRAPH_CACHE_DIR, else the user's cache directory.

    \b
    Example:
      du -sh "$(etgraph cache path)"
    """
    with reporting(as_json=as_json) as output:
        cache = _opened(cache_dir)
        output.say(str(cache.directory))
        output.document({"path": str(cache.directory)})


def ls(cache_dir: options.CacheDirectory = None, as_json: options.Json = False) -> None:
    """List what is in the cache, most recently used first, and its total against the limit.

    A weight that several entries share is stored once, and counted in the size of each; the total counts it once.

    \b
    Examples:
      etgraph cache ls
      etgraph cache ls --json
    """
    with reporting(as_json=as_json) as output:
        cache = _opened(cache_dir)
        rows = [_row(entry) for entry in cache.entries()]
        total, limit = cache.nbytes, cache.size_limit
        _tell_problems(output, cache)
        if rows:
            output.say(_listing(rows))
        share = f", {100 * total / limit:.0f}%" if limit else ""
        output.say(f"{counted(len(rows), 'program')}, {size(total)} of {size(limit)}{share}, in {cache.directory}")
        document = {"path": str(cache.directory), "bytes": total, "size_limit": limit, "entries": rows}
        output.document({**document, "problems": cache.problems})


def _row(entry: Entry) -> dict[str, Any]:
    about = entry.about
    return {
        "key": entry.key,
        "stage": about.get("stage", ""),
        "consumes": about.get("consumes", ""),
        "produces": about.get("produces", ""),
        "label": about.get("label", ""),
        "methods": list(about.get("methods", ())),
        "fingerprint": about.get("fingerprint", ""),
        "seconds": about.get("seconds"),
        "bytes": entry.nbytes,
        "created": entry.created,
        "last_used": entry.last_used,
    }


def _listing(rows: list[dict[str, Any]]) -> str:
    cells = [
        (
            row["key"][:12],
            row["label"],
            row["stage"],
            f"{row['consumes']} -> {row['produces']}",
            ", ".join(row["methods"]),
            size(row["bytes"]),
            _ago(row["created"]),
            _ago(row["last_used"]),
        )
        for row in rows
    ]
    return table(cells, header=("key", "of", "stage", "from -> to", "methods", "size", "made", "used"), right=(5,))


def _ago(when: float) -> str:
    """Show how long ago something was, in the largest unit that fits."""
    passed = max(0.0, time.time() - when)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if passed >= length:
            return f"{passed / length:.0f} {unit} ago"
    return "just now"


def why(
    source: options.SourceArgument,
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
    as_json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Say for each step of a run whether it would be reused, and if not, what changed; nothing is run.

    Takes the arguments of `etgraph run` and `etgraph plan`.

    \b
    Examples:
      etgraph cache why net.py:model
      etgraph cache why model.edge.etg --recipe portable --json
    """
    with reporting(as_json=as_json, verbose=verbose) as output:
        from etgraph.outlook import outlook

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
        )
        asked.require_one_way("cache why")
        job = prepare(asked)
        cache = _opened(cache_dir)
        plan, steps = outlook(job.source, **{**job.arguments, "cache": cache})
        _tell_problems(output, cache)
        output.say(f"{' -> '.join(plan.kinds)}  (recipe {plan.request.recipe.name})")
        for step in steps:
            output.say(f"  {step.stage}: {_IN_WORDS[step.outcome]}")
            for line in reason_lines(step.reason):
                output.say(f"      {line}")
        if not steps:
            output.say("there is nothing to do")
        output.document({"source": asked.reference.given, "steps": [asdict(step) for step in steps]})


_IN_WORDS = {"reused": "would be reused", "runs": "would run", "unknown": "not known yet"}


def verify(cache_dir: options.CacheDirectory = None, as_json: options.Json = False) -> None:
    """Check every byte of the cache. What is damaged is set aside, and built again when it is next needed.

    Exit code: 1 when something was damaged.

    \b
    Example:
      etgraph cache verify
    """
    with reporting(as_json=as_json) as output:
        cache = _opened(cache_dir)
        report = cache.verify()
        _tell_problems(output, cache, besides=report.bad)
        for line in report.bad:
            output.say(f"bad: {line}")
        checked = f"{counted(report.entries, 'program')} and {counted(report.blobs, 'blob')}, {size(report.nbytes)}"
        output.say(f"checked {checked}: {counted(len(report.bad), 'defect') if report.bad else 'all good'}")
        output.document({**asdict(report), "path": str(cache.directory), "problems": cache.problems})
        if report.bad:
            raise typer.Exit(1)


def prune(
    limit: Annotated[
        str | None,
        typer.Option("--size", metavar="SIZE", help='Such as "2GB" or "500MiB"; the limit of the cache by default.'),
    ] = None,
    cache_dir: options.CacheDirectory = None,
    as_json: options.Json = False,
) -> None:
    """Remove leftovers, and the least recently used programs until the cache fits into a size.

    \b
    Examples:
      etgraph cache prune
      etgraph cache prune --size 2GB
    """
    with reporting(as_json=as_json) as output:
        from etgraph.store import parse_size

        asked = parse_size(limit, "--size") if limit is not None else None
        cache = _opened(cache_dir)
        report = cache.prune(asked)
        _tell_problems(output, cache)
        output.say(f"removed {counted(report.removed, 'program')}, {size(report.freed_bytes)}")
        output.say(f"left {counted(report.kept, 'program')}, {size(report.kept_bytes)}")
        output.document({**asdict(report), "path": str(cache.directory), "problems": cache.problems})


def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    cache_dir: options.CacheDirectory = None,
    as_json: options.Json = False,
) -> None:
    """Remove everything that is cached. Runs that are under way only miss.

    \b
    Example:
      etgraph cache clear --yes
    """
    with reporting(as_json=as_json) as output:
        cache = _opened(cache_dir)
        count, total = len(cache.entries()), cache.nbytes
        what = f"{counted(count, 'program')}, {size(total)}, in {cache.directory}"
        if not yes and (as_json or not sys.stdin.isatty()):
            raise UsageError(
                f"clear would remove {what}, and there is nobody to ask", hint="Add --yes if that is what you want."
            )
        if not yes and not typer.confirm(f"Remove {what}?", err=True):
            output.say("nothing was removed")
            raise typer.Exit(1)
        cache.clear()
        left = len(cache.entries())
        _tell_problems(output, cache)
        output.say(f"removed {counted(count - left, 'program')}, {size(total - cache.nbytes)}")
        output.document({"path": str(cache.directory), "removed": count - left, "freed_bytes": total - cache.nbytes})


def _opened(directory: str | None) -> Cache:
    from etgraph.store import Cache

    return Cache(directory)


def _tell_problems(output: Output, cache: Cache, besides: list[str] | None = None) -> None:
    for problem in cache.problems:
        if problem not in (besides or ()):
            output.warn(problem)
