"""A process that uses a cache, for the tests of the store: `store_worker.py COMMAND DIRECTORY ...`."""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from etgraph.blobs import digest_of
from etgraph.errors import CacheEntryError
from etgraph.store import Cache, Entry

__all__ = ["SHARED", "CacheEntryError", "contents", "is_right", "noise", "put"]

KEYS = 12


def noise(label: str, size: int) -> bytes:
    """The same bytes for the same label, in every process."""
    return random.Random(hashlib.sha256(label.encode()).digest()).randbytes(size)


#: Equal in every entry, so that it is stored once; large enough to be mapped.
SHARED = noise("shared", 1024**2 + 5)


def contents(key: str) -> tuple[dict[str, object], dict[str, bytes]]:
    """What belongs under a key: a document that names a tiny, a medium and a shared large blob."""
    blobs = [noise(key + "tiny", 300), noise(key + "medium", 40_000 + len(key)), SHARED]
    named = {digest_of(blob): blob for blob in blobs}
    return {"key": key, "blobs": list(named), "numbers": [1, 2.5, None]}, named


def put(cache: Cache, key: str) -> Entry | None:
    """Store what belongs under a key."""
    document, blobs = contents(key)
    return cache.store(key, document, blobs, about={"stage": "null", "seconds": 1.5})


def is_right(entry: Entry, key: str) -> bool:
    """The entry is, byte for byte, what belongs under the key."""
    document, blobs = contents(key)
    return entry.document == document and all(bytes(entry.blob(d)) == blob for d, blob in blobs.items())


def write(directory: str, seed: str) -> None:
    """Store and evict without end, until killed."""
    cache, choice = Cache(directory, size_limit=3 * 1024**2), random.Random(seed)
    while True:
        put(cache, f"key{choice.randrange(KEYS)}")
        if choice.random() < 0.1:
            cache.prune(choice.choice([0, 1024**2, 3 * 1024**2]))


def read(directory: str, stop: str) -> None:
    """Look up without end, until the file `stop` is there; print hits, misses, and how many were wrong."""
    cache, choice = Cache(directory, size_limit=3 * 1024**2), random.Random(1)
    hits = misses = wrong = 0
    while not os.path.exists(stop):
        key = f"key{choice.randrange(KEYS)}"
        entry = cache.lookup(key)
        if entry is None:
            misses += 1
        elif is_right(entry, key):
            hits += 1
        else:
            wrong += 1
    print(hits, misses, wrong, len(cache.problems), *cache.problems, sep="\n")


def build(directory: str, key: str, log: str) -> None:
    """Build one key as a run does, and leave a line in `log` when it was really built here."""
    cache = Cache(directory)
    with cache.building(key):
        entry = cache.lookup(key)
        if entry is None:
            with open(log, "a") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(0.3)
            put(cache, key)
            entry = cache.lookup(key)
    assert entry is not None
    assert is_right(entry, key)


def hold(directory: str, key: str, log: str) -> None:
    """Hold the lock of a key until killed, and say so in `log`."""
    with Cache(directory).building(key):
        Path(log).write_text("held")
        time.sleep(600)


if __name__ == "__main__":
    {"write": write, "read": read, "build": build, "hold": hold}[sys.argv[1]](*sys.argv[2:])
