"""`etgraph doctor`: whether this environment can do the main job, and what it lacks for the rest."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

import typer

from etgraph.cli import options
from etgraph.cli.listing import target_rows
from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.output import Output, reporting
from etgraph.errors import EtgraphWarning
from etgraph.installed import installed_version
from etgraph.words import size, table, wrapped

__all__ = ["register", "requirement_rows"]

#: Shown besides what etgraph requires, as far as installed: backends and quantizers that extras bring.
_OPTIONAL = ("coremltools", "openvino", "nncf", "ethos-u-vela", "tosa-tools", "transformers")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", short_help="Check this environment.")(doctor)


def doctor(as_json: options.Json = False, verbose: options.Verbose = False) -> None:
    """Check this environment: versions, the runtime of this host, backends that can lower here, cache, plugins.

    Nothing is downloaded. Exit code 0 when a model can be lowered to XNNPACK and executed here, else 1.

    \b
    Examples:
      etgraph doctor
      etgraph doctor --json
    """
    with reporting(as_json=as_json, verbose=verbose) as output:
        plugins = _plugins()
        versions = requirement_rows()
        found = _environment(output)
        cache = _cache()
        problems = _problems(versions, found, plugins)
        _show(output, versions, found, cache, plugins, problems)
        output.document(
            {
                "ok": not problems,
                "problems": problems,
                "python": ".".join(map(str, sys.version_info[:3])),
                "versions": versions,
                **found,
                "cache": cache,
                "plugins": plugins,
                "targets": target_rows(),
            }
        )
        if problems:
            raise typer.Exit(1)


def requirement_rows() -> list[dict[str, Any]]:
    """Return each distribution that etgraph requires on this platform: installed version, wanted range, whether it
    fits; then optional ones that are installed."""
    rows = []
    for text in metadata.requires("etgraph") or ():
        name, wanted, applies, contains = _requirement(text)
        if applies:
            version = installed_version(name)
            rows.append(
                {"name": name, "version": version, "wanted": wanted, "fits": version is not None and contains(version)}
            )
    named = {row["name"] for row in rows}
    for name in _OPTIONAL:
        version = installed_version(name)
        if name not in named and version is not None:
            rows.append({"name": name, "version": version, "wanted": "", "fits": True})
    return [{"name": "etgraph", "version": installed_version("etgraph"), "wanted": "", "fits": True}, *rows]


def _requirement(text: str) -> tuple[str, str, bool, Callable[[str], bool]]:
    """Read a requirement: the name, the range, whether it applies on this platform, and a test of a version."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        # It comes with executorch, and a doctor has to work where that is missing.
        name = re.split(r"[^\w.-]", text, maxsplit=1)[0]
        return name, "", "extra ==" not in text, lambda version: True
    requirement = Requirement(text)
    applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    return (
        requirement.name,
        str(requirement.specifier),
        applies,
        lambda version: requirement.specifier.contains(version, prereleases=True),
    )


def _environment(output: Output) -> dict[str, Any]:
    from etgraph.registry import registry

    describe = registry.services.get("environment")
    if describe is None:
        return {"platform": "", "runtime": {"loads": False, "backends": [], "kernels": 0}, "backends": []}
    with runtime_log_hidden(verbose=output.verbose):
        found: dict[str, Any] = describe()
    return found


def _plugins() -> list[dict[str, str]]:
    """Load the plugins; return each with what is wrong with it, empty when nothing is."""
    from etgraph.registry import ENTRY_POINT_GROUP, registry

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registry.load_plugins()
    broken = [str(one.message) for one in caught if issubclass(one.category, EtgraphWarning)]
    return [
        {
            "name": point.value,
            "distribution": point.dist.name if point.dist else "",
            "problem": next((text for text in broken if f"{point.value!r}" in text), ""),
        }
        for point in metadata.entry_points(group=ENTRY_POINT_GROUP)
    ]


def _cache() -> dict[str, Any]:
    from etgraph.errors import UsageError
    from etgraph.store import Cache

    try:
        cache = Cache()
    except UsageError as error:
        return {"directory": None, "usable": False, "size_limit": None, "problem": error.problem}
    usable = cache.usable
    return {
        "directory": str(cache.directory),
        "usable": usable,
        "size_limit": cache.size_limit,
        "problem": "; ".join(cache.problems),
    }


def _problems(versions: list[dict[str, Any]], found: dict[str, Any], plugins: list[dict[str, str]]) -> list[str]:
    """Say what keeps the main job, a model to XNNPACK and executed here, from working."""
    problems = [
        f"{row['name']} {row['version'] or 'is not installed'}, and {row['wanted'] or 'some version'} is needed: "
        f'pip install "{row["name"]}{row["wanted"]}"'
        for row in versions
        if not row["fits"]
    ]
    problems += [plugin["problem"] for plugin in plugins if plugin["problem"] and plugin["distribution"] == "etgraph"]
    if not found["runtime"]["loads"]:
        problems.append("the ExecuTorch runtime cannot be loaded; reinstall executorch")
    elif "XnnpackBackend" not in found["runtime"]["backends"]:
        problems.append("the ExecuTorch runtime of this host lacks XnnpackBackend; reinstall executorch")
    for backend in found["backends"]:
        if backend["name"] == "XNNPACK" and not backend["lowers_here"]:
            problems.append(f"XNNPACK cannot be lowered to: {backend['problem']}")
    return problems


def _show(
    output: Output,
    versions: list[dict[str, Any]],
    found: dict[str, Any],
    cache: dict[str, Any],
    plugins: list[dict[str, str]],
    problems: list[str],
) -> None:
    output.say(f"python {'.'.join(map(str, sys.version_info[:3]))} on {found['platform']}")
    rows = [
        (f"  {row['name']}", row["version"] or "missing", row["wanted"], "" if row["fits"] else "OUT OF RANGE")
        for row in versions
    ]
    output.say(table(rows))
    runtime = found["runtime"]
    output.say()
    if runtime["loads"]:
        told = f"runtime of this host: {', '.join(runtime['backends'])}; {runtime['kernels']} kernels"
        output.say("\n".join(wrapped(told, 0, 2)))
    output.say("lowering here:")
    marks = table([(f"  {one['name']}", "yes" if one["lowers_here"] else "no") for one in found["backends"]])
    for line, one in zip(marks.splitlines(), found["backends"], strict=True):
        output.say("\n".join([line, *wrapped("; ".join(filter(None, (one["problem"], one["install"]))), 6)]))
    for line in _targets():
        output.say(line)
    output.say()
    limit = f", at most {size(cache['size_limit'])}" if cache["size_limit"] is not None else ""
    output.say(f"cache: {cache['directory']}{limit}{'' if cache['usable'] else ' (NOT USABLE)'}")
    if cache["problem"]:
        output.say(f"  {cache['problem']}")
    for plugin in plugins:
        state = plugin["problem"] or "loaded"
        output.say(f"plugin {plugin['name']} of {plugin['distribution']}: {state}")
    output.say()
    output.say("\n".join(f"problem: {problem}" for problem in problems) or "the main job can work here")


def _targets() -> list[str]:
    """Say for how many targets this host can lower, and what would add which others."""
    rows = target_rows()
    able = [row for row in rows if row["lowers_here"]]
    lines = [f"targets: {len(able)} of {len(rows)} can be lowered here (etgraph list targets)"]
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if not row["lowers_here"]:
            by_reason.setdefault(row["install"] or "; ".join(row["missing"]), []).append(row["name"])
    for what, names in by_reason.items():
        lines += [*wrapped(f"{', '.join(names)}:", 2), *wrapped(what, 6)]
    return lines
