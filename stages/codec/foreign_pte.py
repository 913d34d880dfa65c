"""`.pte` and `.bpte` files: the bytes as they are, with what they say about their methods."""

from __future__ import annotations

from pathlib import Path

from etgraph.artifact import Executorch
from etgraph.blobs import map_file

__all__ = ["load_pte"]


def load_pte(path: Path, *, bundled: bool = False) -> Executorch:
    """Load an ExecuTorch program for inspection and comparison.

    A `.pte` does not name its `.ptd` files, so they are not taken along.

    Raises:
        ArtifactFileError: the program inside does not parse.
    """
    from executorch.exir._serialize._program import deserialize_pte_binary

    from stages.codec.foreign import wrap
    from stages.support.emitted import describe_methods

    with open(path, "rb") as file:
        data = map_file(file.fileno(), 0, path.stat().st_size)
    try:
        if bundled:
            from executorch.devtools.bundled_program.serialize import (
                deserialize_from_flatbuffer_to_bundled_program,
            )

            data = memoryview(deserialize_from_flatbuffer_to_bundled_program(bytes(data)).program)
        program = deserialize_pte_binary(bytes(data)).program
        methods = describe_methods(program, {})
    except Exception as e:
        raise wrap(path, e, "ExecuTorch") from e
    return Executorch(methods=methods, pieces=(data,))
