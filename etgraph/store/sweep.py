"""Housekeeping: evict what was least recently used, remove what nobody refers to, check everything.

A reader that maps a blob keeps it though its name is gone. A writer checks its blobs again under the lock
before it publishes. So a sweep at a bad moment costs at most a miss.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from etgraph.store.blobs import BlobDamaged
from etgraph.store.files import remove, tree_size

if TYPE_CHECKING:
    from etgraph.store.entries import Entries
    from etgraph.store.entry import Entry

__all__ = ["PruneReport", "VerifyReport", "blob_sizes", "sweep", "verify"]

#: Seconds after which a temporary file has no writer any more.
STALE = 6 * 3600
#: Seconds during which a blob without an entry may belong to a store in progress.
GRACE = 3600
#: Seconds after which an idle lock file is removed.
IDLE = 24 * 3600


@dataclass(frozen=True)
class PruneReport:
    """What a sweep removed and what is left, in entries and bytes."""

    removed: int
    freed_bytes: int
    kept: int
    kept_bytes: int


@dataclass(frozen=True)
class VerifyReport:
    """What a check of everything found; `bad` says what was set aside, a sentence each."""

    entries: int
    blobs: int
    nbytes: int
    bad: list[str] = field(default_factory=list)


def blob_sizes(entries: Entries) -> dict[str, os.stat_result]:
    """Every blob file by digest; whatever else lies among them is set aside."""
    root, found = entries.directory.path / "blobs", {}
    for folder in _scan(root):
        for item in _scan(root / folder.name):
            digest = folder.name + item.name
            if re.fullmatch(r"[0-9a-f]{64}", digest) and item.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    found[digest] = item.stat(follow_symlinks=False)
            else:
                entries.directory.quarantine(root / folder.name / item.name)
    return found


def sweep(entries: Entries, limit: int, target: int) -> PruneReport:
    """Remove leftovers, then, above `limit` bytes, entries from the least recently used until `target`.

    The lock `store` is held by the caller.
    """
    _remove_leftovers(entries)
    blobs = blob_sizes(entries)
    kept: list[Entry] = []
    removed = freed = unread = 0
    for name in list(entries.names()):
        entry = entries.read(name)
        if entry is None:
            # Set aside, or not readable at this moment: then nobody knows which blobs it needs.
            unread += os.path.lexists(entries.path(name))
        elif entries.is_complete(entry):
            kept.append(entry)
        else:
            freed += _own_size(entry)
            removed += _unlink(entry.path)
    references = Counter(digest for entry in kept for digest in entry.manifest.blobs)
    total = sum(status.st_size for status in blobs.values()) + sum(_own_size(entry) for entry in kept)
    total += tree_size(entries.directory.path / "quarantine") + tree_size(entries.directory.path / "records")

    now = time.time()
    for digest in [digest for digest in blobs if not references[digest] and not unread]:
        if total > limit or abs(now - blobs[digest].st_mtime) > GRACE:
            size = blobs[digest].st_size * _unlink(entries.blobs.path(digest))
            total, freed = total - size, freed + size
    kept.sort(key=lambda entry: entry.status.st_mtime_ns, reverse=True)
    while kept and total > limit:
        limit = target  # having passed the limit, make room for more than one store
        entry = kept.pop()
        size = _own_size(entry) * _unlink(entry.path)
        for digest in entry.manifest.blobs:
            references[digest] -= 1
            if not references[digest] and digest in blobs:
                size += blobs[digest].st_size * _unlink(entries.blobs.path(digest))
        total, freed, removed = total - size, freed + size, removed + 1
    return PruneReport(removed, freed, len(kept), total)


def verify(entries: Entries) -> VerifyReport:
    """Read and check every entry and every blob; bad ones are set aside or removed.

    The lock `store` is held by the caller, so that nothing is evicted meanwhile.
    """
    blobs, nbytes, count, bad = blob_sizes(entries), 0, 0, []
    for digest, status in blobs.items():
        try:
            entries.blobs.load(digest, status.st_size)
            nbytes += status.st_size
        except BlobDamaged as error:
            bad.append(str(error))
        except OSError:
            continue
    for name in list(entries.names()):
        entry = entries.read(name)
        if entry is not None and not entries.is_complete(entry):
            bad.append(f"entry {name[:12]} lacks a blob that it refers to")
            _unlink(entry.path)
        elif entry is not None and entry.intact():
            count, nbytes = count + 1, nbytes + _own_size(entry)
        elif not os.path.lexists(entries.path(name)):
            bad.append(f"entry {name[:12]} is damaged")
    return VerifyReport(count, len(blobs), nbytes, bad)


def _own_size(entry: Entry) -> int:
    return entry.status.st_size


def _unlink(path: Path) -> int:
    """1 when the file is gone now, else 0."""
    try:
        remove(path)
    except OSError:
        return 0
    return 1


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _remove_leftovers(entries: Entries) -> None:
    root, now = entries.directory.path, time.time()
    for item in _scan(root / "tmp"):
        with contextlib.suppress(OSError):
            if abs(now - item.stat(follow_symlinks=False).st_mtime) > STALE:
                _unlink(root / "tmp" / item.name)
    for item in _scan(root / "locks"):
        with contextlib.suppress(OSError):
            if item.name != "store" and abs(now - item.stat(follow_symlinks=False).st_mtime) > IDLE:
                # Two processes that meet at this very moment build the same twice, no worse.
                with entries.directory.locked(item.name, 0) as held:
                    if held:
                        _unlink(root / "locks" / item.name)
