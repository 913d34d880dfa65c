"""Bundled programs: a `.pte` with inputs, and with the outputs that are expected of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs, Prepared
from etgraph.errors import UsageError


@etgraph.service("write_bundled")
def write_bundled(
    path: Path,
    program: Executorch,
    source: Artifact,
    samples: Mapping[str, Sequence[Inputs]],
    *,
    trained: bool = False,
) -> Path:
    """Write a bundled program: method by method the inputs, and what the source computes for them in Python.

    Args:
        trained: the source is a prepared program that the run has trained, and says what is right.

    Raises:
        UsageError: the format has no place for something: values that are neither tensors nor numbers among the
            inputs, outputs that are no tensors, outputs that are inputs written into, data files.
        ArtifactFileError: the system refused.
    """
    if isinstance(source, Executorch) or (isinstance(source, Prepared) and not trained):
        raise UsageError(
            f"the run began with a program at {source.kind}, so nothing says which outputs are expected",
            hint="Run from the module, or from an exported, quantized, edge or lowered program.",
        )
    if program.data_pieces:
        raise UsageError(
            "this program keeps its weights in a data file, for which a bundled program has no place",
            hint="Emit it with its weights inside.",
        )
    import tempfile

    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer

    from etgraph.files import replace_file, write_pieces

    suites = [
        MethodTestSuite(method, [_case(program, source, method, sample) for sample in given])
        for method, given in _ordered(samples, source).items()
    ]
    with tempfile.NamedTemporaryFile(suffix=".pte") as file:
        write_pieces(file, program.pieces)
        file.flush()
        content = serialize_from_bundled_program_to_flatbuffer(
            BundledProgram(None, method_test_suites=suites, pte_file_path=file.name)
        )
    replace_file(path, lambda target: write_pieces(target, [content]))
    return path


def _ordered(samples: Mapping[str, Sequence[Inputs]], source: Artifact) -> dict[str, tuple[Inputs, ...]]:
    from stages.support.executing import in_order_of_export

    return {method: in_order_of_export(given, source, method) for method, given in samples.items()}


def _case(program: Executorch, source: Artifact, method: str, sample: Inputs) -> Any:
    import torch
    from executorch.devtools.bundled_program.config import MethodTestCase

    from stages.support.executing import check_layout, in_python, leaves_of

    roles = [output.get("role", "output") for output in program.methods[method]["outputs"]]
    mutated = [role for role in roles if role != "output"]
    if mutated:
        raise UsageError(
            f"method {method!r} returns {', '.join(mutated)} before its outputs, and the source does not say what they "
            "are to be",
            hint="Write to a copy of the input in forward.",
        )
    check_layout(method, sample, program)
    inputs = leaves_of(sample)
    for position, value in enumerate(inputs):
        if type(value) not in (bool, int, float) and not isinstance(value, torch.Tensor):
            raise UsageError(
                f"input {position} of method {method!r} is a {type(value).__name__}, and a bundled program holds "
                "tensors and numbers"
            )
        if isinstance(value, torch.Tensor) and value.dim_order() != tuple(range(value.dim())):
            raise UsageError(
                f"input {position} of method {method!r} is laid out in memory as {value.dim_order()}, and upstream's "
                "writer of bundled programs makes every tensor contiguous; the runtime would compute wrong values",
                hint="Export with contiguous inputs to bundle them.",
            )
    evaluating = any(
        step.stage == "torch_export" and ("eval_mode", "True") in step.options for step in program.provenance
    )
    outputs = in_python(source, method, eval_mode=evaluating)(sample)
    for position, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor):
            raise UsageError(
                f"output {position} of method {method!r} is a {type(value).__name__}, and a bundled program holds "
                "outputs that are tensors",
                hint="Return tensors alone.",
            )
    return MethodTestCase([_plain(value) for value in inputs], [_plain(value) for value in outputs])


def _plain(value: Any) -> Any:
    """Give parameters and the like as tensors of their own: the format takes the exact type, whole storages only."""
    import torch

    return value.detach().clone().as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) else value
