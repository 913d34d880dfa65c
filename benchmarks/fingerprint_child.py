"""The measurements of `benchmarks.fingerprint`, in a process that imports torch."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Measure weights or nodes, as the job says; print seconds per round."""
    job = json.loads(sys.argv[1])
    print(json.dumps(_weights(job["bytes"], job["rounds"]) if "bytes" in job else _nodes(job["nodes"], job["rounds"])))


def _weights(size: int, rounds: int) -> dict[str, list[float]]:
    """Digest eight weights, in turns with blake3 and a copy of the same bytes; wall and processor seconds."""
    import numpy
    import torch
    from blake3 import blake3

    import etgraph

    width = int((size / 8 / 4) ** 0.5)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(8)))
    weights = [parameter.detach().numpy().view(numpy.uint8) for parameter in model.parameters()]
    target = numpy.zeros_like(weights[0])
    program = torch.export.export(model, (torch.zeros(1, width),))

    def hashed(threads: int) -> None:
        for weight in weights:
            blake3(weight, max_threads=threads).digest()

    ways: dict[str, Callable[[], Any]] = {
        "fingerprint": lambda: etgraph.fingerprint(program),
        "blake3": lambda: hashed(blake3.AUTO),
        "blake3_one": lambda: hashed(1),
        "memcpy": lambda: [numpy.copyto(target, weight) for weight in weights],
    }
    for way in ways.values():
        way()
    told: dict[str, list[float]] = {f"{name}{clock}": [] for name in ways for clock in ("", "_cpu")}
    for _ in range(rounds):
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            way()
            told[name].append(time.perf_counter() - wall)
            told[f"{name}_cpu"].append(time.process_time() - cpu)
    return {**told, "bytes": [sum(weight.nbytes for weight in weights)]}


def _nodes(counts: list[int], rounds: int) -> dict[int, list[float]]:
    """Digest chains of operators with next to no weights; processor seconds.

    What imports and exports left is out of the reach of Python's garbage collector: looking through the objects of
    torch once takes as long as the digest of thousands of nodes, and would come in some rounds and not in others.
    """
    import gc

    import torch

    import etgraph

    told = {}
    for count in counts:
        model = torch.nn.Sequential(*(torch.nn.ReLU() for _ in range(count)))
        program = torch.export.export(model, (torch.zeros(4),))
        etgraph.fingerprint(program)
        gc.collect()
        gc.freeze()
        told[count] = [_seconds(lambda program=program: etgraph.fingerprint(program)) for _ in range(rounds)]
    return told


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
