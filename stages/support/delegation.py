"""What backends took of a program, and why one took nothing."""

from __future__ import annotations

import contextlib
import io
import logging
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import etgraph
from etgraph.artifact import Lowered
from stages.support.programs import (
    OPERATOR_LIBRARIES,
    all_nodes,
    copy_for_rewriting,
    delegates_of,
    namespace_of,
)


def delegation_of(program: Any) -> dict[str, Any]:
    """Count what of an edge or lowered program is whose.

    Returns:
        `backends`: for each backend its `name`, how many `delegates` it has, and how many operators (`nodes`) are in
        them; an operator library counts as a backend without delegates. `others`: how many operators are left.
    """
    backends: dict[str, dict[str, Any]] = {}
    for delegate in delegates_of(program):
        original = getattr(delegate, "_original_exported_program", None)
        entry = _entry(backends, delegate.backend_id)
        entry["delegates"] += 1
        entry["nodes"] += sum(1 for node in all_nodes(original) if namespace_of(node.target)) if original else 0
    others = 0
    for node in all_nodes(program):
        if node.op != "call_function" or node.target is operator.getitem or not namespace_of(node.target):
            continue
        if namespace_of(node.target) in OPERATOR_LIBRARIES:
            _entry(backends, namespace_of(node.target))["nodes"] += 1
        else:
            others += 1
    return {"backends": list(backends.values()), "others": others}


def _entry(backends: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    return backends.setdefault(name, {"name": name, "delegates": 0, "nodes": 0})


def warn_of_nothing_taken(lowered: Lowered, partitioners: Mapping[str, Sequence[Any]]) -> None:
    """Say which partitioners took no node of a method though they were asked first, or alone, with their reasons.

    One that comes after others and finds nothing left is as it should be.
    """
    for method, chosen in partitioners.items():
        if not chosen:
            continue
        taken = {delegate.backend_id for delegate in delegates_of(lowered.methods[method])}
        first = _backend_of(chosen[0])
        if taken and (first is None or first in taken):
            continue
        asked = chosen if not taken else chosen[:1]
        names = ", ".join(type(partitioner).__name__ for partitioner in asked)
        rest = "the whole method runs on portable kernels" if not taken else f"{', '.join(sorted(taken))} took parts"
        why = "; ".join(_reasons(lowered.methods[method], asked))
        etgraph.warn(
            f"method {method!r}: {names} took no node; {rest}. "
            + (f"The reason given: {why}" if why else "No reason was given; `etgraph check` looks for one.")
        )


def _backend_of(partitioner: Any) -> str | None:
    spec = getattr(partitioner, "delegation_spec", None)
    return getattr(spec, "backend_id", None)


#: What upstream's partitioners write of nodes that they do not take (executorch 1.5), by XNNPACK, Vulkan, Core ML and
#: Arm in their logs, by OpenVINO to stdout.
_REASON = re.compile(
    r"not partitioned because|Due to \[|Skipping op for|not supported|rejected|Overriding support", re.IGNORECASE
)


def _reasons(program: Any, partitioners: Sequence[Any]) -> list[str]:
    """Ask partitioners again about what they left, and return what they say of it: three different things at most."""
    with _heard() as said:
        for partitioner in partitioners:
            # A second opinion must not become a failure of its own.
            with contextlib.suppress(Exception):
                partitioner.partition(copy_for_rewriting(program))
    unknown = [f"{type(one).__name__} knows no {name}" for one in partitioners for name in _unknown_to(one, program)]
    reasons = [" ".join(line.split())[:200] for line in said if _REASON.search(line) and "placeholder" not in line]
    return list(dict.fromkeys([*unknown, *reasons]))[:3]


def _unknown_to(partitioner: Any, program: Any) -> list[str]:
    """Return the operators for which a partitioner that goes by operator has no config: it says nothing of these."""
    from executorch.exir.backend.canonical_partitioners.config_partitioner import (
        ConfigerationBasedPartitioner,
        format_target_name,
    )

    if not isinstance(partitioner, ConfigerationBasedPartitioner):
        return []
    names = [
        node.target.__name__
        for node in all_nodes(program)
        if node.op == "call_function" and namespace_of(node.target) == "aten"
    ]
    return [
        name for name in dict.fromkeys(names) if format_target_name(name) not in partitioner.target_partitioner_configs
    ]


@contextlib.contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect what is logged at any level, and printed, and keep it from everybody else."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    root, backends = logging.getLogger(), logging.getLogger("executorch.backends")
    before = (root.handlers[:], root.level, backends.level, backends.propagate, logging.root.manager.disable)
    printed = io.StringIO()
    root.handlers[:] = [Listener(logging.DEBUG)]
    root.setLevel(logging.DEBUG)
    backends.setLevel(logging.DEBUG)
    backends.propagate = True
    logging.disable(logging.NOTSET)
    try:
        with contextlib.redirect_stdout(printed):
            yield said
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        backends.setLevel(before[2])
        backends.propagate = before[3]
        logging.disable(before[4])
        said.extend(printed.getvalue().splitlines())
