"""Peak memory of a stretch of work: the system's high-water mark of this process, and samples where that was higher."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

__all__ = ["PeakMemory"]

#: Seconds between samples; at fifty a second what is measured took 2 % longer.
_INTERVAL = 0.2


class PeakMemory:
    """Measure the largest resident set, in bytes, from `start` to the end of the block.

    Where the process held more than ever before, the kernel's high-water mark is exact. Where it had held more
    earlier, that mark says nothing (resetting it would disturb whoever else reads it), and it is the largest of
    samples that a thread takes: a spike shorter than their interval can be missed.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._process: psutil.Process | None = None
        self._highest_before = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="etgraph-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        return self

    def start(self) -> None:
        """Begin to measure, unless that has begun: a step that is reused costs nothing."""
        if self._process is None:
            import psutil

            self._process = psutil.Process()
            self._highest_before = _highest()
            self._sample()
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._stop.set()
            self._thread.join()
            self._sample()
            highest = _highest()
            if highest > self._highest_before:
                self.bytes = max(self.bytes, highest)

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._sample()

    def _sample(self) -> None:
        assert self._process is not None
        self.bytes = max(self.bytes, self._process.memory_info().rss)


def _highest() -> int:
    """Return the largest resident set that this process ever had, in bytes; 0 where the system does not say."""
    try:
        # What `getrusage` says begins, after exec, with what the parent held.
        with open("/proc/self/status", "rb") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
