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
            "prepare": {"quantizers": Deferred(_trained), "qat": True},
            "train": training,
        },
    )


def _quantizing(name: str, quantizers: Callable[[], list[Any]], *, static: bool) -> etgraph.Recipe:
    return _on_xnnpack(
        name,
        {
            "prepare": {"quantizers": Deferred(quantizers), "qat": False},
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
