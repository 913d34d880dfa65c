"""XNNPACK in int8: static and dynamic quantization of the exported program, and training for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through
from stages.recipes.xnnpack import xnnpack_fp32


@etgraph.recipe("xnnpack_int8", backends=("XnnpackBackend",))
def xnnpack_int8() -> etgraph.Recipe:
    """XNNPACK in int8, static, weights per channel; needs calibration inputs."""
    return _quantizing("xnnpack_int8", _per_channel, static=True)


@etgraph.recipe("xnnpack_int8_per_tensor", backends=("XnnpackBackend",))
def xnnpack_int8_per_tensor() -> etgraph.Recipe:
    """XNNPACK in int8, static, one scale per weight; needs calibration inputs."""
    return _quantizing("xnnpack_int8_per_tensor", _per_tensor, static=True)


@etgraph.recipe("xnnpack_int8_dynamic", backends=("XnnpackBackend",))
def xnnpack_int8_dynamic() -> etgraph.Recipe:
    """XNNPACK in int8, activations quantized as they come; no calibration inputs needed."""
    return _quantizing("xnnpack_int8_dynamic", _dynamic, static=False)


@etgraph.recipe("xnnpack_int8_qat", backends=("XnnpackBackend",))
def xnnpack_int8_qat(train_fn: Callable[[Any], Any] | None = None) -> etgraph.Recipe:
    """XNNPACK in int8, trained for it: give train_fn, or stop at prepared and train there."""
    training = {"train_fn": train_fn} if train_fn is not None else {}
    return _on_xnnpack(
        "xnnpack_int8_qat",
        {
            "torch_export": {"eval_mode": True},
            "prepare": {"quantizers": Deferred(_trained), "qat": True, "pre_prepare_passes": [_whole_numbers_stay]},
            "train": training,
        },
    )


def _quantizing(name: str, quantizers: Callable[[], list[Any]], *, static: bool) -> etgraph.Recipe:
    return _on_xnnpack(
        name,
        {
            "prepare": {"quantizers": Deferred(quantizers), "qat": False, "pre_prepare_passes": [_whole_numbers_stay]},
            "calibrate": {"static": ("XNNPACKQuantizer",) if static else ()},
        },
    )


def _on_xnnpack(name: str, stages: dict[str, dict[str, Any]]) -> etgraph.Recipe:
    lowering = xnnpack_fp32()
    return etgraph.Recipe(
        name=name,
        stages={**stages, **lowering.stages},
        through=(Through("quantized", "quantizes to int8", instead="xnnpack_fp32"), *lowering.through),
        backends=lowering.backends,
    )


def _per_channel() -> list[Any]:
    return [_quantizer(is_per_channel=True)]


def _per_tensor() -> list[Any]:
    return [_quantizer(is_per_channel=False)]


def _dynamic() -> list[Any]:
    return [_quantizer(is_per_channel=True, is_dynamic=True)]


def _trained() -> list[Any]:
    return [_quantizer(is_per_channel=True, is_qat=True)]


def _quantizer(**settings: bool) -> Any:
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**settings))


def _whole_numbers_stay(module: Any) -> Any:
    """Write whole numbers that are added to or multiplied with integer tensors as integer tensors.

    XNNPACKQuantizer (executorch 1.5) makes float tensors of all such numbers before it annotates; the positions that an
    attention mask is indexed with are then float, and the prepared program does not run.
    """
    import torch

    targets = (torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor)
    for position, node in enumerate(list(module.graph.nodes)):
        value = node.meta.get("val")
        if node.target not in targets or not isinstance(value, torch.Tensor):
            continue
        if value.dtype.is_floating_point or value.dtype.is_complex or type(node.args[1]) is not int:
            continue
        name, number = f"_whole_number_{position}", torch.tensor(node.args[1], dtype=value.dtype)
        module.register_buffer(name, number)
        with module.graph.inserting_before(node):
            constant = module.graph.get_attr(name)
        constant.meta["val"] = value.fake_mode.from_tensor(number, static_shapes=True)
        node.args = (node.args[0], constant)
    module.recompile()
    return module
