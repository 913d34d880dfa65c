"""Operators by name: what a `call_function` node calls, found in torch's and ExecuTorch's own registries.

A name says where to look: `op:aten::add.Tensor`, `edge:aten::add.Tensor`, `backend:...`, `packet:aten::add`,
`hop:cond`, and `py:operator.getitem` for a function of a closed list. Nothing else can be called from a file.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import math
import operator
from typing import Any

from etgraph.errors import UsageError
from stages.codec.context import Reader, Writer, malformed, refuse, words

__all__ = ["function_name", "function_named", "read_target", "register", "write_target"]

#: Namespace of an operator library to the modules that register it, the first that can be imported is enough.
REGISTRIES: dict[str, tuple[str, ...]] = {
    "quantized_decomposed": ("torchao.quantization.pt2e.quantizer", "executorch.exir"),
    "dim_order_ops": ("executorch.exir.passes.dim_order_ops_registry",),
    "executorch_prim": ("executorch.exir.passes.executorch_prim_ops_registry",),
    "quantized": ("executorch.kernels.quantized",),
    "torchao": ("torchao",),
    "et_vk": ("executorch.backends.vulkan.custom_ops_lib",),
    "cadence": ("executorch.backends.cadence.aot.ops_registrations",),
    "cortex_m": ("executorch.backends.cortex_m.ops.operators",),
    "tosa": ("executorch.backends.arm.tosa.dialect.lib",),
    "llama": ("executorch.extension.llm.custom_ops.custom_ops",),
    "neuron": ("executorch.backends.mediatek",),
    "bolt_nn": ("executorch.exir.passes",),
    "torchvision": ("torchvision",),
    "coremltools": ("executorch.backends.apple.coreml",),
    "higher_order": ("torch._higher_order_ops", "executorch.exir.delegate"),
}

_FUNCTIONS = {
    builtins: ("abs", "round", "max", "min", "int", "float", "bool", "len"),
    math: words("acos asin asinh atan ceil cos cosh exp floor log log2 pow sin sinh sqrt tan tanh trunc"),
    operator: words(
        "abs add and_ eq floordiv ge getitem gt index inv invert is_ is_not le lshift lt mod mul ne neg not_ "
        "or_ pos pow rshift sub truediv truth xor"
    ),
}
_TORCH_FUNCTIONS = words(
    "torch.sym_int torch.sym_float torch.sym_ite torch.sym_max torch.sym_min torch.sym_not torch.sym_sqrt "
    "torch.sym_sum torch._sym_sqrt torch._C._set_grad_enabled torch.autograd.grad_mode.set_grad_enabled "
    "torch.amp.autocast_mode._enter_autocast torch.amp.autocast_mode._exit_autocast "
    "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless"
)


@functools.cache
def _functions() -> dict[str, Any]:
    """The functions that a file may name, by name."""
    table = {f"{m.__name__}.{n}": getattr(m, n) for m, names in _FUNCTIONS.items() for n in names}
    for name in _TORCH_FUNCTIONS:
        module, _, attribute = name.rpartition(".")
        owner = _walk(module)
        if hasattr(owner, attribute):
            table[name] = getattr(owner, attribute)
    return table


def _walk(dotted: str) -> Any:
    """Find a module or class below torch; torch is imported, nothing else is."""
    import torch.fx.experimental.symbolic_shapes

    found: Any = torch
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return found


@functools.cache
def _function_names() -> dict[Any, str]:
    names: dict[Any, str] = {}
    for name, function in _functions().items():
        names.setdefault(function, name)
    return names


def function_name(function: Any) -> str | None:
    """Name a function of the closed list; None for any other."""
    try:
        return _function_names().get(function)
    except TypeError:
        return None


def function_named(name: str) -> bool:
    """Tell whether a function of the closed list goes by a name, as torch writes it (`_operator.getitem`)."""
    known = _functions()
    return name in known or name.replace("_operator.", "operator.", 1) in known or f"builtins.{name}" in known


def register(namespace: str, name: str, overload: str) -> None:
    """Import what registers an operator, when it is not registered yet.

    Raises:
        UsageError: it stays unknown.
    """
    _find(namespace, lambda: _overload(namespace, name, overload), f"{namespace}::{name}.{overload}")


#: What the passes of operator libraries allocate scratch memory with.
_ALLOC = "executorch.exir.memory.alloc"


def write_target(writer: Writer, target: Any, *, scratch: bool = False) -> str:
    """Name what a node calls.

    Args:
        scratch: it allocates scratch memory for an operator of a library.

    Raises:
        UsageError: a function that has no name in a registry; a program that `to_executorch` has rewritten is one.
    """
    import torch

    if isinstance(target, torch._ops.OpOverload):
        return f"op:{target._schema.name}.{target._overloadname}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"hop:{target.name()}"
    if isinstance(target, torch._ops.OpOverloadPacket):
        return f"packet:{target._qualified_op_name}"
    for dialect in ("edge", "backend"):
        if type(target).__module__ == f"executorch.exir.dialects.{dialect}._ops":
            return f"{dialect}:{target._schema.name}.{target._schema.overload_name or 'default'}"
    name = _ALLOC if scratch else function_name(target)
    if name is not None:
        return f"py:{name}"
    shown = f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', target)}"
    if shown.startswith("executorch.exir.memory."):
        raise refuse(
            writer.where,
            f"a program that to_executorch has rewritten ({shown})",
            "to_executorch changes its edge program in place: keep the edge program from before it ran.",
        )
    raise refuse(
        writer.where,
        f"a node that calls {shown}",
        "Only registered operators and the functions in stages/codec/operators.py can be named in a file; register "
        "yours with torch.library.",
    )


def read_target(reader: Reader, name: str) -> Any:
    """Find what a node calls, importing the operator library that registers it when it is a known one.

    Raises:
        UsageError: no operator of that name; says what would register it.
        ArtifactFileError: not a name of an operator.
    """
    if name not in reader.operators:
        kind, _, rest = name.partition(":")
        reader.operators[name] = _FINDERS[kind](rest) if kind in _FINDERS else _unknown(name)
    return reader.operators[name]


def _unknown(name: Any) -> Any:
    raise malformed("the name of an operator", name)


def _find_function(name: str) -> Any:
    if name == _ALLOC:
        from executorch.exir import memory

        return memory.alloc
    return _functions()[name] if name in _functions() else _unknown(name)


def _find_higher_order(name: str) -> Any:
    return _find("higher_order", lambda: _higher_order(name), name)


def _higher_order(name: str) -> Any:
    import torch

    op = getattr(torch.ops.higher_order, name)
    if not isinstance(op, torch._ops.HigherOrderOperator):
        raise AttributeError(name)
    return op


def _find_overload(name: str) -> Any:
    namespace, opname, overload = _split(name)
    return _find(namespace, lambda: _overload(namespace, opname, overload), name)


#: Where `to_edge_transform_and_lower` registers a twin of each ATen operator that it keeps whole, when it first does.
_NO_DECOMPOSITION = "EDGE_DO_NOT_DECOMP"


def _overload(namespace: str, opname: str, overload: str) -> Any:
    import torch

    if namespace == _NO_DECOMPOSITION:
        from executorch.exir.program._program import _register_no_decomp_op

        _register_no_decomp_op(_overload("aten", opname, overload))
    packet = getattr(getattr(torch.ops, namespace), opname)
    found = getattr(packet, overload or "default")
    if not isinstance(found, torch._ops.OpOverload):
        raise AttributeError(opname)
    return found


def _find_packet(name: str) -> Any:
    namespace, _, opname = name.partition("::")
    if not (namespace.isidentifier() and opname.isidentifier()):
        _unknown(name)
    import torch

    return _find(namespace, lambda: getattr(getattr(torch.ops, namespace), opname), name)


def _find_edge(name: str) -> Any:
    return _find_dialect("edge", name)


def _find_backend(name: str) -> Any:
    return _find_dialect("backend", name)


def _find_dialect(dialect: str, name: str) -> Any:
    namespace, opname, overload = _split(name)
    _find_overload(name)  # registers the library when needed, and proves that it is an operator
    from executorch.exir.dialects._ops import ops as dialects

    return getattr(getattr(getattr(getattr(dialects, dialect), namespace), opname), overload or "default")


def _split(name: str) -> tuple[str, str, str]:
    namespace, _, rest = name.partition("::")
    opname, _, overload = rest.partition(".")
    if not (namespace.isidentifier() and opname.isidentifier() and (not overload or overload.isidentifier())):
        _unknown(name)
    return namespace, opname, overload


def _find(namespace: str, lookup: Any, name: str) -> Any:
    try:
        return lookup()
    except AttributeError:
        pass
    failed = []
    for module in REGISTRIES.get(namespace, ()):
        try:
            importlib.import_module(module)
            return lookup()
        except (ImportError, AttributeError, OSError, RuntimeError) as e:
            failed.append(f"{module} ({type(e).__name__})")
    tried = f"tried {', '.join(failed)}" if failed else f"no library for {namespace!r} is known here"
    raise UsageError(
        f"the program uses the operator {name}, which is not registered; {tried}",
        hint="Import the Python module that registers it before loading the file.",
    )


_FINDERS = {
    "py": _find_function,
    "hop": _find_higher_order,
    "op": _find_overload,
    "packet": _find_packet,
    "edge": _find_edge,
    "backend": _find_backend,
}
