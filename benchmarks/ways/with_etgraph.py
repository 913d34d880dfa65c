"""What a user of etgraph writes."""

from __future__ import annotations

from typing import Any

# What a script by hand has at its top too: these are timed as imports in both.
import executorch.backends.xnnpack.partition.xnnpack_partitioner
import executorch.backends.xnnpack.quantizer.xnnpack_quantizer
import executorch.backends.xnnpack.utils.configs
import executorch.exir
import executorch.kernels.quantized
import torchao.quantization.pt2e.quantize_pt2e

import etgraph
from benchmarks.ways.upstream_clock import UpstreamClock


def lower(model: Any, inputs: tuple[Any, ...], job: dict[str, Any]) -> dict[str, Any]:
    """Go from the module to a `.pte` for XNNPACK; say how much of the time was spent in upstream's calls."""
    int8 = job["precision"] == "int8"
    clock = UpstreamClock()
    clock.start()
    result = etgraph.run(
        model,
        inputs,
        "xnnpack_int8" if int8 else "xnnpack_fp32",
        calibration_inputs=[inputs] if int8 else None,
        cache=etgraph.Cache(job["cache"], "100GB") if job.get("cache") else False,
        path=job.get("path", "auto"),
    )
    result.save(job["out"])
    return {"upstream_wall": clock.wall, "upstream_cpu": clock.cpu, "upstream_calls": clock.calls}
