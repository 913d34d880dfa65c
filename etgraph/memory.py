"""Peak memory of a stretch of work, by sampling the resident set of this process."""

from __future__ import annotations

import threading
from types import TracebackType

import psutil

__all__ = ["PeakMemory"]

_INTERVAL = 0.02


class PeakMemory:
    """Measure the largest resident set, in bytes, while the block runs; sampled every 20 ms and at both ends.

    The kernel's own high-water mark covers the life of a process and resetting it would disturb whoever else reads
    it, so the resident set is sampled from a thread. A spike shorter than the interval can be missed.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._process = psutil.Process()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="etgraph-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        self.bytes = max(self.bytes, self._process.memory_info().rss)
