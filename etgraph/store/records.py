"""Small authenticated notes beside the entries: what the last run of a step was made of, what stages cost."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from blake3 import blake3

from etgraph.store.directory import StoreDirectory
from etgraph.store.files import Damaged, is_shortage, open_regular, read_exactly, reason, remove

__all__ = ["Records", "read_record", "write_record"]

MAGIC = b"etgraph record1\n"
#: How many notes of one sort are kept; beyond that a tenth, the oldest, goes.
KEPT = 2048
_HEADER = len(MAGIC) + 32


def write_record(directory: StoreDirectory, name: str, value: object) -> None:
    """Write a JSON value to the file `name`, relative to the cache.

    Raises:
        OSError: it cannot be written.
    """
    payload = json.dumps(value, separators=(",", ":")).encode()
    directory.write(name, [MAGIC, directory.mac("record 1", name, payload), payload])


def read_record(directory: StoreDirectory, name: str) -> Any:
    """The value that `write_record` wrote under this name; None where there is none or it is damaged."""
    path = directory.path / name
    try:
        descriptor, status = open_regular(path)
        try:
            head = read_exactly(descriptor, 0, _HEADER)
            payload = read_exactly(descriptor, _HEADER, status.st_size - _HEADER)
        finally:
            os.close(descriptor)
        if head[: len(MAGIC)] != MAGIC or not directory.authentic(bytes(head[len(MAGIC) :]), "record 1", name, payload):
            raise Damaged("it is not authentic")
        return json.loads(payload)
    except FileNotFoundError:
        return None
    except (OSError, Damaged) as error:
        if not is_shortage(error):
            directory.quarantine(path)
            directory.problem(f"cache note {name} is damaged ({reason(error)}) and is set aside")
        return None


class Records:
    """Notes by sort and name. Losing one costs an explanation or an estimate, never a result."""

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory

    def remember(self, sort: str, name: str, value: object) -> None:
        """Keep `value` (JSON) as the latest under `name`; what cannot be kept is let go."""
        if not self._directory.usable():
            return
        relative = self._relative(sort, name)
        new = not os.path.lexists(self._directory.path / relative)
        with contextlib.suppress(OSError):
            write_record(self._directory, relative, [name, value])
            stamp = self._directory.next_stamp()
            os.utime(self._directory.path / relative, ns=(stamp, stamp))
            if new:
                self._bound(sort)

    def recall(self, sort: str, name: str) -> Any:
        """What was last kept under `name`, or None."""
        if not self._directory.usable():
            return None
        kept = read_record(self._directory, self._relative(sort, name))
        return kept[1] if kept is not None and kept[0] == name else None

    def _relative(self, sort: str, name: str) -> str:
        return f"records/{sort}/{blake3(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    def _bound(self, sort: str) -> None:
        with os.scandir(self._directory.path / "records" / sort) as found:
            notes = list(found)
        if len(notes) > KEPT:
            notes.sort(key=lambda note: note.stat(follow_symlinks=False).st_mtime_ns)
            for note in notes[: len(notes) - KEPT * 9 // 10]:
                remove(self._directory.path / "records" / sort / note.name)
