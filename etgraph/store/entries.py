"""All entries of a cache: find one, publish one, and keep them within the limit."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etgraph.store import sweep
from etgraph.store.blobs import SMALL, BlobDamaged, Blobs
from etgraph.store.directory import StoreDirectory
from etgraph.store.entry import Entry
from etgraph.store.entry_file import encode, read_manifest
from etgraph.store.files import Damaged, is_shortage, open_regular, reason, remove
from etgraph.store.records import read_record, write_record
from etgraph.store.settings import default_limit

__all__ = ["Contents", "Entries"]

#: Seconds to wait for another process that publishes or sweeps.
PUBLISHING = 60.0
#: After so many stores the bytes are counted anew: what a killed process left is not in the running total.
RECOUNT = 256


@dataclass(frozen=True)
class Contents:
    """What is stored under a key; `blobs` maps a digest to its bytes in pieces."""

    key: str
    document: Mapping[str, Any]
    blobs: Mapping[str, Sequence[memoryview]]
    about: Mapping[str, Any]


class Entries:
    """The entries below one directory.

    Args:
        directory: where they lie.
        limit: the size limit in bytes; None for one from the free space, looked at once.
    """

    def __init__(self, directory: StoreDirectory, limit: int | None) -> None:
        self.directory = directory
        self.blobs = Blobs(directory)
        self._limit = limit

    def limit(self) -> int:
        """The size limit in bytes."""
        if self._limit is None:
            self._limit = default_limit(self.directory.path, self.usage()[0] if self.directory.usable() else 0)
        return self._limit

    def path(self, name: str) -> Path:
        """The file of an entry."""
        return self.directory.path / "entries" / name[:2] / name

    def names(self) -> Iterator[str]:
        """The names of all entries, in order."""
        for folder in _listed(self.directory.path / "entries"):
            yield from _listed(self.directory.path / "entries" / folder)

    def all(self) -> list[Entry]:
        """All entries with a good manifest whose blobs are there."""
        if not self.directory.usable():
            return []
        found = (self.find(name, verify=False) for name in list(self.names()))
        return [entry for entry in found if entry is not None]

    def remove(self, name: str) -> None:
        """Remove one entry; its blobs go with the next sweep when no other entry refers to them."""
        with contextlib.suppress(OSError):
            remove(self.path(name))

    # -- finding ------------------------------------------------------------------------------------------

    def find(self, name: str, *, verify: bool) -> Entry | None:
        """The entry of that name; None when there is none or it is damaged (set aside, and a problem noted).

        Args:
            name: of the entry.
            verify: read and check all of it now, and count it as used; else the manifest alone.
        """
        for _ in range(3):
            entry = self.read(name)
            if entry is None:
                return None
            if not verify:
                return entry if self.is_complete(entry) else None
            try:
                entry.verify()
            except (OSError, Damaged, MemoryError) as error:
                replaced = not entry.in_place() and os.path.lexists(entry.path)
                self._damaged(entry, error)
                if replaced:
                    continue
                return None
            entry.touch()
            return entry
        return None

    def read(self, name: str) -> Entry | None:
        """The entry of that name by its manifest alone; None when there is none or it is damaged."""
        status = None
        try:
            descriptor, status = open_regular(self.path(name))
            try:
                manifest = read_manifest(self.directory, name, descriptor, status)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except (OSError, Damaged, MemoryError) as error:
            damaged = "cannot be read now" if is_shortage(error) else "is damaged"
            self.directory.problem(f"cache entry {name[:12]} {damaged} ({reason(error)}); counted as a miss")
            if not is_shortage(error):
                self.directory.quarantine(self.path(name), status)
            return None
        return Entry(self.directory, self.blobs, name, manifest, status, self._damaged)

    def is_complete(self, entry: Entry) -> bool:
        """The large blobs that it refers to are there, in the right size."""
        return all(self.blobs.has(digest, size) for digest, size in entry.manifest.blobs.items())

    def _damaged(self, entry: Entry, error: BaseException) -> None:
        """Note what is wrong with an entry; its file is set aside unless the fault is elsewhere."""
        if not entry.in_place():
            return
        what = f"cache entry {entry.key[:16]} ({entry.about.get('stage', 'no stage named')})"
        if isinstance(error, FileNotFoundError):
            self.directory.problem(f"{what} lacks a blob that it refers to; counted as a miss")
        else:
            self.directory.problem(f"{what} cannot be read ({reason(error)}); counted as a miss")
            # An entry whose blob is bad becomes good again when the blob is stored again.
            if not isinstance(error, BlobDamaged) and not is_shortage(error):
                self.directory.quarantine(entry.path, entry.status)

    # -- publishing ---------------------------------------------------------------------------------------

    def publish(self, name: str, contents: Contents) -> Entry | None:
        """Write an entry, large blobs first, its own file last; None when the disk does not take it.

        Nothing is synced to the platter: a file that a power failure tore is found out when it is read.
        """
        sizes = {digest: sum(map(len, pieces)) for digest, pieces in contents.blobs.items()}
        large = {digest: size for digest, size in sizes.items() if size >= SMALL}
        data = encode(
            self.directory,
            name,
            key=contents.key,
            document=contents.document,
            about=contents.about,
            created=time.time_ns(),
            small={digest: contents.blobs[digest] for digest in sizes if digest not in large},
            large=large,
        )
        total = sum(map(len, data)) + sum(large.values())
        if total > self.limit():
            self.directory.problem(
                f"{contents.about.get('stage', 'an artifact')} has {total} bytes and was not kept: "
                f"the limit of the cache is {self.limit()}"
            )
            return None
        try:
            written = sum(self.blobs.ensure(digest, contents.blobs[digest]) for digest in large)
            temporary = self.directory.write_temporary(data)
            try:
                with self.directory.locked("store", PUBLISHING) as held:
                    # Whoever swept meanwhile may have taken a blob that no entry referred to yet.
                    lost = [digest for digest, size in large.items() if not self.blobs.has(digest, size)]
                    written += sum(self.blobs.ensure(digest, contents.blobs[digest]) for digest in lost)
                    self._place(temporary, name)
                    self._account(written + sum(map(len, data)), may_sweep=held is True)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
        except (OSError, MemoryError) as error:
            self.directory.problem(
                f"{contents.about.get('stage', 'an artifact')} could not be kept in the cache "
                f"{self.directory.path}: {reason(error)}"
            )
            return None
        return self.read(name)

    def _place(self, temporary: Path, name: str) -> None:
        stamp = self.directory.next_stamp()
        os.utime(temporary, ns=(stamp, stamp))
        self.directory.publish(temporary, f"entries/{name[:2]}/{name}")

    def _account(self, written: int, *, may_sweep: bool) -> None:
        """Add to the running total; sweep when it passes the limit, down to nine tenths of it."""
        used, stores = self.usage()
        used, stores = used + written, stores + 1
        with contextlib.suppress(OSError):
            if may_sweep and (used > self.limit() or stores >= RECOUNT):
                self.sweep_within(self.limit(), target=self.limit() * 9 // 10)
            else:
                write_record(self.directory, "usage", {"bytes": used, "stores": stores})

    def usage(self) -> tuple[int, int]:
        """Bytes that the cache takes as far as is known, and stores since they were last counted."""
        noted = read_record(self.directory, "usage")
        return (int(noted["bytes"]), int(noted["stores"])) if noted else (0, RECOUNT)

    # -- keeping within the limit -------------------------------------------------------------------------

    def sweep_within(self, limit: int, target: int) -> sweep.PruneReport:
        """Sweep while `store` is locked, and note the bytes that are left."""
        report = sweep.sweep(self, limit, target)
        with contextlib.suppress(OSError):
            write_record(self.directory, "usage", {"bytes": report.kept_bytes, "stores": 0})
        return report


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
