"""What a user of `executorch.export` writes, with the same quantizer, partitioner and configs as the other ways."""

from __future__ import annotations

from typing import Any

import executorch.kernels.quantized  # noqa: F401  the out variants of q/dq operators
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.backends.xnnpack.utils.configs import (
    get_xnnpack_edge_compile_config,
    get_xnnpack_executorch_backend_config,
)
from executorch.export import ExportRecipe, LoweringRecipe, QuantizationRecipe, export


def lower(model: Any, inputs: tuple[Any, ...], job: dict[str, Any]) -> dict[str, Any]:
    """Go from the module to a `.pte` for XNNPACK."""
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    recipe = ExportRecipe(
        name="benchmark",
        quantization_recipe=QuantizationRecipe(quantizers=[quantizer]) if job["precision"] == "int8" else None,
        lowering_recipe=LoweringRecipe(
            partitioners=[XnnpackPartitioner()], edge_compile_config=get_xnnpack_edge_compile_config()
        ),
        executorch_backend_config=get_xnnpack_executorch_backend_config(),
    )
    session = export(model, [inputs], recipe)
    session.save_to_pte(job["out"])
    return {}
