"""Where the bytes of a program are, part by part: for reports and whatever else compares sizes."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch


@etgraph.service("sizes")
def sizes(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the parts of a program, the largest first, as data that JSON can hold.

    Returns:
        for each part `method` (empty where it is not one method's alone), `section` (`weights`, `constants`,
        `start values`, `delegates`, `delegate weights`, `program`, `alignment`, `data file`), `name`, and `bytes`.
        Those of a `.pte` add up to its size and that of its data files. Of other kinds the graphs are not counted,
        and a storage that several names share is counted once.
    """
    from stages.support import sizes_of_emitted, sizes_of_programs

    parts = sizes_of_emitted.parts(artifact) if isinstance(artifact, Executorch) else sizes_of_programs.parts(artifact)
    return sorted((part for part in parts if part["bytes"]), key=lambda part: -part["bytes"])
