"""Bytes of a `.pte`: its program, and the segments behind it (executorch 1.5, schema/program.fbs)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from executorch.exir._serialize._program import _ExtendedHeader, _flatbuffer_to_program
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import DataLocation, Program, SubsegmentOffsets, Tensor

from etgraph.artifact import Executorch

Part = dict[str, Any]


def parts(artifact: Executorch) -> list[Part]:
    """Return the parts of a `.pte` and of its data files; together they have the size of these files."""
    buffer = artifact.buffer
    header = _header(buffer)
    length = header.program_size if header is not None else len(buffer)
    program = _flatbuffer_to_program(buffer[:length])
    found = [*_delegates(program), *_constants(program), *_start_values(program)]
    if header is not None:
        found += _named_data(program, buffer, header.segment_base_offset)
    inline = sum(part["bytes"] for part in found if part["inline"])
    found.append(_part("", "program", "graphs, tensors and names of all methods", length - inline))
    rest = len(buffer) - sum(part["bytes"] for part in found)
    found.append(_part("", "alignment", "padding between segments", rest))
    for name, pieces in artifact.data_pieces.items():
        found.append(_part("", "data file", name, sum(map(len, pieces))))
    return [{name: value for name, value in part.items() if name != "inline"} for part in found]


def _header(buffer: bytes) -> _ExtendedHeader | None:
    """Return the header that says where the segments are; a program without one has all inside."""
    head = buffer[8 : 8 + _ExtendedHeader.NUM_HEAD_BYTES]
    if len(head) < _ExtendedHeader.EXPECTED_LENGTH:
        return None
    header = _ExtendedHeader.from_bytes(head)
    return header if header.is_valid() else None


def _part(method: str, section: str, name: str, size: int, *, inline: bool = False) -> Part:
    return {"method": method, "section": section, "name": name, "bytes": size, "inline": inline}


def _delegates(program: Program) -> Iterator[Part]:
    """Give each delegate's blob once; equal blobs of several methods are stored once."""
    users: dict[tuple[DataLocation, int], list[tuple[str, str]]] = {}
    for plan in program.execution_plan:
        for number, delegate in enumerate(plan.delegates):
            place = (delegate.processed.location, delegate.processed.index)
            users.setdefault(place, []).append((plan.name, f"{delegate.id} {number}"))
    for (location, index), found in users.items():
        inline = location == DataLocation.INLINE
        data = program.backend_delegate_data[index].data if inline else b""
        size = len(data) if inline else program.segments[index].size
        yield _part(_only(method for method, _ in found), "delegates", found[0][1], size, inline=inline)


def _only(methods: Any) -> str:
    """Return the one method that has something; nothing where several have it."""
    different = set(methods)
    return different.pop() if len(different) == 1 else ""


def _constants(program: Program) -> Iterator[Part]:
    users = _users(program, lambda tensor: tensor.allocation_info is None)
    if program.constant_segment is not None and program.constant_segment.offsets:
        sizes = _subsegments(program, program.constant_segment)
        inline = False
    else:
        sizes = [len(buffer.storage) for buffer in program.constant_buffer]
        inline = True
    for index, size in enumerate(sizes):
        method, described = users.get(index, ("", ""))
        yield _part(method, "constants", f"constant {index} {described}".rstrip(), size, inline=inline)


def _start_values(program: Program) -> Iterator[Part]:
    users = _users(program, lambda tensor: tensor.allocation_info is not None)
    for segment in program.mutable_data_segments or ():
        for index, size in enumerate(_subsegments(program, segment)):
            method, described = users.get(index, ("", ""))
            yield _part(method, "start values", f"buffer {index} {described}".rstrip(), size)


def _users(program: Program, wanted: Any) -> dict[int, tuple[str, str]]:
    """Return for each data buffer the method whose tensors are in it, and the first such tensor in words."""
    found: dict[int, tuple[str, str]] = {}
    for plan in program.execution_plan:
        for value in plan.values:
            if isinstance(value.val, Tensor) and value.val.data_buffer_idx and wanted(value.val):
                index = value.val.data_buffer_idx
                dtype = ScalarType(value.val.scalar_type).name.lower()
                method, described = found.get(index, (plan.name, f"{dtype}{value.val.sizes}"))
                found[index] = (method if method == plan.name else "", described)
    return found


def _subsegments(program: Program, segment: SubsegmentOffsets) -> list[int]:
    """Return the sizes of the pieces of a segment; padding counts to the piece before it."""
    offsets = [*segment.offsets, program.segments[segment.segment_index].size]
    return [max(0, end - start) for start, end in pairwise(offsets)]


def _named_data(program: Program, buffer: bytes, base: int) -> Iterator[Part]:
    """Give data that delegates ask for by key; whose it is shows in whose blob has the key in it."""
    blobs: dict[str, list[bytes]] = {}
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            if delegate.processed.location == DataLocation.SEGMENT:
                segment = program.segments[delegate.processed.index]
                start = base + segment.offset
                blobs.setdefault(plan.name, []).append(buffer[start : start + segment.size])
    by_segment: dict[int, list[str]] = {}
    for named in program.named_data or ():
        by_segment.setdefault(named.segment_index, []).append(named.key)
    for index, keys in by_segment.items():
        users = [method for method, mine in blobs.items() if any(k.encode() in one for k in keys for one in mine)]
        shown = keys[0] if len(keys[0]) <= 24 else keys[0][:8]
        yield _part(_only(users), "delegate weights", f"data {shown}", program.segments[index].size)
