"""Execute `.pte` files on this host and compare them with the model: `python -m benchmarks.pte_check JOB`.

Prints for each file the largest absolute error of all outputs, and the same relative to the largest output.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Compare the files that the job names with the network that it names."""
    import executorch.kernels.quantized  # noqa: F401
    import torch
    from torch.utils import _pytree as pytree

    from benchmarks import networks

    job = json.loads(sys.argv[1])
    model, inputs = networks.make(job["network"], **job.get("options", {}))
    with torch.no_grad():
        wanted = [one for one in pytree.tree_leaves(model(*inputs)) if isinstance(one, torch.Tensor)]
    print(json.dumps({name: _compared(path, inputs, wanted) for name, path in job["files"].items()}))


def _compared(path: str, inputs: Any, wanted: list[Any]) -> dict[str, float]:
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(path).load_method("forward")
    given = method.execute(list(inputs))
    if len(given) != len(wanted):
        raise ValueError(f"it returns {len(given)} outputs, and the model {len(wanted)}")
    error = max(float((a - b).abs().max()) for a, b in zip(given, wanted, strict=True))
    relative = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(given, wanted, strict=True))
    return {"error": error, "relative": relative}


if __name__ == "__main__":
    main()
