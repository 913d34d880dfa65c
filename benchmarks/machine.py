"""Where figures come from: the machine in plain words, and the versions of what was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

_TOOLS = ("etgraph", "torch", "executorch", "torchao", "transformers", "joblib", "blake3", "numpy")


def machine() -> dict[str, str]:
    """Return processor, cores, memory and system; no name of a host, no path."""
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": str(cores),
        "memory": f"{round(psutil.virtual_memory().total / 2**30)} GiB",
        "system": _system(),
        "architecture": platform.machine(),
    }


def versions() -> dict[str, str]:
    """Return what is installed of the things that figures depend on."""
    found = {"python": platform.python_version()}
    for name in _TOOLS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def load() -> float | None:
    """Return how many processes wanted to run in the last minute; None where the system does not say."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def in_words(described: dict[str, str]) -> str:
    """Say it in a sentence."""
    return (
        f"{described['cores']} cores of an {described['processor']} ({described['architecture']}), "
        f"{described['memory']} of memory, {described['system']}"
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
