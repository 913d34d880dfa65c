"""Capturing a rewritten graph module again, with the shapes and the structure of inputs and outputs it had."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from etgraph.errors import UsageError

GraphModule = torch.fx.GraphModule


def signature_names(module: GraphModule) -> list[str]:
    """Return the names of the arguments of a graph module's forward."""
    return list(inspect.signature(module.forward).parameters)


def placeholders_of(module: GraphModule) -> list[torch.fx.Node]:
    """Return the input nodes in order."""
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _structured(module: GraphModule, leaves: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arrange one value per placeholder as positional and keyword arguments, nested as forward takes them."""
    info = getattr(module.graph._codegen, "pytree_info", None)
    if info is None:
        return tuple(leaves), {}
    args, kwargs = pytree.tree_unflatten(leaves, info.in_spec)
    return tuple(args), dict(kwargs)


def shapes_of(module: GraphModule, ranges: Mapping[Any, Any] | None = None) -> dict[str, Any] | None:
    """Return the dynamic shapes that a graph module was captured with, as `torch.export.export` takes them.

    Args:
        module: its placeholders hold their values with symbolic sizes.
        ranges: symbol to its range, as `ExportedProgram.range_constraints`; of the module's own shape environment
            when not given, where a lower bound of 2 is what torch makes of "any size" (its 0/1 specialisation).

    Returns:
        None when every size is fixed.
    """
    dims = _Dims(ranges)
    leaves = [dims.of(node.meta.get("val")) for node in placeholders_of(module)]
    if not dims.found:
        return None
    args, kwargs = _structured(module, leaves)
    names = signature_names(module)
    return {**dict(zip(names, args, strict=False)), **kwargs}


class _Dims:
    """Makes one `Dim` per symbol, and dimensions derived from them."""

    def __init__(self, ranges: Mapping[Any, Any] | None) -> None:
        self._ranges = ranges
        self._dims: dict[str, Any] = {}
        self.found = False

    def of(self, value: Any) -> Any:
        """Return the dynamic shape of one input: a dimension per symbolic size, None where there is none."""
        if isinstance(value, torch.SymInt):
            self.found = True
            return self._dim(value)
        if not isinstance(value, torch.Tensor):
            return None
        symbolic = {i: self._dim(size) for i, size in enumerate(value.shape) if isinstance(size, torch.SymInt)}
        self.found = self.found or bool(symbolic)
        return symbolic or None

    def _dim(self, size: torch.SymInt) -> Any:
        expression = size.node.expr
        symbols = sorted(expression.free_symbols, key=str)
        if expression.is_Symbol:
            return self._root(expression, size)
        if len(symbols) == 1 and expression.is_polynomial(symbols[0]):
            factor = expression.coeff(symbols[0], 1)
            offset = expression.coeff(symbols[0], 0)
            if factor.is_Integer and offset.is_Integer and expression == factor * symbols[0] + offset:
                root = self._root(symbols[0], size)
                derived = int(factor) * root if factor != 1 else root
                return derived + int(offset) if offset else derived
        return Dim.AUTO

    def _root(self, symbol: Any, size: torch.SymInt) -> Any:
        name = str(symbol)
        if name not in self._dims:
            low, high = self._range(symbol, size)
            self._dims[name] = Dim(name, min=low, max=high)
        return self._dims[name]

    def _range(self, symbol: Any, size: torch.SymInt) -> tuple[int | None, int | None]:
        own = size.node.shape_env.var_to_range.get(symbol)
        known = (self._ranges or {}).get(symbol, own)
        if known is None:
            return None, None
        low = _finite(known.lower)
        if self._ranges is None and low == 2:
            low = None
        return low, _finite(known.upper)


def _finite(bound: Any) -> int | None:
    """Return a bound as an int; None for torch's ways of saying that there is none."""
    text = str(bound)
    return int(text) if text.lstrip("-").isdigit() and abs(int(text)) < sys.maxsize - 1 else None


def trace_inputs(module: GraphModule, method: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return inputs of the dtypes, sizes and layouts that a graph module was captured with; the numbers are zeros."""
    leaves = [_concrete(node, method) for node in placeholders_of(module)]
    return _structured(module, leaves)


def _concrete(node: torch.fx.Node, method: str) -> Any:
    if "val" not in node.meta:
        raise UsageError(
            f"input {node.name!r} of method {method!r} says nothing of its dtype and shape, so the graph cannot be "
            "captured again",
            hint="Give the program as it came from prepare: some pass has removed the metadata of its inputs.",
        )
    value = node.meta["val"]
    if isinstance(value, torch.SymInt):
        return _hint(value)
    if not isinstance(value, torch.Tensor):
        return value
    size = [_hint(one) for one in value.shape]
    stride = [_hint(one) for one in value.stride()]
    return torch.empty_strided(size, stride, dtype=value.dtype, device=value.device).zero_()


def concrete_values(program: ExportedProgram, method: str) -> list[Any]:
    """Return one value for each input of an exported program, of the dtypes and sizes that it was traced with."""
    names = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    values = []
    for node in program.graph.nodes:
        spec = names.get(node.name) if node.op == "placeholder" else None
        if spec is None or spec.kind is not InputKind.USER_INPUT:
            continue
        values.append(spec.arg.value if isinstance(spec.arg, ConstantArgument) else _concrete(node, method))
    return values


def _hint(size: Any) -> int:
    """Return the size that a symbolic one was traced with, without binding the symbol to it."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    environment = size.node.shape_env
    values = getattr(environment, "backed_var_to_val", None) or environment.var_to_val
    chosen = {
        symbol: values.get(symbol, environment.var_to_range[symbol].lower) for symbol in size.node.expr.free_symbols
    }
    return int(size.node.expr.subs(chosen))


def capture_again(module: GraphModule, method: str, dynamic_shapes: Any) -> ExportedProgram:
    """Capture a rewritten graph module as an exported program, with the structure of inputs and outputs it had."""
    args, kwargs = trace_inputs(module, method)
    remove_unused_state(module)
    with torch.no_grad():
        return torch.export.export(module, args, kwargs or None, dynamic_shapes=dynamic_shapes, strict=False)


def remove_unused_state(module: GraphModule) -> None:
    """Remove parameters and buffers that no node names: of a folded weight, the one that it was folded from.

    Upstream leaves them, and an exported program then holds every quantized weight twice.
    """
    used = [str(node.target) for node in module.graph.nodes if node.op in ("get_attr", "call_module")]
    for name in [name for name, _ in (*module.named_parameters(), *module.named_buffers())]:
        if not any(name == one or name.startswith(f"{one}.") for one in used):
            owner, _, attribute = name.rpartition(".")
            delattr(module.get_submodule(owner), attribute)
