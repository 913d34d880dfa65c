"""The directory of the cache: private, with a secret of its own, written whole or not at all.

Trouble with the disk never leaves this package as an exception of a build: it becomes a line in `problems`.

    secret        32 random bytes; authenticates every file that is parsed
    clock         its modification time is the newest stamp that was given (see `next_stamp`)
    usage         how many bytes the cache takes, as last counted
    entries/ab/   one file per entry: manifest, document and small blobs
    blobs/ab/     one file per large blob, named by its digest
    records/      what the last run of a step was made of, what stages cost
    locks/        one file per key that is being built, and `store` for publishing and sweeping
    tmp/          files that are being written
    quarantine/   what was found damaged, bounded in number and size
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from blake3 import blake3

from etgraph.errors import EtgraphWarning
from etgraph.files import write_pieces
from etgraph.store.files import Damaged, is_shortage, reason, remove, tree_size
from etgraph.store.secret import make_secret, read_secret

__all__ = ["StoreDirectory"]

QUARANTINE_FILES = 32
QUARANTINE_BYTES = 64 * 1024**2
#: No file looks like this, so that the secret is read.
_NEVER = (0,)


class StoreDirectory:
    """The files of one cache. `problems` collects what went wrong and was survived, a sentence each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self._secret: bytes | None = None
        self._seen: tuple[int, ...] | None = _NEVER
        self._refused = False
        self._opening = threading.Lock()

    # -- being usable -------------------------------------------------------------------------------------

    def usable(self) -> bool:
        """The directory exists (it is made when it does not), is private, and has its secret.

        Cheap to ask again: when the secret was replaced meanwhile, the new one counts; when it was lost, it
        is written again.
        """
        with self._opening:
            if not self._refused and self._secret_status() != self._seen:
                try:
                    self._secret = self._prepare()
                except (OSError, Damaged) as error:
                    why = f"the cache directory {self.path} cannot be used: {reason(error)}"
                    self.problem(f"{why}; building without a cache")
                    self._refused, self._seen = not is_shortage(error), _NEVER
            return self._secret is not None and not self._refused

    def _secret_status(self) -> tuple[int, ...] | None:
        try:
            status = os.lstat(self.path / "secret")
        except OSError:
            return None
        return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)

    def _prepare(self) -> bytes:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        status = os.stat(self.path)
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            raise Damaged(
                f"it belongs to user {status.st_uid} and this is user {os.geteuid()}; "
                "choose another directory with ETGRAPH_CACHE_DIR or --cache-dir"
            )
        if os.name == "posix" and status.st_mode & 0o022:
            raise Damaged(
                f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o}); "
                f"make it private (chmod 700) if everything in it is yours"
            )
        names = os.listdir(self.path)
        if os.name == "posix" and status.st_mode & 0o077 and (not names or "secret" in names):
            with contextlib.suppress(OSError):
                os.chmod(self.path, 0o700)
        self._seen = self._secret_status()
        kept = read_secret(self)
        if kept is None:
            kept = make_secret(self, self._secret)
            self._seen = self._secret_status()
        return kept

    def problem(self, text: str) -> None:
        """Note what went wrong; the first one is also warned about."""
        if text in self.problems:
            return
        self.problems.append(text)
        if len(self.problems) == 1:
            # Under `-W error` a warning is an exception, and a cache must not end a build.
            with contextlib.suppress(EtgraphWarning):
                warnings.warn(EtgraphWarning(text), stacklevel=2)

    def mac(self, purpose: str, name: str, payload: bytes | bytearray | memoryview) -> bytes:
        """32 bytes that nobody without the secret can make for this payload under this name.

        The name is part of it, so that a file moved to another name is refused.
        """
        assert self._secret is not None, "usable() comes first"
        hasher = blake3(key=self._secret)
        for part in (purpose.encode(), name.encode()):
            hasher.update(len(part).to_bytes(8, "little") + part)
        return hasher.update(payload).digest()

    def authentic(self, mac: bytes, purpose: str, name: str, payload: bytes | bytearray | memoryview) -> bool:
        """`mac` is what `mac()` gives for the rest."""
        return hmac.compare_digest(mac, self.mac(purpose, name, payload))

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, relative: str, pieces: Iterable[bytes | memoryview], *, sync: bool = False) -> int:
        """Write a file whole or not at all; returns its size in bytes.

        Raises:
            OSError: the disk is full, read-only or otherwise unwilling; nothing is left behind.
        """
        temporary = self.write_temporary(pieces, sync=sync)
        size = os.stat(temporary).st_size
        self.publish(temporary, relative)
        return size

    def write_temporary(self, pieces: Iterable[bytes | memoryview], *, sync: bool = False) -> Path:
        """Write to a new name in `tmp/`, to be published later."""
        temporary = self._temporary()
        self._write_file(temporary, pieces, sync=sync)
        return temporary

    def publish(self, temporary: Path, relative: str) -> None:
        """Give a complete file its name, in one step. An obstacle of another type goes to quarantine."""
        target = self.path / relative
        try:
            self._make_folders(target.parent)
            try:
                os.replace(temporary, target)
            except (IsADirectoryError, FileExistsError, NotADirectoryError, PermissionError):
                if not target.is_dir() or target.is_symlink():
                    raise
                self.quarantine(target)
                os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _temporary(self) -> Path:
        self._make_folders(self.path / "tmp")
        return self.path / "tmp" / f"{os.getpid()}-{secrets.token_hex(12)}"

    def _write_file(self, path: Path, pieces: Iterable[bytes | memoryview], *, sync: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                write_pieces(file, pieces)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise

    def _make_folders(self, folder: Path) -> None:
        """Make a folder below the directory, private at each level; a file in its place is set aside."""
        if folder == self.path:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return
        if folder.is_dir():
            return
        self._make_folders(folder.parent)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if folder.is_dir():
                return
            self.problem(f"{folder} was not a folder and is set aside")
            self.quarantine(folder)
            os.mkdir(folder, 0o700)

    def aside(self, path: Path) -> Path:
        """Rename a file or folder into `tmp/`, from where it can be removed without hurry."""
        temporary = self._temporary()
        os.replace(path, temporary)
        return temporary

    # -- setting aside ------------------------------------------------------------------------------------

    def quarantine(self, path: Path, seen: os.stat_result | None = None) -> None:
        """Move a bad file or folder out of the way; a large one, or where moving fails, is removed.

        Args:
            path: what is bad.
            seen: what was looked at; when another file has taken the name since, that one is left alone.
        """
        try:
            status = os.lstat(path)
            if seen is not None and (status.st_dev, status.st_ino) != (seen.st_dev, seen.st_ino):
                return
            folder = self.path / "quarantine"
            with contextlib.suppress(OSError):
                if path != folder:
                    self._make_folders(folder)
                if status.st_size <= QUARANTINE_BYTES:
                    os.replace(path, folder / f"{path.name}-{time.time_ns()}")
                    self._trim_quarantine(folder)
                    return
            remove(path)
        except OSError as error:
            if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                self.problem(f"{path} is damaged and cannot be moved away: {reason(error)}")

    def _trim_quarantine(self, folder: Path) -> None:
        kept = 0
        for number, name in enumerate(sorted(os.listdir(folder), key=_quarantined_when, reverse=True)):
            kept += tree_size(folder / name)
            if number >= QUARANTINE_FILES or kept > QUARANTINE_BYTES:
                remove(folder / name)

    # -- time and locks -----------------------------------------------------------------------------------

    def next_stamp(self) -> int:
        """A time in ns since 1970, later than every stamp given before, also when the clock went back."""
        path = self.path / "clock"
        stamp = time.time_ns()
        try:
            stamp = max(stamp, os.stat(path).st_mtime_ns + 1)
        except OSError:
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        with contextlib.suppress(OSError):
            os.utime(path, ns=(stamp, stamp))
        return stamp

    @contextlib.contextmanager
    def locked(self, name: str, timeout: float) -> Iterator[bool | None]:
        """Hold `locks/<name>`, which the system releases when its holder dies.

        Gives True when it is held, False when another held it all the while, None when no lock can be had
        here.

        Args:
            name: file name.
            timeout: seconds to wait.
        """
        held: bool | None = None
        try:
            # With asyncio, which it brings; a run that reuses everything takes no lock.
            from filelock import FileLock

            self._make_folders(self.path / "locks")
            path = self.path / "locks" / name
            if path.is_symlink():
                # filelock before 3.20 follows a link and empties what it leads to.
                self.quarantine(path)
            lock = FileLock(str(path), timeout=timeout, mode=0o600)
            lock.acquire()
            held = True
        except TimeoutError:
            held = False
        # Older filelocks raise NotImplementedError where the file system knows no locks (ENOSYS of flock).
        except (OSError, ImportError, NotImplementedError, RuntimeError) as error:
            self.problem(
                f"no lock can be had in {self.path / 'locks'} ({reason(error)}); going on without, "
                "so that two processes may build the same"
            )
        try:
            yield held
        finally:
            if held:
                lock.release()


def _quarantined_when(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
