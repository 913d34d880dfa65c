"""LoweredBackendModule: what a backend made of a part of the program, its bytes raw, and the part itself."""

from __future__ import annotations

from typing import Any

from stages.codec.context import Reader, Writer, refuse
from stages.codec.values import Unkept, read_value, write_blob, write_value

__all__ = ["read_delegate", "write_delegate"]


def write_delegate(writer: Writer, module: Any) -> dict[str, Any]:
    """Encode a delegate; its original program is kept too, since the program runs in Python through it."""
    from stages.codec.programs import write_program

    where, writer.where = writer.where, f"{writer.where}, delegate {module.backend_id}"
    try:
        meta = write_value(writer, module.meta)
    except Unkept as e:
        raise refuse(writer.where, f"delegate metadata of type {e.args[0]}", "Report the backend.") from None
    encoded = {
        "backend": module.backend_id,
        "processed": write_blob(writer, module.processed_bytes),
        "specs": [[spec.key, write_value(writer, bytes(spec.value))] for spec in module.compile_specs],
        "named_data": _write_named_data(writer, module.named_data_store_output),
        "meta": meta,
        "original": write_program(writer, module.original_module),
        "training": bool(module.training),
    }
    writer.where = where
    return encoded


def _write_named_data(writer: Writer, output: Any) -> dict[str, Any] | None:
    if output is None:
        return None

    def entry(value: Any) -> list[Any]:
        layout = value.tensor_layout
        if layout is not None:
            layout = [layout.scalar_type.name, list(layout.sizes), list(layout.dim_order)]
        return [value.buffer_index, value.alignment, layout]

    return {
        "buffers": [write_blob(writer, _bytes_of(buffer)) for buffer in output.buffers],
        "pte": [[key, entry(value)] for key, value in output.pte_data.items()],
        "external": [
            [name, [[key, entry(value)] for key, value in data.items()]] for name, data in output.external_data.items()
        ],
    }


def _bytes_of(buffer: Any) -> Any:
    """Give the bytes of a buffer; one that ExecuTorch left in a file (`FileBackedData`) is read."""
    return buffer if isinstance(buffer, (bytes, bytearray, memoryview)) else buffer.to_bytes()


def read_delegate(reader: Reader, encoded: dict[str, Any]) -> Any:
    """Make a LoweredBackendModule. ExecuTorch takes nothing but `bytes` for its data, so these are copied."""
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    from stages.codec.programs import read_program

    module = LoweredBackendModule(
        read_program(reader, encoded["original"]),
        encoded["backend"],
        _read_blob(reader, encoded["processed"]),
        [CompileSpec(key, read_value(reader, value)) for key, value in encoded["specs"]],
        _read_named_data(reader, encoded["named_data"]),
    )
    module.meta = read_value(reader, encoded["meta"])
    module.training = encoded["training"]
    return module


def _read_blob(reader: Reader, digest: str) -> Any:
    """Read a blob once, however many delegates share it."""
    if ("blob", digest) not in reader.shared:
        reader.shared["blob", digest] = reader.blobs.copy(digest)
    return reader.shared["blob", digest]


def _read_named_data(reader: Reader, encoded: dict[str, Any] | None) -> Any:
    if encoded is None:
        return None
    from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
    from executorch.exir._serialize.data_serializer import DataEntry
    from executorch.exir.scalar_type import ScalarType
    from executorch.exir.tensor_layout import TensorLayout

    def entry(value: list[Any]) -> Any:
        index, alignment, layout = value
        if layout is not None:
            layout = TensorLayout(ScalarType[layout[0]], list(layout[1]), list(layout[2]))
        return DataEntry(index, alignment, layout)

    return NamedDataStoreOutput(
        [_read_blob(reader, digest) for digest in encoded["buffers"]],
        {key: entry(value) for key, value in encoded["pte"]},
        {name: {key: entry(value) for key, value in data} for name, data in encoded["external"]},
    )
