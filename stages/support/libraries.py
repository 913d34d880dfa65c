"""Operator libraries: backends into whose operators a program is rewritten; told by names, nothing is imported."""

from __future__ import annotations

from typing import Any

#: Operator namespaces into which a backend rewrites a program instead of delegating it.
OPERATOR_LIBRARIES = frozenset({"cortex_m", "cadence"})


def is_scratch(node: Any) -> bool:
    """Whether a node allocates scratch memory for operators of a library, as the passes of Cortex-M do ahead of time.

    `to_executorch` allocates for out variants instead.
    """
    target = node.target
    if (getattr(target, "__module__", ""), getattr(target, "__name__", "")) != ("executorch.exir.memory", "alloc"):
        return False
    return bool(node.users) and all(_is_functional_of_library(user.target) for user in node.users)


def _is_functional_of_library(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    if schema is None or schema.name.partition("::")[0] not in OPERATOR_LIBRARIES:
        return False
    return "out" not in schema.overload_name.split("_")
