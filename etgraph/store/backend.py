"""The store as a backend of joblib, so that `joblib.Memory` is the way in.

What joblib caches is the call `contents(key, build)`, of which only `key` counts. joblib runs it and hands its
result over to be kept; the backend keeps it in the form of this package, under the address that `addressing`
says, so that an entry is found again without importing joblib, and numpy with it. No pickle is written or read,
and joblib's notes about source code and arguments are not kept: a key of etgraph already says which code made
the entry, and joblib would empty the cache when the text of `contents` changes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import joblib
from joblib.memory import StoreBackendBase

from etgraph.store import sweep
from etgraph.store.directory import StoreDirectory
from etgraph.store.entries import PUBLISHING, Contents, Entries
from etgraph.store.entry import Entry
from etgraph.store.files import remove
from etgraph.store.settings import parse_size

__all__ = ["EtgraphStoreBackend", "contents"]


def contents(key: str, build: Callable[[], Contents]) -> Contents:
    """What is stored under `key`; joblib calls this only when it is to be made."""
    return build()


class EtgraphStoreBackend(StoreBackendBase):  # type: ignore[misc]  # joblib has no types
    """Keeps entries in a private directory; see `etgraph.store.directory` for its layout.

    `joblib.Memory(Path(directory), backend="etgraph", backend_options={"size_limit": n})`. Nothing touches
    the disk before the first lookup.
    """

    #: The text of `contents` as joblib found it; of the class, because joblib asks once in a process.
    _code: str | None = None

    def configure(self, location: str, verbose: int = 0, backend_options: Mapping[str, Any] | None = None) -> None:
        """Take the directory and, from the options, `entries` (those of a `Cache`) or `size_limit` in bytes."""
        options = backend_options or {}
        self.location = location
        self.entries: Entries = options.get("entries") or Entries(
            StoreDirectory(Path(location)), options.get("size_limit")
        )
        self.directory = self.entries.directory
        self._of_thread = threading.local()

    # -- addresses ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def addressing(self, name: str) -> Iterator[None]:
        """Take every call of this thread for the one whose entry has this name; else joblib's own hash names it."""
        self._of_thread.name = name
        try:
            yield
        finally:
            self._of_thread.name = None

    def _name(self, call_id: Sequence[str]) -> str:
        return getattr(self._of_thread, "name", None) or call_id[-1]

    # -- items --------------------------------------------------------------------------------------------

    def contains_item(self, call_id: Sequence[str]) -> bool:
        """There is an entry and all of it is good; it is held for the `load_item` that follows."""
        entry = self.entries.find(self._name(call_id), verify=True) if self.directory.usable() else None
        self._of_thread.found = entry
        return entry is not None

    def load_item(
        self,
        call_id: Sequence[str],
        verbose: int = 1,
        timestamp: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Entry:
        """The entry that `contains_item` found.

        Raises:
            KeyError: there is none.
        """
        name = self._name(call_id)
        entry: Entry | None = getattr(self._of_thread, "found", None)
        self._of_thread.found = None
        if entry is None or entry.name != name:
            entry = self.entries.find(name, verify=True) if self.directory.usable() else None
        if entry is None:
            raise KeyError(f"no cache entry {name}")
        return entry

    def dump_item(self, call_id: Sequence[str], item: Contents, verbose: int = 1) -> None:
        """Keep what was made, if the disk takes it; `stored` has the entry, or None."""
        self._of_thread.stored = self.entries.publish(self._name(call_id), item) if self.directory.usable() else None

    def stored(self) -> Entry | None:
        """The entry of this thread's last `dump_item`."""
        entry: Entry | None = self._of_thread.stored
        return entry

    def clear_item(self, call_id: Sequence[str]) -> None:
        """Remove one entry; its blobs go with the next sweep when no other entry refers to them."""
        if self.directory.usable():
            self.entries.remove(self._name(call_id))

    def clear(self) -> None:
        """Remove all entries, blobs and notes. A build in progress stores its own again."""
        if not self.directory.usable():
            return
        root = self.directory.path
        with self.directory.locked("store", PUBLISHING):
            for name in ("entries", "blobs", "records", "quarantine", "usage"):
                with contextlib.suppress(OSError):
                    if os.path.lexists(root / name):
                        # Under another name first: a writer that starts now finds a clean place.
                        aside = self.directory.aside(root / name)
                        remove(aside)

    def clear_path(self, call_id: Sequence[str]) -> None:
        """Nothing: joblib wants it when it takes the function for changed; see `get_cached_func_code`."""

    def enforce_store_limits(
        self,
        bytes_limit: int | str | None,
        items_limit: int | None = None,
        age_limit: timedelta | None = None,
    ) -> None:
        """`joblib.Memory.reduce_size`: evict the least recently used, by bytes alone; see `reduced`."""
        if items_limit is not None or age_limit is not None:
            raise ValueError("the etgraph store limits bytes; items_limit and age_limit were given")
        self.reduced = sweep.PruneReport(0, 0, 0, 0)
        if bytes_limit is not None and self.directory.usable():
            limit = parse_size(bytes_limit, "reduce_size: bytes_limit")
            with self.directory.locked("store", PUBLISHING) as held:
                if held is not False:
                    self.reduced = self.entries.sweep_within(limit, target=limit)
                else:
                    self.directory.problem("another process holds the cache; it was not pruned")

    # -- what joblib asks beside ----------------------------------------------------------------------------

    def get_cached_func_code(self, call_id: Sequence[str]) -> str:
        """The text that joblib itself found for the function in this process.

        joblib compares it with what it finds at a later call, and where they differ (also when it cannot read
        the file for a moment) it would empty the cache. `Cache` makes joblib write it once, before any
        lookup.

        Raises:
            OSError: joblib has not written it yet, and will.
        """
        if self._code is None:
            raise OSError("the text of the function is not known yet")
        return self._code

    def store_cached_func_code(self, call_id: Sequence[str], func_code: str | None = None) -> None:
        """Kept in memory alone; see the top of this file."""
        if func_code is not None:
            EtgraphStoreBackend._code = func_code

    def get_cached_func_info(self, call_id: Sequence[str]) -> dict[str, str]:
        """Where entries lie."""
        return {"location": self.location}

    def get_item_info(self, call_id: Sequence[str]) -> dict[str, str]:
        """Where one entry lies."""
        return {"location": str(self.entries.path(self._name(call_id)))}

    def get_metadata(self, call_id: Sequence[str]) -> dict[str, Any]:
        """What is said about an entry; its manifest has it."""
        entry = self.entries.find(self._name(call_id), verify=False) if self.directory.usable() else None
        return dict(entry.about) if entry else {}

    def store_metadata(self, call_id: Sequence[str], metadata: Mapping[str, Any]) -> None:
        """Not kept: `about` is in the manifest, written with the rest."""

    def contains_path(self, call_id: Sequence[str]) -> bool:
        """The cache is there."""
        return os.path.isdir(self.location)

    def get_items(self) -> list[Entry]:
        """All entries with a good manifest whose blobs are there."""
        return self.entries.all()

    def create_location(self, location: str) -> None:
        """A private folder."""
        os.makedirs(location, mode=0o700, exist_ok=True)

    def clear_location(self, location: str) -> None:
        """Remove a file or folder."""
        remove(Path(location))

    def _open_item(self, f: str, mode: str) -> IO[Any]:
        return open(f, mode)

    def _item_exists(self, location: str) -> bool:
        return os.path.lexists(location)

    def _move_item(self, src: str, dst: str) -> None:
        os.replace(src, dst)


joblib.register_store_backend("etgraph", EtgraphStoreBackend)
