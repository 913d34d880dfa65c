"""The same as `benchmarks.iteration` by hand: upstream's calls, and upstream's functions to save what comes between."""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Go on from the file that the job names, and save what is made."""
    job = json.loads(sys.argv[1])
    folder, start = job["folder"], job["from"]
    _emit(_lowered(folder, start, job["setting"]), folder, job["setting"])


def _exported(folder: str, start: str) -> Any:
    import executorch.exir  # noqa: F401  as a script has it at its top
    import torch

    if start == "exported":
        return torch.export.load(f"{folder}/kept.pt2")
    sys.path.insert(0, folder)
    import net

    model, inputs = net.make()
    with torch.no_grad():
        exported = torch.export.export(model, inputs)
    torch.export.save(exported, f"{folder}/kept.pt2")
    return exported


def _lowered(folder: str, start: str, setting: str) -> Any:
    import executorch.exir.serde.serialize as serde
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.utils.configs import get_xnnpack_edge_compile_config
    from executorch.exir import EdgeProgramManager, to_edge_transform_and_lower

    if start == "lowered":
        program = serde.load(f"{folder}/kept.lowered")
        return EdgeProgramManager({"forward": program}, {}, get_xnnpack_edge_compile_config())
    manager = to_edge_transform_and_lower(
        _exported(folder, start),
        partitioner=[XnnpackPartitioner(per_op_mode=setting == "partitioner")],
        compile_config=get_xnnpack_edge_compile_config(),
    )
    serde.save(manager.exported_program(), f"{folder}/{'other' if setting else 'kept'}.lowered")
    return manager


def _emit(manager: Any, folder: str, setting: str) -> None:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    plan = MemoryPlanningPass(alloc_graph_output=setting != "memory")
    program = manager.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan))
    with open(f"{folder}/by_hand.pte", "wb") as file:
        program.write_to_file(file)


if __name__ == "__main__":
    main()
