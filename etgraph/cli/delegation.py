"""What backends took of a program, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etgraph.words import counted

__all__ = ["share", "taken"]


def taken(delegation: Mapping[str, Any]) -> list[str]:
    """Return a line per method: each backend in order, and what is left to portable kernels."""
    lines = []
    for method, found in delegation.items():
        parts = [
            f"{one['name']} {counted(one['nodes'], 'operator')}"
            + (f" in {counted(one['delegates'], 'delegate')}" if one["delegates"] else "")
            for one in found["backends"]
        ]
        parts.append(f"{found['others']:,} on portable kernels")
        lines.append(f"{method}: {', '.join(parts)}")
    return lines


def share(delegation: Mapping[str, Any]) -> str:
    """Return how much of a program backends took, as a percentage of its operators; empty where it is not known."""
    inside = sum(one["nodes"] for found in delegation.values() for one in found["backends"])
    whole = inside + sum(found["others"] for found in delegation.values())
    return f"{100 * inside / whole:.0f}%" if whole else ""
