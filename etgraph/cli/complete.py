"""Shell completion: names that are known without importing torch."""

from __future__ import annotations

__all__ = ["kinds", "paths", "recipes", "targets"]


def kinds(incomplete: str) -> list[str]:
    """Return the kinds that begin as typed."""
    from etgraph.artifact import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


def paths(incomplete: str) -> list[str]:
    """Return the ways that a built-in or installed stage is labelled with."""
    from etgraph.registry import registry

    registry.load_plugins()
    ways = sorted({stage.way for stage in registry.stages.values() if stage.way})
    return [way for way in ("auto", *ways) if way.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Return the recipes, etgraph's and upstream's, that begin as typed."""
    from etgraph.cli.listing import recipe_rows

    return sorted({row["name"] for row in recipe_rows() if row["name"].startswith(incomplete)})


def targets(incomplete: str) -> list[str]:
    """Return the targets that begin as typed."""
    from etgraph.cli.listing import target_names

    return [name for name in target_names() if name.startswith(incomplete)]
