"""Tensors: storages by content, each once, and tensors as views into them; fake tensors as descriptions.

A storage is kept whole, though a program may use a slice of it: ExecuTorch and its backends write whole storages of
some tensors (`exir/emit/_emitter.py`, `backends/xnnpack/operators/node_visitor.py` in executorch 1.5.1), so a cut
storage would not give the same `.pte`. Tensors that share a storage share it after loading, two equal storages stay
two. A loaded storage is a copy-on-write map of the file.
"""

from __future__ import annotations

from typing import Any

from etgraph.blobs import digest_of
from stages.codec.context import Reader, Writer, malformed, refuse
from stages.codec.symbols import read_environment, read_symbolic, write_environment, write_symbolic

__all__ = ["read_dtype", "read_fake", "read_tensor", "write_dtype", "write_fake", "write_tensor"]

_UNKEPT_DTYPES = ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")


def write_dtype(dtype: Any) -> str:
    """Name a dtype, for instance `float32`."""
    return str(dtype).removeprefix("torch.")


def read_dtype(name: Any) -> Any:
    """Find a dtype by name."""
    import torch

    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise malformed("a dtype", name)
    return dtype


def write_tensor(writer: Writer, tensor: Any) -> int:
    """Give the position of a tensor with data; the same object has one position.

    Raises:
        UsageError: a tensor subclass, a layout, device or dtype that cannot be kept as strided CPU memory.
    """
    position, new = writer.number("tensor", tensor, writer.tensors)
    if not new:
        return position
    import torch

    _check_plain(writer, tensor)
    storage = tensor.untyped_storage()
    writer.tensors[position] = {
        "storage": _write_storage(writer, storage),
        "dtype": write_dtype(tensor.dtype),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
        "grad": bool(tensor.requires_grad and tensor.is_leaf),
        "parameter": isinstance(tensor, torch.nn.Parameter),
        "buffer": type(tensor) is torch.nn.Buffer,
    }
    return position


def _check_plain(writer: Writer, tensor: Any) -> None:
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise refuse(
            writer.where,
            f"a tensor of the subclass {type(tensor).__module__}.{type(tensor).__qualname__}",
            "Unwrap it before export, for torchao with torchao.utils.unwrap_tensor_subclass(model), or dequantize it.",
        )
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise refuse(
            writer.where,
            f"a tensor with layout {tensor.layout} on device {tensor.device}",
            "Move the program to the CPU and to dense tensors before it is exported.",
        )
    if write_dtype(tensor.dtype) in _UNKEPT_DTYPES or tensor.is_conj() or tensor.is_neg():
        raise refuse(
            writer.where,
            f"a tensor of dtype {tensor.dtype} with quantization or a pending conjugation or negation",
            "Use integer tensors with scales beside them, or resolve_conj() and resolve_neg() first.",
        )


def _write_storage(writer: Writer, storage: Any) -> int:
    key = ("storage", storage._cdata)
    if key in writer.seen:
        return writer.seen[key]
    writer.alive.append(storage)
    data = storage_bytes(storage)
    digest = digest_of(data)
    writer.blobs.setdefault(digest, data)
    writer.seen[key] = len(writer.storages)
    writer.storages.append([digest, storage.nbytes()])
    return writer.seen[key]


#: Storages of at most so many bytes are copied to be read.
_COPIED = 1 << 20


def storage_bytes(storage: Any) -> memoryview:
    """View the memory of an untyped CPU storage; without a copy where it is large."""
    import torch

    if storage.nbytes() == 0:
        return memoryview(b"")
    flat = torch.empty(0, dtype=torch.uint8).set_(storage)
    # A storage that numpy has seen cannot be resized any more, and observers resize their small buffers.
    return memoryview((flat.clone() if storage.nbytes() <= _COPIED else flat).numpy())


