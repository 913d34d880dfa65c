"""How much of a run is spent inside the calls that a script by hand makes too; the rest is etgraph's own."""

from __future__ import annotations

import functools
import importlib
import time
from typing import Any

#: Where the stages look each call up when they run.
CALLS = (
    ("torch.export", "export"),
    ("executorch.exir", "to_edge"),
    ("executorch.exir", "to_edge_transform_and_lower"),
    ("executorch.exir.EdgeProgramManager", "to_backend"),
    ("executorch.exir.EdgeProgramManager", "to_executorch"),
    ("torchao.quantization.pt2e.quantize_pt2e", "prepare_pt2e"),
    ("torchao.quantization.pt2e.quantize_pt2e", "convert_pt2e"),
)


class UpstreamClock:
    """Counts wall and processor seconds inside upstream's calls from now on; a call within a call counts once."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.cpu = 0.0
        self.calls = 0
        self._inside = False

    def start(self) -> None:
        """Put a clock around each call; the calls themselves are upstream's own."""
        for owner, name in CALLS:
            holder = _found(owner)
            setattr(holder, name, self._timed(getattr(holder, name)))

    def _timed(self, call: Any) -> Any:
        @functools.wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return call(*args, **kwargs)
            self._inside, self.calls = True, self.calls + 1
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.wall += time.perf_counter() - wall
                self.cpu += time.process_time() - cpu
                self._inside = False

        return timed


def _found(owner: str) -> Any:
    try:
        return importlib.import_module(owner)
    except ModuleNotFoundError:
        module, _, name = owner.rpartition(".")
        return getattr(importlib.import_module(module), name)
