"""`etgraph inspect --model-explorer DIR`: the graphs of a program as a file that Model Explorer opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

__all__ = ["write_graphs"]


def write_graphs(artifact: Any, folder: Path, stem: str) -> Path:
    """Write `NAME.<kind>.json` into the folder, whole or not at all, and return its path."""
    from etgraph.files import replace_file
    from etgraph.registry import registry

    label = f"{stem}.{artifact.kind}"
    collection = registry.service("model_explorer")(artifact, label)
    content = json.dumps(collection).encode()

    def fill(to: IO[bytes]) -> None:
        to.write(content)

    file = folder / f"{label}.json"
    replace_file(file, fill)
    return file
