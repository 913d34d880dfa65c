"""One run of `benchmarks.iterate` with etgraph: `net.py` of a folder to `etgraph.pte`, with one setting changed."""

from __future__ import annotations

import json
import sys

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass

import etgraph


def main() -> None:
    """Run, save, and print which steps ran."""
    job = json.loads(sys.argv[1])
    setting = job["setting"]
    sys.path.insert(0, job["folder"])
    import net

    model, inputs = net.make()
    if setting == "weight":
        flip_one_bit(model)
    chosen = [XnnpackPartitioner(per_op_mode=setting == "partitioner")]
    plan = MemoryPlanningPass(alloc_graph_output=setting != "memory")
    recipe = etgraph.get_recipe("xnnpack_fp32")
    recipe = recipe.with_options("to_edge", partitioners=chosen).with_options("to_backend", partitioners=chosen)
    recipe = recipe.with_options("to_executorch", backend_config=ExecutorchBackendConfig(memory_planning_pass=plan))
    cache = etgraph.Cache(f"{job['folder']}/cache", "100GB") if job["cached"] else False
    result = etgraph.run(model, inputs, recipe, path="split", cache=cache)
    result.save(f"{job['folder']}/etgraph.pte")
    steps = [(step.stage, step.outcome, step.seconds) for step in result.steps]
    print(json.dumps({"steps": steps, "reasons": [step.reason for step in result.steps]}))


def flip_one_bit(model: object) -> None:
    """Change one weight by as little as can be."""
    import torch

    next(model.parameters()).data.view(torch.int32).view(-1)[0] ^= 1


if __name__ == "__main__":
    main()
