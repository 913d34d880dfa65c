"""What a user writes with upstream's own calls: export, quantize where asked to, lower, emit, write."""

from __future__ import annotations

from typing import Any

import executorch.kernels.quantized  # noqa: F401  the out variants of q/dq operators
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.backends.xnnpack.utils.configs import (
    get_xnnpack_edge_compile_config,
    get_xnnpack_executorch_backend_config,
)
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


def lower(model: Any, inputs: tuple[Any, ...], job: dict[str, Any]) -> dict[str, Any]:
    """Go from the module to a `.pte` for XNNPACK."""
    exported = capture(model, inputs)
    if job["precision"] == "int8":
        exported = quantize(exported, inputs)
    edge = to_edge_transform_and_lower(
        exported, partitioner=[XnnpackPartitioner()], compile_config=get_xnnpack_edge_compile_config()
    )
    program = edge.to_executorch(get_xnnpack_executorch_backend_config())
    with open(job["out"], "wb") as file:
        program.write_to_file(file)
    return {}


def capture(model: Any, inputs: tuple[Any, ...]) -> Any:
    """Export, as the documentation shows it."""
    with torch.no_grad():
        return torch.export.export(model, inputs)


def quantize(exported: Any, inputs: tuple[Any, ...]) -> Any:
    """Quantize statically with PT2E, calibrated on the one sample."""
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        prepared(*inputs)
    return capture(convert_pt2e(prepared), inputs)
