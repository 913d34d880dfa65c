"""What backends took of a program, and whether this host can execute it: for results and the command line."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.artifact import Artifact, Edge, Executorch, Lowered
from etgraph.errors import BackendUnavailableError


@etgraph.service("delegation")
def delegation(artifact: Artifact) -> dict[str, Any]:
    """Return for each method which backend took how much; methods of which that is not known are left out.

    Of an executorch program it is known when the lowering was done here.
    """
    if isinstance(artifact, Executorch):
        return {name: one["delegation"] for name, one in artifact.methods.items() if "delegation" in one}
    if not isinstance(artifact, Edge | Lowered):
        return {}
    from stages.support.delegation import delegation_of

    return {name: delegation_of(program) for name, program in artifact.methods.items()}


@etgraph.service("host_problem")
def host_problem(artifact: Artifact) -> str:
    """Say why the runtime of this host cannot execute a `.pte`; nothing when it can, or when it is none."""
    if not isinstance(artifact, Executorch):
        return ""
    from stages.support.runtime import check_host

    try:
        check_host(artifact)
    except BackendUnavailableError as error:
        return error.problem
    return ""