def read_tensor(reader: Reader, position: int) -> Any:
    """Give the tensor at a position; equal positions give the same object."""
    if position in reader.tensors:
        return reader.tensors[position]
    import torch

    encoded = reader.meaning["tensors"][position]
    storage = _read_storage(reader, encoded["storage"])
    tensor = torch.empty(0, dtype=read_dtype(encoded["dtype"])).set_(
        storage, encoded["offset"], encoded["shape"], encoded["stride"]
    )
    if encoded["parameter"]:
        tensor = torch.nn.Parameter(tensor, requires_grad=encoded["grad"])
    elif encoded["buffer"]:
        tensor = torch.nn.Buffer(tensor)
    elif encoded["grad"]:
        tensor.requires_grad_()
    reader.tensors[position] = tensor
    return tensor


def _read_storage(reader: Reader, position: int) -> Any:
    if position not in reader.storages:
        import torch

        digest, size = reader.meaning["storages"][position]
        data = reader.blobs.private(digest)
        if data.nbytes != size:
            raise malformed(f"a blob of {size} bytes", [digest, data.nbytes])
        reader.storages[position] = (
            torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if size else torch.UntypedStorage(0)
        )
    return reader.storages[position]


def write_fake(writer: Writer, fake: Any) -> Any:
    """Encode a FakeTensor: what it would be, without data."""
    import torch

    if fake.layout is not torch.strided:
        raise refuse(writer.where, f"a fake tensor with layout {fake.layout}", "Export with dense tensors.")

    def numbers(values: Any) -> list[Any]:
        return [v if isinstance(v, int) else write_symbolic(writer, v)["sym"] for v in values]

    return {
        "fake": [
            _write_mode(writer, fake.fake_mode),
            write_dtype(fake.dtype),
            numbers(fake.shape),
            numbers(fake.stride()),
            numbers([fake.storage_offset()])[0],
            str(fake.device),
            bool(fake.requires_grad),
            isinstance(fake, torch.nn.Parameter),
            None if fake.constant is None else write_tensor(writer, fake.constant),
        ]
    }


def read_fake(reader: Reader, encoded: Any) -> Any:
    """Make a FakeTensor in the mode that the document describes; no guard is added on the way."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    mode_at, dtype, shape, stride, offset, device, grad, parameter, constant = encoded
    mode = _read_mode(reader, mode_at)

    def number(value: Any) -> Any:
        return value if isinstance(value, int) else read_symbolic(reader, value)

    size, strides, offset = [number(v) for v in shape], [number(v) for v in stride], number(offset)
    symbolic = not all(isinstance(v, int) for v in (*size, *strides, offset))
    if symbolic:
        mode.shape_env._suppress_guards_enter()
    try:
        meta = torch.empty_strided(size, strides, dtype=read_dtype(dtype), device="meta")
        if not (isinstance(offset, int) and offset == 0):
            meta = meta.new_empty(0).set_(meta.untyped_storage(), offset, size, strides)
        real = None if constant is None else read_tensor(reader, constant)
        fake = FakeTensor(mode, meta, torch.device(device), constant=real)
        if parameter:
            fake = torch.nn.Parameter(fake, requires_grad=grad)
        elif grad:
            fake.requires_grad_()
    finally:
        if symbolic:
            mode.shape_env._suppress_guards_exit()
    return fake


def _write_mode(writer: Writer, mode: Any) -> int:
    position, new = writer.number("mode", mode, writer.modes)
    if new:
        env = None if mode.shape_env is None else write_environment(writer, mode.shape_env)
        writer.modes[position] = [env, bool(mode.allow_non_fake_inputs)]
    return position


def _read_mode(reader: Reader, position: int) -> Any:
    if position not in reader.modes:
        from torch._subclasses.fake_tensor import FakeTensorMode

        env, allow = reader.meaning["modes"][position]
        reader.modes[position] = FakeTensorMode(
            shape_env=None if env is None else read_environment(reader, env),
            allow_non_fake_inputs=bool(allow),
        )
    return reader.modes[position]
