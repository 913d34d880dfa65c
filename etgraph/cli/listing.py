"""`etgraph list`: what there is, without importing torch or executorch."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import typer

from etgraph.cli import options
from etgraph.cli.output import Output, reporting
from etgraph.words import table, wrapped

__all__ = ["recipe_rows", "register", "target_names", "target_rows"]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("recipes", short_help="What --recipe takes.")(recipes)
    group.command("targets", short_help="What --target takes, and what works here.")(targets)
    group.command("stages", short_help="The stages, their kinds and options.")(stages)
    group.command("kinds", short_help="The kinds, and what each holds.")(kinds)
    app.add_typer(
        group,
        name="list",
        short_help="List recipes, targets, stages or kinds.",
        help="List what there is: recipes, targets, stages, kinds. Nothing heavy is imported, nothing downloaded.",
    )


def recipe_rows() -> list[dict[str, Any]]:
    """Return each recipe that `--recipe` takes: name, summary, backends, and whose it is."""
    from etgraph.registry import registry

    registry.load_plugins()
    rows: list[dict[str, Any]] = [
        {"name": entry.name, "summary": entry.summary, "backends": list(entry.backends), "origin": "etgraph"}
        for entry in registry.recipes.values()
    ]
    known = {row["name"] for row in rows}
    foreign = registry.services.get("foreign_recipes")
    for recipe in foreign() if foreign else ():
        if recipe["name"] not in known:
            summary = f"executorch's own, listed in {recipe['owner']}"
            rows.append(
                {"name": recipe["name"], "summary": summary, "backends": [recipe["backend"]], "origin": "executorch"}
            )
    return rows


def target_names() -> list[str]:
    """Return the names of the installed targets."""
    from etgraph.registry import registry

    registry.load_plugins()
    return list(registry.targets)


def recipes(as_json: options.Json = False) -> None:
    """List the recipes that `--recipe` takes: etgraph's own, and executorch's by their names there.

    \b
    Example:
      etgraph list recipes
    """
    with reporting(as_json=as_json) as output:
        rows = recipe_rows()
        cells = [(row["name"], ", ".join(row["backends"]), row["origin"]) for row in rows]
        _show(output, "recipes", rows, cells, ("recipe", "backends", "from"), [[row["summary"]] for row in rows])


def target_rows() -> list[dict[str, Any]]:
    """Return each target: backends in order, precision, and whether this host can lower for it and run it."""
    from etgraph.registry import registry

    registry.load_plugins()
    rows = []
    for target in registry.targets.values():
        lacks = list(target.to_lower.missing())
        not_run = target.why_not_run_here()
        rows.append(
            {
                "name": target.name,
                "backends": list(target.backends),
                "precision": target.precision,
                "lowers_here": not lacks,
                "missing": lacks,
                "install": target.to_lower.install,
                "runs_here": not not_run,
                "why_not_run": not_run,
                "summary": target.summary,
            }
        )
    return rows


def targets(as_json: options.Json = False) -> None:
    """List the targets that `--target` takes, in each the backends in order, and what this host can do for it.

    Nothing heavy is imported and nothing downloaded: a package counts by its version, an SDK by its variable.

    \b
    Example:
      etgraph list targets
    """
    with reporting(as_json=as_json) as output:
        rows = target_rows()
        cells = [
            (
                row["name"],
                row["precision"],
                "yes" if row["lowers_here"] else "no",
                "yes" if row["runs_here"] else "no",
            )
            for row in rows
        ]
        below = [
            [
                ", then ".join(row["backends"]),
                row["summary"] if row["lowers_here"] else f"to lower: {row['install'] or '; '.join(row['missing'])}",
            ]
            for row in rows
        ]
        if not rows:
            output.say("no target is installed; `etgraph list recipes` shows what --recipe takes")
        _show(output, "targets", rows, cells, ("target", "precision", "lower here", "run here"), below)


def stages(as_json: options.Json = False) -> None:
    """List the stages with the kinds that they go between, and their options.

    A stage between the same kind twice runs there when a recipe names it.

    \b
    Example:
      etgraph list stages --json
    """
    with reporting(as_json=as_json) as output:
        from etgraph.registry import registry

        registry.load_plugins()
        rows: list[dict[str, Any]] = [
            {
                "name": stage.name,
                "consumes": [str(kind) for kind in stage.consumes],
                "produces": str(stage.produces) if stage.produces else None,
                "on_request": stage.on_request,
                "way": stage.way,
                "options": {name: _default(parameter) for name, parameter in stage.options.items()},
                "summary": stage.summary,
                "defined_in": stage.where,
            }
            for stage in registry.stages.values()
        ]
        cells = [
            (
                row["name"],
                f"{' | '.join(row['consumes'])} -> {row['produces'] or 'the same'}",
            )
            for row in rows
        ]
        _show(output, "stages", rows, cells, ("stage", "from -> to"), [[row["summary"], _options(row)] for row in rows])


def kinds(as_json: options.Json = False) -> None:
    """List the kinds of artifacts and what each holds.

    \b
    Example:
      etgraph list kinds
    """
    with reporting(as_json=as_json) as output:
        from etgraph.artifact import KINDS
        from etgraph.declaration import summary_of
        from etgraph.registry import registry

        registry.load_plugins()
        rows = [{"name": name, "holds": summary_of(cls).replace("`", "")} for name, cls in KINDS.items()]
        _show(output, "kinds", rows, [(row["name"],) for row in rows], ("kind",), [[row["holds"]] for row in rows])


def _options(row: dict[str, Any]) -> str:
    shown = [f"{name}={default}" if default else name for name, default in row["options"].items()]
    return f"options: {', '.join(shown)}" if shown else ""


def _default(parameter: inspect.Parameter) -> str:
    """Show an option's default; empty for one that must be given."""
    return "" if parameter.default is parameter.empty else repr(parameter.default)


def _show(
    output: Output,
    name: str,
    rows: list[dict[str, Any]],
    cells: Sequence[tuple[str, ...]],
    header: tuple[str, ...],
    below: list[list[str]],
) -> None:
    """Print a line of columns for each row, and below it its texts, wrapped; or all as a document."""
    if cells:
        head, *lines = table(cells, header=header).splitlines()
        output.say(head)
        for line, texts in zip(lines, below, strict=True):
            output.say("\n".join([line, *(piece for text in texts for piece in wrapped(text, 4))]))
    output.document({name: rows})
