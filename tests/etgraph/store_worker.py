"""A process that uses a cache, for the tests of the store: `store_worker.py COMMAND DIRECTORY ...`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

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


def run_short(directory: str) -> None:
    """Use a cache with no descriptor left, before anything that a cache imports late is there."""
    cache, fresh = Cache(directory), Cache(directory)
    peeked = fresh.peek("key0")
    assert peeked is not None
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    assert cache.lookup("key0") is None
    with pytest.raises(CacheEntryError, match="Too many open files"):
        _ = peeked.document
    assert put(cache, "key1") is None
    with cache.building("key1"):
        pass
    cache.entries()
    cache.prune()
    cache.verify()
    os.close(taken.pop())
    one_left = cache.lookup("key0")  # no room for a mapping: the blob is read
    assert one_left is not None, cache.problems
    assert is_right(one_left, "key0")
    for descriptor in taken:
        os.close(descriptor)
    assert put(cache, "key1") is not None
    print("right")


COMMANDS = {"write": write, "read": read, "build": build, "hold": hold, "short": run_short}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
