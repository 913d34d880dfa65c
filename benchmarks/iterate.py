"""What does one change cost, and what do all kinds of one model take on disk?

ViT-base from a Python file, the split way, on one cache; each run is a new process that changes one thing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.common import Figure, Run, ratio, run, show, write_model

ITERATION = """
import json, sys
sys.path.insert(0, {folder!r})
import torch, etgraph, net
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass

model, inputs = net.make()
chosen = [XnnpackPartitioner()]
plan = MemoryPlanningPass()
{change}
recipe = etgraph.get_recipe("xnnpack_fp32")
recipe = recipe.with_options("to_edge", partitioners=chosen).with_options("to_backend", partitioners=chosen)
recipe = recipe.with_options("to_executorch", backend_config=ExecutorchBackendConfig(memory_planning_pass=plan))
cache = {cache}
result = etgraph.run(model, inputs, recipe, path="split", cache=cache)
weights = sum(p.nbytes for p in model.parameters())
print(json.dumps({{
    "steps": {{step.stage: [step.outcome, step.seconds] for step in result.steps}},
    "weights": weights, "pte": result.artifact.nbytes,
}}))
"""

CHANGES = {
    "nothing changed": "",
    "only the memory plan changed": "plan = MemoryPlanningPass(alloc_graph_input=False)",
    "only an option of the partitioner changed": "chosen = [XnnpackPartitioner(per_op_mode=True)]",
    "one weight changed": "next(model.parameters()).data.view(torch.int32).view(-1)[0] ^= 1",
}


def measure() -> list[Figure]:
    """Run once on an empty cache, then once for each change."""
    with tempfile.TemporaryDirectory(prefix="etgraph-bench") as name:
        folder = Path(name)
        net = write_model(folder)
        cache = folder / "cache"

        def iteration(change: str, cached: bool = True) -> tuple[Run, dict[str, object]]:
            where = f"etgraph.Cache({str(cache)!r}, '100GB')" if cached else "False"
            done = run(["-c", ITERATION.format(folder=str(folder), change=change, cache=where)])
            return done, json.loads(done.out.splitlines()[-1])

        importing = run(["-c", ITERATION[: ITERATION.index("model, inputs")].format(folder=str(folder)) + "net.make()"])
        off, _ = iteration("", cached=False)
        cold, told = iteration("")
        size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        figures = [
            Figure("imports and making the model alone: wall", importing.wall, "s"),
            Figure("from the module, cache off: wall", off.wall, "s"),
            Figure("from the module, empty cache: wall", cold.wall, "s"),
            Figure(
                "empty cache against cache off, from the module: process time", ratio(cold.cpu, off.cpu), "x", "<= 1.10"
            ),
            Figure("all kinds on disk against the weights", ratio(size, float(str(told["weights"]))), "x", "<= 2.2"),
        ]
        for what, change in CHANGES.items():
            figures.append(_figure(what, *iteration(change)))
        net.write_text(net.read_text().replace("# a comment", "# another comment\n    # and one more"))
        return [*figures, _figure("a comment in the model's file changed", *iteration(""))]


def _figure(what: str, done: Run, told: dict[str, object]) -> Figure:
    steps = told["steps"]
    assert isinstance(steps, dict)
    shown = ", ".join(f"{stage} {outcome} {seconds:.2f}" for stage, (outcome, seconds) in steps.items())
    return Figure(f"{what}: wall", done.wall, "s", note=shown)


if __name__ == "__main__":
    show(measure())
