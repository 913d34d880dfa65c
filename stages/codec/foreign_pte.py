"""`.pte` and `.bpte` files: the bytes as they are, with what they say about their methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etgraph.artifact import Executorch, Inputs
from etgraph.blobs import map_file

__all__ = ["load_pte"]


def load_pte(path: Path, *, bundled: bool = False) -> Executorch:
    """Load an ExecuTorch program for inspection and comparison; a bundled one with its inputs and expected outputs.

    A `.pte` does not name its `.ptd` files, so they are not taken along.

    Raises:
        ArtifactFileError: the program inside does not parse.
    """
    from executorch.exir._serialize._program import deserialize_pte_binary

    from stages.codec.foreign import wrap
    from stages.support.emitted import describe_methods

    with open(path, "rb") as file:
        data = map_file(file.fileno(), 0, path.stat().st_size)
    more: dict[str, Any] = {}
    try:
        if bundled:
            from executorch.devtools.bundled_program.serialize import (
                deserialize_from_flatbuffer_to_bundled_program,
            )

            bundle = deserialize_from_flatbuffer_to_bundled_program(bytes(data))
            data = memoryview(bundle.program)
            more = _test_cases(bundle)
        program = deserialize_pte_binary(bytes(data)).program
        methods = describe_methods(program, {})
    except Exception as e:
        raise wrap(path, e, "ExecuTorch") from e
    return Executorch(methods=methods, pieces=(data,), **more)


def _test_cases(bundle: Any) -> dict[str, Any]:
    inputs, outputs = {}, {}
    for suite in bundle.method_test_suites:
        cases = suite.test_cases
        inputs[suite.method_name] = tuple(Inputs(*map(_value, case.inputs)) for case in cases)
        if cases and all(case.expected_outputs for case in cases):
            outputs[suite.method_name] = tuple(tuple(map(_value, case.expected_outputs)) for case in cases)
    return {"example_inputs": inputs, "expected_outputs": outputs}


def _value(value: Any) -> Any:
    """Return a bundled value: a number, or a tensor in the memory layout that it was given in."""
    import torch
    from executorch.exir.tensor import get_scalar_type

    held = value.val
    if not hasattr(held, "sizes"):
        return next(iter(vars(held).values()))
    sizes, order = list(held.sizes), list(held.dim_order)
    strides, step = [0] * len(sizes), 1
    for dimension in reversed(order):
        strides[dimension], step = step, step * max(1, sizes[dimension])
    dtype = get_scalar_type(held.scalar_type)
    if 0 in sizes:
        return torch.empty(sizes, dtype=dtype)
    return torch.frombuffer(bytearray(held.data), dtype=dtype).as_strided(sizes, strides)
