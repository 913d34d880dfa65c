"""Quantize an eager module with torchao's `quantize_`, and capture it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import etgraph
from etgraph.artifact import Module, Quantized
from etgraph.errors import StageError, UsageError


def _has_samples(model: Module) -> None:
    from stages.support.capture import check_samples

    check_samples(model)


@etgraph.stage(on_request=True, cost=2.0, check=_has_samples)
def quantize_weights(
    model: Module,
    *,
    config: Any,
    filter_fn: Callable[[Any, str], bool] | None = None,
    in_place: bool = False,
    strict: bool = False,
    eval_mode: bool = False,
) -> Quantized:
    """Replace weights by quantized ones in the eager module, and capture each method with `torch.export.export`.

    Args:
        model: the eager modules.
        config: a torchao configuration, as `quantize_` takes it; or a mapping with `weight_bits` (1 to 8),
            `group_size` (None: one scale per output channel), `activations` (`int8_dynamic`, or None to leave them as
            they are), and `multiple_of`: layers whose input features are no multiple of it are left in float.
        filter_fn: called with a submodule and its name; says whether to quantize it. Linear layers when not given.
        in_place: change the caller's own modules, for models of which a second copy does not fit in memory.
        strict: trace with TorchDynamo.
        eval_mode: capture as `model.eval()` would.

    Raises:
        StageError: nothing was quantized in any method.
    """
    from dataclasses import replace

    from stages.support.capture import capture
    from stages.support.prepared import quantizes
    from stages.support.weight_quantization import packed_weights, quantize_modules

    _refuse_twice(packed_weights(model.methods), filter_fn)
    methods = quantize_modules(model.methods, config, filter_fn, in_place=in_place)
    programs = capture(replace(model, methods=methods), strict=strict, eval_mode=eval_mode)
    without = [method for method, program in programs.items() if not quantizes(program)]
    if len(without) == len(programs):
        name = "the configuration" if isinstance(config, Mapping) else type(config).__name__
        made = packed_weights(methods)
        if made:
            raise StageError(
                f"{name} made weights of type {', '.join(sorted(set(made.values())))}, which torch.export writes as "
                "arithmetic that no ExecuTorch backend knows as quantized",
                stage="quantize_weights",
                hint="Give torchao's IntxWeightOnlyConfig or Int8DynamicActivationIntxWeightConfig.",
            )
        raise StageError(
            f"{name} quantized nothing in {', '.join(without)}",
            stage="quantize_weights",
            hint="By default linear layers are quantized; say by filter_fn which modules to take. A group size must "
            "divide the number of input features.",
        )
    for method in without:
        etgraph.warn(f"method {method!r} has nothing that was quantized")
    return model.become(Quantized, methods=programs)


def _refuse_twice(packed: Mapping[str, str], filter_fn: Callable[[Any, str], bool] | None) -> None:
    """Refuse a module that went through `quantize_` before; a filter may choose the layers that did not."""
    if packed and filter_fn is None:
        more = f" and {len(packed) - 3} more" if len(packed) > 3 else ""
        shown = ", ".join(f"{name} ({kind})" for name, kind in list(packed.items())[:3])
        raise UsageError(
            f"the module has been through torchao's quantize_ before: {shown}{more}",
            hint="Give it as it was before quantize_; or a recipe that does not quantize (xnnpack_fp32), which lowers "
            "it as it is; or a filter_fn that leaves these out.",
        )
