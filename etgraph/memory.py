"""Peak memory of a stretch of work, by sampling the resident set of this process."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

__all__ = ["PeakMemory"]

_INTERVAL = 0.02


class PeakMemory:
    """Measure the largest resident set, in bytes, from `start` to the end of the block; sampled every 20 ms.

    The kernel's own high-water mark covers the life of a process and resetting it would disturb whoever else reads
    it, so the resident set is sampled from a thread. A spike shorter than the interval can be missed.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._process: psutil.Process | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="etgraph-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        return self

    def start(self) -> None:
        """Begin to measure, unless that has begun: a step that is reused costs nothing."""
        if self._process is None:
            import psutil

            self._process = psutil.Process()
            self._sample()
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._stop.set()
            self._thread.join()
            self._sample()

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        assert self._process is not None
        self.bytes = max(self.bytes, self._process.memory_info().rss)
