"""One step of `benchmarks.store` in a process of its own: make, save or load a lowered program, or copy bytes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BYTES = 1 << 28


def main() -> None:
    """Do what the job says; print what came of it."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    print(json.dumps({"make": _make, "save": _save, "load": _load, "bandwidth": _bandwidth}[job["do"]](job, folder)))


def _make(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import etgraph
    from benchmarks import networks

    model, inputs = networks.make(job["network"])
    cache = etgraph.Cache(job["cache"], "100GB")
    result = etgraph.run(model, inputs, "xnnpack_fp32", path="split", cache=cache, keep=["lowered"])
    result["lowered"].save(folder / "made.lowered.etg")
    return {"weights": sum(parameter.nbytes for parameter in model.parameters())}


def _save(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import executorch.exir.serde.serialize as serde

    import etgraph

    lowered = etgraph.load(folder / "made.lowered.etg")
    if job["way"] == "etgraph":
        return _clocked(lambda: lowered.save(folder / "saved.lowered.etg"))
    return _clocked(lambda: serde.save(lowered.methods["forward"], str(folder / "saved.serde")))


def _load(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    import executorch.exir.serde.serialize as serde
    import transformers.modeling_outputs  # noqa: F401  exir.serde asks for the classes of outputs

    import etgraph

    if job["way"] == "etgraph":
        return _clocked(lambda: etgraph.load(folder / "saved.lowered.etg"))
    return _clocked(lambda: serde.load(str(folder / "saved.serde")))


def _bandwidth(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Bytes per second: copied in memory, written to the disk (fsync), read from the system's file cache; best of 3."""
    import numpy

    source, target = numpy.ones(_BYTES, dtype=numpy.uint8), numpy.zeros(_BYTES, dtype=numpy.uint8)
    path = folder / "bytes"

    def write() -> None:
        with open(path, "wb") as file:
            file.write(source)
            file.flush()
            os.fsync(file.fileno())

    def read() -> None:
        with open(path, "rb", buffering=0) as file:
            file.readinto(target)

    works = {"memory": lambda: numpy.copyto(target, source), "write": write, "read": read}
    return {name: _BYTES / min(_clocked(work)["wall"] for _ in range(3)) for name, work in works.items()}


def _clocked(work: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    kept = work()
    clocked = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    del kept
    return clocked


if __name__ == "__main__":
    main()
