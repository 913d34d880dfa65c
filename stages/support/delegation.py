"""What backends took of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import etgraph
from etgraph.artifact import Lowered
from stages.support.programs import delegates_of


def warn_of_nothing_taken(lowered: Lowered, partitioners: Mapping[str, Sequence[Any]]) -> None:
    """Say which methods were given partitioners that took no node at all."""
    for method, chosen in partitioners.items():
        if chosen and not delegates_of(lowered.methods[method]):
            names = ", ".join(type(partitioner).__name__ for partitioner in chosen)
            etgraph.warn(
                f"method {method!r}: {names} took no node; the whole method runs on portable kernels. "
                "`etgraph check` says why."
            )
