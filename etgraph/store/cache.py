"""`etgraph.Cache`: what the rest of etgraph sees of the store."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from etgraph.errors import UsageError
from etgraph.store import sweep
from etgraph.store.blobs import Buffer, byte_pieces, check_digest
from etgraph.store.directory import StoreDirectory
from etgraph.store.entries import PUBLISHING, Contents, Entries
from etgraph.store.entry import Entry
from etgraph.store.files import tree_size
from etgraph.store.records import Records
from etgraph.store.settings import asked_limit, cache_directory

if TYPE_CHECKING:
    from etgraph.store.backend import EtgraphStoreBackend

__all__ = ["Cache"]

#: Seconds after which one no longer waits for another process that builds the same, and builds too.
PATIENCE = 3600.0


class Cache:
    """Artifacts by key, on disk, shared by all processes of one user.

    Nothing here fails a build: what goes wrong with the disk is a line in `problems` (the first one also an
    `EtgraphWarning`), and the answer is then as if nothing were cached. What was stored comes back verified,
    or not at all. Safe to use from several threads and processes.

    Args:
        directory: where; by default `ETGRAPH_CACHE_DIR`, else the user's cache directory. Made with mode 0700
            on first use; one that others may write to, or that belongs to someone else, is not used.
        size_limit: in bytes, or text such as "10GB" or "500MiB"; by default `ETGRAPH_CACHE_SIZE`, else a
            tenth of the free space, at most 20 GiB.

    Raises:
        UsageError: an argument or an environment variable is not what it should be.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, size_limit: int | str | None = None) -> None:
        self.directory: Path = cache_directory(directory)
        self._limit = asked_limit(size_limit)
        self._entries = Entries(StoreDirectory(self.directory), self._limit)
        self._records = Records(self._entries.directory)
        self._held = threading.local()

    @functools.cached_property
    def _memory(self) -> Any:
        """The `joblib.Memory` through which everything is stored, limited and cleared.

        What is only read does not need it: importing joblib takes as long as a whole run that reuses everything.
        """
        import etgraph.store.backend  # noqa: F401, I001  # registers itself
        import joblib

        # joblib appends a folder of its own to a str, not to a Path.
        return joblib.Memory(self.directory, backend="etgraph", verbose=0, backend_options={"entries": self._entries})

    def _writable(self) -> Any | None:
        """The memory; None, and a line in `problems`, where it cannot be imported, as with no descriptor left."""
        try:
            return self._memory
        except (OSError, ImportError) as error:
            self.note(f"the cache cannot be written to: {error}")
            return None

    @property
    def _backend(self) -> EtgraphStoreBackend:
        backend: EtgraphStoreBackend = self._memory.store_backend
        return backend

    @property
    def size_limit(self) -> int:
        """The limit in bytes."""
        return self._entries.limit()

    @property
    def problems(self) -> list[str]:
        """What went wrong and was survived, a sentence each, oldest first."""
        return self._entries.directory.problems

    @property
    def nbytes(self) -> int:
        """Bytes of all files of the cache, counted now."""
        return tree_size(self.directory) if self.usable else 0

    def note(self, problem: str) -> None:
        """Add to `problems`."""
        self._entries.directory.problem(problem)

    @property
    def usable(self) -> bool:
        """The directory can be read; made when it is not there. When not, `problems` says why."""
        return self._entries.directory.usable()

    # -- entries ------------------------------------------------------------------------------------------

    def lookup(self, key: str) -> Entry | None:
        """The entry of a key, every byte of it verified, and counted as used; None where there is none.

        A damaged entry is set aside, noted in `problems`, and is none.
        """
        name = _name(key)
        entry = self._entries.find(name, verify=True) if self.usable else None
        return entry if entry is not None and entry.key == key else None

    def peek(self, key: str) -> Entry | None:
        """As `lookup`, but cheap: the manifest is verified now, the document and blobs when they are asked
        for.

        For planning, and to follow the fingerprints of steps whose bytes are not needed; the entry counts as used,
        because without it the steps after it could not be found. Its `document` and `blob` raise `CacheEntryError`
        where they turn out damaged or gone.
        """
        name = _name(key)
        entry = self._entries.find(name, verify=False) if self.usable else None
        if entry is None or entry.key != key:
            return None
        entry.touch()
        return entry

    def store(
        self,
        key: str,
        document: Mapping[str, Any],
        blobs: Mapping[str, Buffer | Sequence[Buffer]],
        *,
        about: Mapping[str, Any],
    ) -> Entry | None:
        """Keep a document and the blobs that it refers to; None, and a line in `problems`, when that fails.

        Args:
            key: under which it will be looked up.
            document: a mapping that JSON can say. It comes back as JSON gives it: tuples as lists, keys as
                str.
            blobs: BLAKE3 digest (64 hex digits; trusted here, checked at each lookup) to bytes, in one or
                several pieces. Equal digests are stored once.
            about: what to show of the entry, as JSON: "stage", "seconds", "parts" and whatever else.

        Raises:
            UsageError: an argument is not of this form. Trouble with the disk never raises.
        """
        pieces = {check_digest(digest): byte_pieces(content) for digest, content in blobs.items()}
        made = Contents(_checked_key(key), document, pieces, about)
        memory = self._writable()
        if memory is None:
            return None
        from etgraph.store.backend import contents

        with self._backend.addressing(_name(key)):
            memory.cache(contents, ignore=["build"]).call(key, lambda: made)
            return self._backend.stored()

    @contextlib.contextmanager
    def building(self, key: str, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Be the only one who builds this key, in all processes.

        The lock goes when its holder dies. Inside, look up again: another may have built it meanwhile. Where
        no lock can be had, or another holds it for more than an hour, it goes on without: both build the
        same.

        Args:
            key: of the entry to be built.
            on_wait: called once when another is building it, before waiting.
        """
        name = _name(key)
        held: set[str] = self._held.__dict__.setdefault("names", set())
        if name in held or not self.usable:
            yield
            return
        directory = self._entries.directory
        held.add(name)
        try:
            with contextlib.ExitStack() as stack:
                if stack.enter_context(directory.locked(name, 0)) is False:
                    if on_wait is not None:
                        on_wait()
                    if stack.enter_context(directory.locked(name, PATIENCE)) is False:
                        directory.problem(
                            f"another process has been building {key[:16]} for {PATIENCE / 60:.0f} minutes; "
                            "building it here too"
                        )
                yield
        finally:
            held.discard(name)

    def entries(self) -> list[Entry]:
        """All entries, most recently used first; documents and blobs are verified when they are asked for."""
        return sorted(self._entries.all(), key=lambda entry: entry.status.st_mtime_ns, reverse=True)

    def remove(self, key: str) -> None:
        """Forget one entry; blobs that no other entry refers to go with the next `prune` or sweep."""
        if self.usable:
            self._entries.remove(_name(key))

    def clear(self) -> None:
        """Remove everything that is cached. Other processes that use the cache meanwhile only miss."""
        memory = self._writable()
        if memory is not None:
            memory.clear(warn=False)

    def prune(self, size_limit: int | str | None = None) -> sweep.PruneReport:
        """Remove leftovers, and the least recently used entries until the cache fits.

        Args:
            size_limit: as for `Cache`; by default the limit of this cache.
        """
        memory = self._writable()
        if memory is None:
            return sweep.PruneReport(0, 0, 0, 0)
        memory.reduce_size(bytes_limit=self.size_limit if size_limit is None else size_limit)
        return self._backend.reduced

    def verify(self) -> sweep.VerifyReport:
        """Check every byte of the cache; what is bad is set aside or removed, and reported."""
        if not self.usable:
            return sweep.VerifyReport(0, 0, 0, list(self.problems))
        with self._entries.directory.locked("store", PUBLISHING):
            return sweep.verify(self._entries)

    # -- notes --------------------------------------------------------------------------------------------

    def remember(self, step_id: str, parts: Mapping[str, str]) -> None:
        """Keep the named parts of the key of a step's latest run, to explain the next miss."""
        self._records.remember("runs", step_id, dict(parts))

    def last_parts(self, step_id: str) -> Mapping[str, str] | None:
        """The named parts of the key of a step's latest run, in their order; None where none is known."""
        parts = self._records.recall("runs", step_id)
        return parts if isinstance(parts, dict) else None

    def remember_cost(self, stage_id: str, seconds: float) -> None:
        """Keep what a stage cost when it last ran, in seconds."""
        self._records.remember("costs", stage_id, float(seconds))

    def cost(self, stage_id: str) -> float | None:
        """What a stage cost when it last ran, in seconds; None where that is not known."""
        seconds = self._records.recall("costs", stage_id)
        return seconds if isinstance(seconds, float) else None

    # -- being a value ------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return (Cache, (str(self.directory), self._limit))

    def __repr__(self) -> str:
        return f"Cache({str(self.directory)!r})"


def _name(key: str) -> str:
    """Return the name of the entry of a key."""
    return str(blake3(_checked_key(key).encode()).hexdigest(length=16))


def _checked_key(key: object) -> str:
    if isinstance(key, str) and key:
        return key
    raise UsageError(f"Cache: the key is {key!r}, and a text that is not empty was wanted")
