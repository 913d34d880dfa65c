"""Tensors and the small values of torch, recognised only where torch is already imported."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

from etgraph.hashing import hasher
from etgraph.identity.description import Description

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["ambient_state", "describe_torch_value", "hash_tensor"]

#: Strided tensors that are not dense are copied in pieces of at most this many bytes to be read.
_PIECE = 64 << 20


def describe_torch_value(walk: Walk, obj: Any) -> Description | None:
    """Describe tensors, dtypes, operators, generators, symbolic sizes, modules; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return None
    if isinstance(obj, torch.Tensor):
        return walk.once(obj) or _tensor(walk, torch, obj)
    if isinstance(obj, (torch.dtype, torch.layout, torch.memory_format, torch.device)):
        return Description("torch", str(obj) if not isinstance(obj, torch.device) else f"torch.device('{obj}')")
    if isinstance(obj, torch.Size):
        return Description("torch", f"torch.Size({list(obj)})")
    if isinstance(obj, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return Description("torch", f"{type(obj).__name__} {obj.node.expr}")
    if isinstance(obj, torch.Generator):
        state = hash_tensor(obj.get_state())
        return Description("torch", f"torch.Generator on {obj.device}, state {state}", shown="torch.Generator")
    if isinstance(obj, torch.nn.Module):
        from etgraph.identity.modules import describe_nn_module

        return describe_nn_module(walk, obj)
    if isinstance(obj, (torch.UntypedStorage, torch.TypedStorage)):
        walk.refuse(obj, "it is bare storage", hint="Give a tensor over it.")
    return _operator(walk, obj)


def _operator(walk: Walk, obj: Any) -> Description | None:
    """Operators, by qualified name and schema. What a custom operator computes is not seen here."""
    from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

    if isinstance(obj, OpOverload):
        return Description("operator", f"{obj._schema}", shown=str(obj))
    if isinstance(obj, OpOverloadPacket):
        return Description("operator", f"torch.ops.{obj._qualified_op_name.replace('::', '.')}")
    if isinstance(obj, HigherOrderOperator):
        return Description("operator", f"torch.ops.higher_order.{obj.name()}")
    cls = type(obj)
    if cls.__module__ == "executorch.exir.dialects.edge._ops":
        if cls.__name__ == "EdgeOpOverload":
            return Description("operator", f"edge {obj._op._schema}", shown=f"edge.{obj._op}")
        if cls.__name__ == "EdgeOpOverloadPacket":
            return Description("operator", str(obj))
    sympy: Any = sys.modules.get("sympy")
    if sympy is not None and isinstance(obj, sympy.Basic):
        return Description("sympy", sympy.srepr(obj), shown=str(obj))
    return None


def _tensor(walk: Walk, torch: Any, t: Any) -> Description:
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    cls = type(t)
    if cls.__module__ == "torch.nn.parameter" and cls.__name__.startswith("Uninitialized"):
        walk.refuse(t, "it has no shape yet", hint="Call the lazy module once, so that its parameters exist.")
    children: list[tuple[str, Description]] = []
    if t.dtype is not None and cls not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        children.append(("(class)", walk.visit(cls, "(class)")))
    children += walk.children((f".{k}", v) for k, v in sorted(vars(t).items()) if not isinstance(t, FakeTensor))
    head = f"{cls.__qualname__} {str(t.dtype).removeprefix('torch.')}{_sizes(t)}"
    traits = [f"on {t.device.type}"] * (t.device.type != "cpu") + ["requires grad"] * bool(t.requires_grad)
    if is_traceable_wrapper_subclass(t):
        names, context = t.__tensor_flatten__()
        children += walk.children((f".{n}", getattr(t, n)) for n in names)
        children.append(("(context)", walk.visit(context, "(context)")))
        return Description("tensor", " ".join([head, *traits]), tuple(children))
    if t.layout != torch.strided:
        return _sparse(walk, torch, t, " ".join([head, *traits]), children)
    if t.is_quantized or type(t).__name__ == "FunctionalTensor" or torch._is_functional_tensor(t):
        walk.refuse(t, "its values cannot be read as they are", hint="Give a plain tensor.")
    own = " ".join([head, f"strides {_sizes(t, 'stride')}", *traits])
    if t.device.type == "meta" or isinstance(t, FakeTensor):
        return Description("tensor", f"{own} without values", tuple(children), shown=f"{head} without values")
    tie, content = _content(walk, t)
    if tie:
        children.append(("(storage)", Description("tie", tie)))
    return Description("tensor", f"{own} #{content}", tuple(children), shown=head)


def _sizes(t: Any, what: str = "shape") -> str:
    values = t.shape if what == "shape" else t.stride()
    return "[" + ", ".join(str(v) for v in values) + "]"


def _content(walk: Walk, t: Any) -> tuple[str, str]:
    """Tell a tie with a tensor met before (whose storage, how many bytes apart), and hash the values."""
    storage = t.untyped_storage()
    offset = t.storage_offset() * t.element_size()
    tie = ""
    if storage.nbytes():
        met = walk.storages.get(storage.data_ptr())
        if met is None:
            walk.storages[storage.data_ptr()] = (walk.place, offset, t)
        else:
            tie = f"shares memory with {met[0]}, {offset - met[1]} bytes on"
            if _same_view(met[2], t):
                return tie, "the same"
    return tie, hash_tensor(t)


def _same_view(a: Any, b: Any) -> bool:
    return bool(
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
        and a.is_conj() == b.is_conj()
        and a.is_neg() == b.is_neg()
    )


def _sparse(walk: Walk, torch: Any, t: Any, own: str, children: list[tuple[str, Description]]) -> Description:
    if t.layout == torch.sparse_coo:
        names: tuple[str, ...] = ("_indices", "_values", "is_coalesced")
    elif t.layout in (torch.sparse_csr, torch.sparse_bsr):
        names = ("crow_indices", "col_indices", "values")
    elif t.layout in (torch.sparse_csc, torch.sparse_bsc):
        names = ("ccol_indices", "row_indices", "values")
    else:
        walk.refuse(t, f"its layout {t.layout} cannot be read", hint="Give a dense tensor.")
    children += walk.children((f".{n}", getattr(t.detach(), n)()) for n in names)
    return Description("tensor", f"{own} {t.layout}", tuple(children))


def hash_tensor(t: Any) -> str:
    """Return the blake3 of a tensor's values, read in place where they lie densely in memory.

    Shape, strides and dtype are not in it; a dense tensor is read in the order of its memory, any other in
    the order of its dimensions, a dimension of stride 0 once.
    """
    hashing = hasher()
    t = t.detach()
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    if t.device.type != "cpu":
        t = t.cpu()
    for dim, step in enumerate(t.stride()):
        if step == 0 and t.shape[dim] > 1:
            t = t.narrow(dim, 0, 1)
    _feed(hashing, t)
    return str(hashing.hexdigest())


def _feed(hasher: Any, t: Any) -> None:
    if t.numel() == 0:
        return
    if not _is_dense(t):
        size = t.numel() * t.element_size()
        if size > _PIECE and t.dim():
            rows = max(1, _PIECE * t.shape[0] // size)
            for piece in t.split(rows) if rows < t.shape[0] else t.unbind(0):
                _feed(hasher, piece)
            return
        t = t.contiguous()
    # Not by numpy: a storage that numpy has seen cannot be resized any more, and this one is the caller's.
    if t.untyped_storage().device.type != "cpu":
        raise ValueError(f"a {type(t).__name__} without memory has no values")
    memory = (ctypes.c_ubyte * (t.numel() * t.element_size())).from_address(t.data_ptr())
    hasher.update(memoryview(memory).cast("B"))


def _is_dense(t: Any) -> bool:
    """Whether the elements fill one piece of memory, each once, in whatever order of dimensions."""
    expected = 1
    for step, size in sorted((s, n) for s, n in zip(t.stride(), t.shape, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= size
    return True


def ambient_state() -> Description:
    """Describe what an export depends on: default dtype and device, grad mode, autocast, global hooks."""
    import torch
    from torch.nn.modules import module as nn_module

    from etgraph.identity.describe import describe

    said = {
        "default_dtype": torch.get_default_dtype(),
        "default_device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": [d for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)],
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "fast path of attention": torch.backends.mha.get_fastpath_enabled(),
        "einsum": [torch.backends.opt_einsum.enabled, torch.backends.opt_einsum.strategy],
        "hooks": list(nn_module._global_forward_hooks.values()),
        "pre_hooks": list(nn_module._global_forward_pre_hooks.values()),
    }
    return describe(said, "torch state")
