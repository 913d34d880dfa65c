"""torchao's affine operators, for which ExecuTorch has no kernels, as operators for which it has some.

`quantize_` leaves `torchao.dequantize_affine` and its like in a program. Backends that know them take them while
lowering; what they leave, such as weight-only layers on XNNPACK, ends in "Missing out variants" upstream
(executorch 1.5). The kernels of `quantized_decomposed` compute the same, on values that are viewed as rows of blocks.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from executorch.exir.dialects._ops import ops
from torch.export import ExportedProgram
from torch.fx import Node

from stages.support.programs import edge_config_from_verifier

__all__ = ["spell_out_affine"]


def spell_out_affine(program: ExportedProgram) -> None:
    """Rewrite affine operators in place; those of forms for which there is no kernel stay as they are.

    Weights stay quantized in the program, at one byte each, and become float when their layer runs.
    """
    rewrites: dict[str, Callable[[ExportedProgram, Node], Node | None]] = {
        "torchao::dequantize_affine": _dequantized,
        "torchao::quantize_affine": _quantized,
        "torchao::choose_qparams_affine": _ranges,
    }
    changed = False
    for node in list(program.graph.nodes):
        schema = getattr(node.target, "_schema", None)
        rewrite = rewrites.get(schema.name) if schema is not None else None
        if rewrite is None:
            continue
        with program.graph.inserting_before(node):
            new = rewrite(program, node)
        if new is not None:
            new.meta = {**node.meta, "val": new.meta["val"]}
            _replace(program, node, new)
            changed = True
    if changed:
        program.graph.eliminate_dead_code()
        program.graph_module.recompile()


def _replace(program: ExportedProgram, node: Node, new: Node) -> None:
    node.replace_all_uses_with(new)
    for spec in program.graph_signature.output_specs:
        if getattr(spec.arg, "name", None) == node.name:
            spec.arg.name = new.name
    program.graph.erase_node(node)


def _dequantized(program: ExportedProgram, node: Node) -> Node | None:
    call = _arguments(node)
    value, block, scale, zero = (call[name] for name in ("input", "block_size", "scale", "zero_point"))
    low, high, stored = call["quant_min"], call["quant_max"], call["input_dtype"]
    if call["output_dtype"] is not torch.float32 or low is None or high is None:
        return None
    if _is_per_token(value, block):
        return _call(_decomposed("dequantize_per_token"), value, scale, zero, low, high, stored, torch.float32)
    shape = list(value.meta["val"].shape)
    if not all(isinstance(size, int) for size in shape) or not _lies_in_rows(shape, block):
        return None
    rows = _call(ops.edge.aten.view_copy.default, value, [-1, math.prod(block)])
    scales = _call(ops.edge.aten.view_copy.default, scale, [-1])
    zeros = None
    if not _is_zero(program, zero):
        zeros = _call(ops.edge.aten.view_copy.default, _as_long(program, zero), [-1])
    floats = _call(_decomposed("dequantize_per_channel"), rows, scales, zeros, 0, low, high, stored)
    return _call(ops.edge.aten.view_copy.default, floats, shape)


def _quantized(program: ExportedProgram, node: Node) -> Node | None:
    call = _arguments(node)
    value, scale, zero = call["input"], call["scale"], call["zero_point"]
    if not _is_per_token(value, call["block_size"]) or zero is None:
        return None
    low, high, stored = call["quant_min"], call["quant_max"], call["output_dtype"]
    return _call(_decomposed("quantize_per_token"), value, scale, zero, low, high, stored)


def _ranges(program: ExportedProgram, node: Node) -> Node | None:
    call = _arguments(node)
    stored = call["target_dtype"]
    whole = (call["quant_min"], call["quant_max"]) in ((None, None), (-128, 127))
    if call["mapping_type"] != "ASYMMETRIC" or stored is not torch.int8 or not whole:
        return None
    # The kernel works on whole tokens only, and gives what it gives to its two companions.
    if not _is_per_token(call["input"], call["block_size"]) or not all(map(_goes_to_tokens, node.users)):
        return None
    return _call(_decomposed("choose_qparams_per_token_asymmetric"), call["input"], stored)


def _goes_to_tokens(item: Node) -> bool:
    """Whether a scale or zero point goes only where it is read per token."""
    readers = [_schema_name(reader) for reader in item.users]
    return item.target is operator.getitem and set(readers) <= {
        "torchao::quantize_affine", "torchao::dequantize_affine",
    }  # fmt: skip


def _schema_name(node: Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return schema.name if schema is not None else ""


def _arguments(node: Node) -> dict[str, Any]:
    """Return the arguments of a call by name; of those that may be left out, what they then mean."""
    given = dict(zip((argument.name for argument in node.target._schema.arguments), node.args, strict=False))
    left_out = {"quant_min": None, "quant_max": None, "output_dtype": torch.float32}
    return {**left_out, **given, **node.kwargs}


def _is_per_token(value: Node, block: Sequence[int]) -> bool:
    """Whether there is one scale for each row of an activation; weights, which are constants, are not tokens."""
    if value.op == "placeholder" and not value.meta["val"].dtype.is_floating_point:
        return False
    shape = value.meta["val"].shape
    return all(size == 1 for size in block[:-1]) and isinstance(shape[-1], int) and block[-1] == shape[-1]


def _lies_in_rows(shape: Sequence[int], block: Sequence[int]) -> bool:
    """Whether each block is contiguous: ones, then a divisor of a size, then whole sizes."""
    first = next((i for i, size in enumerate(block) if size != 1), len(block) - 1)
    return shape[first] % block[first] == 0 and list(shape[first + 1 :]) == list(block[first + 1 :])


def _is_zero(program: ExportedProgram, node: Node | None) -> bool:
    if node is None:
        return True
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    names |= signature.inputs_to_lifted_tensor_constants
    held = program.state_dict.get(names.get(node.name, ""), program.constants.get(names.get(node.name, "")))
    updated = names.get(node.name) in signature.buffers_to_mutate.values()
    return held is not None and not updated and not bool(held.ne(0).any())


def _as_long(program: ExportedProgram, node: Node) -> Node:
    """Insert a conversion to int64, which the kernel wants zero points to be."""
    if edge_config_from_verifier(program).skip_dim_order:
        return _call(ops.edge.aten._to_copy.default, node, dtype=torch.int64)
    return _call(ops.edge.dim_order_ops._to_dim_order_copy.default, node, dtype=torch.int64)


def _decomposed(name: str) -> Any:
    return getattr(ops.edge.quantized_decomposed, name).default


def _call(target: Any, *args: Any, **kwargs: Any) -> Node:
    """Insert a call, with the value that it has on the values of its arguments."""
    first = args[0]
    node: Node = first.graph.call_function(target, args, kwargs)
    values = torch.fx.map_arg((args, kwargs), lambda one: one.meta["val"])
    with first.meta["val"].fake_mode:
        node.meta["val"] = target(*values[0], **values[1])
    return node
