"""An entry of the cache: a document and its blobs, verified before a byte of them is given out."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from etgraph.errors import CacheEntryError
from etgraph.store.blobs import Blobs
from etgraph.store.directory import StoreDirectory
from etgraph.store.entry_file import Body, Manifest, read_body
from etgraph.store.files import Damaged, open_regular

__all__ = ["Entry"]

_T = TypeVar("_T")


class Entry:
    """What was stored under a key.

    From `lookup` everything is verified and held, and stays valid when the entry is evicted meanwhile. From
    `peek`, `entries` and `store` only the manifest was read; the document and each blob are then verified
    when they are first asked for, and `CacheEntryError` says that they are no longer there or not what was
    stored.
    """

    def __init__(
        self,
        directory: StoreDirectory,
        blobs: Blobs,
        name: str,
        manifest: Manifest,
        status: os.stat_result,
        on_damage: Callable[[Entry, BaseException], None],
    ) -> None:
        self.name = name
        self.manifest = manifest
        self.status = status
        self._directory = directory
        self._blobs = blobs
        self._on_damage = on_damage
        self._body: Body | None = None
        self._document: Mapping[str, Any] | None = None
        self._views: dict[str, memoryview] = {}

    @property
    def path(self) -> Path:
        """The file of the entry."""
        return self._directory.path / "entries" / self.name[:2] / self.name

    @property
    def key(self) -> str:
        """The key under which it was stored."""
        return self.manifest.key

    @property
    def about(self) -> Mapping[str, Any]:
        """What the one who stored it says about it: stage, seconds, named parts of the key."""
        return self.manifest.about

    @property
    def nbytes(self) -> int:
        """Bytes of the entry with all blobs it refers to; a blob that others share is counted in each."""
        return self.manifest.nbytes

    @property
    def created(self) -> float:
        """When it was stored, in seconds since 1970."""
        return self.manifest.created / 1e9

    @property
    def last_used(self) -> float:
        """When it was last looked up or stored, in seconds since 1970; never in the future."""
        return min(self.status.st_mtime_ns / 1e9, time.time())

    @property
    def document(self) -> Mapping[str, Any]:
        """The document, as JSON gives it back.

        Raises:
            CacheEntryError: it is damaged or gone.
        """
        if self._document is None:
            document = json.loads(bytes(self._guarded(self._load_body).document).decode("utf-8", "surrogatepass"))
            self._document = document
        return self._document

    def digests(self) -> frozenset[str]:
        """The addresses of all its blobs.

        Raises:
            CacheEntryError: it is damaged or gone.
        """
        return frozenset(self.manifest.blobs) | frozenset(self._guarded(self._load_body).packed)

    def blob(self, digest: str) -> memoryview:
        """The bytes of a blob, mapped where it is large.

        They may be written to without changing the cache (a later call of this entry gives the same memory).

        Raises:
            KeyError: this entry has no such blob.
            CacheEntryError: it is damaged or gone.
        """
        if digest in self.manifest.blobs:
            return self._guarded(lambda: self._load_blob(digest))
        packed = self._guarded(self._load_body).packed
        if digest not in packed:
            raise KeyError(f"cache entry {self.key[:16]} has no blob {digest!r}")
        return packed[digest]

    def verify(self) -> None:
        """Read, check and hold everything.

        Raises:
            Damaged: some part is not what was stored.
            FileNotFoundError: some part is gone.
            OSError: some part cannot be read.
        """
        self._load_body()
        for digest in self.manifest.blobs:
            self._load_blob(digest)

    def intact(self) -> bool:
        """The document and the small blobs are what was stored; nothing of them is kept in memory."""
        try:
            self._guarded(self._load_body)
        except CacheEntryError:
            return False
        self._body = None
        return True

    def touch(self) -> None:
        """Count it as used now."""
        with contextlib.suppress(OSError):
            stamp = self._directory.next_stamp()
            os.utime(self.path, ns=(stamp, stamp))

    def in_place(self) -> bool:
        """The file that was read still has its name: neither evicted nor stored again since."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == (self.status.st_dev, self.status.st_ino)

    def _load_body(self) -> Body:
        if self._body is None:
            descriptor, _ = open_regular(self.path)
            try:
                self._body = read_body(descriptor, self.manifest)
            finally:
                os.close(descriptor)
        return self._body

    def _load_blob(self, digest: str) -> memoryview:
        if digest not in self._views:
            self._views[digest] = self._blobs.load(digest, self.manifest.blobs[digest])
        return self._views[digest]

    def _guarded(self, load: Callable[[], _T]) -> _T:
        try:
            return load()
        except (OSError, Damaged, MemoryError) as error:
            self._on_damage(self, error)
            raise CacheEntryError(
                f"cache entry {self.key[:16]} can no longer be read: {error}",
                hint="Build this step again; a damaged entry is set aside.",
            ) from error

    def __repr__(self) -> str:
        return f"<cache entry {self.key[:16]}: {self.nbytes} bytes>"
