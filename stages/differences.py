"""What is different between two programs of any kinds: for `etgraph.diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import etgraph
from etgraph.artifact import Artifact

if TYPE_CHECKING:
    from etgraph.difference import ProgramChange


@etgraph.service("differences")
def differences(a: Artifact, b: Artifact) -> tuple[list[ProgramChange], list[str]]:
    """Compare two artifacts.

    Returns:
        what is different, and notes about what could not be compared.
    """
    from etgraph.difference import ProgramChange
    from stages.support.compared import compared_programs
    from stages.support.compared_options import compared_options

    changes: list[ProgramChange] = []
    notes: list[str] = []
    if a.kind != b.kind:
        changes.append(ProgramChange("kind", "", "", str(a.kind), str(b.kind)))
    for method in dict.fromkeys([*a.methods, *b.methods]):
        if method not in a.methods or method not in b.methods:
            sides = ["" if method in one.methods else None for one in (a, b)]
            changes.append(ProgramChange("methods", "", method, sides[0], sides[1]))
    changes += compared_programs(a, b, notes)
    changes += compared_options(a, b)
    return changes, notes
