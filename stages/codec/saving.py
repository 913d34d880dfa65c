"""Writing an artifact to a file; the suffix says in which form."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from etgraph import container
from etgraph.artifact import Artifact, Executorch
from etgraph.blobs import Buffer
from etgraph.errors import UsageError
from etgraph.files import replace_file

__all__ = ["save_file"]


def save_file(artifact: Artifact, path: str | os.PathLike[str]) -> None:
    """Write an artifact, whole or not at all.

    `NAME.<kind>.etg` holds any kind that can be kept, `.pt2` one method at exported or quantized as torch itself
    reads it, and `.pte` the final product, with its `.ptd` files beside it.

    Raises:
        UsageError: the suffix is none of these, or is not for this kind.
        ArtifactFileError: the system refused; what was there is untouched.
    """
    path = Path(path)
    if path.suffix == ".etg":
        from stages.codec.artifacts import encode

        container.write(path, *encode(artifact))
    elif path.suffix == ".pt2":
        from stages.codec.foreign_pt2 import save_pt2

        save_pt2(artifact, path)
    elif path.suffix == ".pte":
        _save_pte(artifact, path)
    else:
        raise UsageError(
            f"{path}: the suffix {path.suffix!r} says no form that an artifact can be written in",
            hint=f"Use {path.stem or 'NAME'}.{artifact.kind}.etg; for a final product .pte, for torch's form .pt2.",
        )


def _save_pte(artifact: Artifact, path: Path) -> None:
    if not isinstance(artifact, Executorch):
        raise UsageError(
            f"{path}: .pte is for the final product, and this artifact is at {artifact.kind}",
            hint=f"Use {path.stem}.{artifact.kind}.etg, or go on to executorch first.",
        )
    for name, pieces in artifact.data_pieces.items():
        if Path(name).name != name:
            raise UsageError(f"{path}: the data file {name!r} would not lie beside it")
        replace_file(path.with_name(name), _filler(pieces))
    replace_file(path, _filler(artifact.pieces))


def _filler(pieces: Sequence[Buffer]) -> Callable[[IO[bytes]], None]:
    def fill(file: IO[bytes]) -> None:
        for piece in pieces:
            file.write(piece)

    return fill
