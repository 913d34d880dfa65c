"""The file of one entry: manifest, document and small blobs; authenticated before a byte of it is parsed.

    16 bytes   magic
    32 bytes   keyed BLAKE3 of the manifest under the entry's name
     8 bytes   length of the manifest, little-endian
    manifest   JSON: key, about, when it was made, digests and sizes of the large blobs, size and BLAKE3 of
               the body; blanks at its end, so that it ends at a multiple of 64
    body       a table, the document, the small blobs, each from a multiple of 64

The manifest can be read alone, to list or to sweep. The body is checked against the digest that the manifest
gives before it is parsed. Many small tensors would be slow as files, so that they lie in the body.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from etgraph.blobs import digest_of
from etgraph.errors import UsageError
from etgraph.store.directory import StoreDirectory
from etgraph.store.files import Damaged, read_exactly

__all__ = ["Body", "Manifest", "encode", "parse_body", "read_body", "read_manifest"]

MAGIC = b"etgraph entry 1\n"
ALIGNMENT = 64
_PURPOSE = "entry 1"
_HEADER = len(MAGIC) + 32 + 8


@dataclass(frozen=True)
class Manifest:
    """What an entry says about itself; `blobs` are the large ones, digest to size in bytes.

    `created` is in ns since 1970; `body_offset` and `body_size` are in bytes.
    """

    key: str
    about: Mapping[str, Any]
    created: int
    blobs: Mapping[str, int]
    body_offset: int
    body_size: int
    body_digest: str

    @property
    def nbytes(self) -> int:
        """Size of the entry with all that it refers to, in bytes."""
        return self.body_offset + self.body_size + sum(self.blobs.values())


@dataclass(frozen=True)
class Body:
    """The document as JSON text, and the small blobs by digest, writable."""

    document: memoryview
    packed: Mapping[str, memoryview]


def encode(
    directory: StoreDirectory,
    name: str,
    *,
    key: str,
    document: Mapping[str, Any],
    about: Mapping[str, Any],
    created: int,
    small: Mapping[str, Iterable[memoryview]],
    large: Mapping[str, int],
) -> list[bytes]:
    """The pieces of an entry file.

    Args:
        directory: whose secret authenticates it.
        name: under which it is stored.
        key, document, about, created: as the manifest and the body hold them.
        small: digest to content.
        large: digest to size in bytes.

    Raises:
        UsageError: `document` or `about` holds what JSON cannot say.
    """
    text = _json(document, "document")
    table: dict[str, Any] = {"document": [0, len(text)], "packed": {}}
    parts, offset = [text, _padding(len(text))], _aligned(len(text))
    for digest, pieces in small.items():
        content = b"".join(pieces)
        table["packed"][digest] = [offset, len(content)]
        parts += [content, _padding(len(content))]
        offset += _aligned(len(content))
    table_text = _json(table, "table")
    body = [len(table_text).to_bytes(8, "little"), table_text, _padding(8 + len(table_text)), *parts]
    manifest = _json(
        {
            "key": key,
            "about": about,
            "created": created,
            "blobs": large,
            "body": [sum(map(len, body)), digest_of(body)],
        },
        "about",
    )
    manifest += b" " * len(_padding(_HEADER + len(manifest)))
    mac = directory.mac(_PURPOSE, name, manifest)
    return [MAGIC, mac, len(manifest).to_bytes(8, "little"), manifest, *body]


def read_manifest(directory: StoreDirectory, name: str, descriptor: int, status: os.stat_result) -> Manifest:
    """Read and authenticate the manifest of an open entry file, and check the length of the file.

    Raises:
        Damaged: it is not what was written under this name.
    """
    head = read_exactly(descriptor, 0, _HEADER)
    length = int.from_bytes(head[-8:], "little")
    if head[: len(MAGIC)] != MAGIC or length > status.st_size - _HEADER:
        raise Damaged("its header is not one of an entry")
    manifest = read_exactly(descriptor, _HEADER, length)
    if not directory.authentic(bytes(head[len(MAGIC) : -8]), _PURPOSE, name, manifest):
        raise Damaged("its manifest is not authentic")
    fields = json.loads(manifest)
    body_size, body_digest = fields["body"]
    offset = _HEADER + length
    if status.st_size != offset + body_size:
        raise Damaged(f"it has {status.st_size} bytes instead of {offset + body_size}")
    return Manifest(fields["key"], fields["about"], fields["created"], fields["blobs"], offset, body_size, body_digest)


def read_body(descriptor: int, manifest: Manifest) -> Body:
    """Read, check and take apart the body of an open entry file.

    Raises:
        Damaged: it is not what the manifest says.
    """
    data = read_exactly(descriptor, manifest.body_offset, manifest.body_size)
    if digest_of([data]) != manifest.body_digest:
        raise Damaged("its body has another digest than its manifest says")
    return parse_body(data)


def parse_body(data: bytearray) -> Body:
    """Take a body apart whose digest was checked."""
    view = memoryview(data)
    end = 8 + int.from_bytes(view[:8], "little")
    table, start = json.loads(bytes(view[8:end])), _aligned(end)

    def part(offset: int, size: int) -> memoryview:
        return view[start + offset : start + offset + size]

    return Body(part(*table["document"]), {digest: part(*place) for digest, place in table["packed"].items()})


def _json(value: object, what: str) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"Cache.store: `{what}` cannot be said in JSON ({error})",
            hint="Give mappings with str keys, lists, str, numbers, bool and None; put bytes into blobs.",
        ) from error


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _padding(size: int) -> bytes:
    return bytes(_aligned(size) - size)
