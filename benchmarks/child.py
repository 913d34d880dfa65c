"""One measurement in a process of its own: `python -m benchmarks.child JOB`, where the job is JSON.

Prints, as the last line, wall and processor seconds from when everything is imported and the model is made until the
`.pte` is written, and the resident memory at both ends.
"""

from __future__ import annotations

import importlib
import json
import sys
import time


def main() -> None:
    """Lower the network that the job names the way that it names."""
    job = json.loads(sys.argv[1])
    way = importlib.import_module(f"benchmarks.ways.{job['way']}")
    from benchmarks import networks

    model, inputs = networks.make(job["network"], **job.get("options", {}))
    weights = sum(parameter.nbytes for parameter in model.parameters())
    before = _resident()
    wall, cpu = time.perf_counter(), time.process_time()
    told = way.lower(model, inputs, job)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({**told, "wall": wall, "cpu": cpu, "resident_before": before, "weights": weights}))


def _resident() -> int:
    import psutil

    return psutil.Process().memory_info().rss


if __name__ == "__main__":
    main()
