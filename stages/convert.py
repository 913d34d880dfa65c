"""From a prepared program to one with quantize and dequantize operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import etgraph
from etgraph.artifact import Prepared, Quantized
from etgraph.errors import StageError, UsageError


@etgraph.stage(cost=4.0, reads_inputs=False, reads_provenance=True)
def convert(
    program: Prepared,
    *,
    fold_quantize: bool = True,
    pre_convert_passes: Sequence[Callable[[Any], Any]] = (),
    post_convert_passes: Sequence[Callable[[Any], Any]] = (),
) -> Quantized:
    """Turn what observers saw into quantize and dequantize operators, and capture the program again.

    Args:
        program: calibrated or trained; it is copied.
        fold_quantize: store weights quantized; otherwise quantize operators act on float weights in the program.
        pre_convert_passes: functions from graph module to graph module, before observers are replaced.
        post_convert_passes: the same, afterwards.

    Raises:
        UsageError: observers have seen no value.
        StageError: no quantize or dequantize operator is left in any method.
    """
    from stages.support.prepared import quantizes
    from stages.support.tracing import capture_again, shapes_of

    prepared_here = any(step.stage == "prepare" for step in program.provenance)
    programs = {}
    for method, module in program.methods.items():
        with etgraph.at(method):
            _check_seen(method, module)
            shapes = program.dynamic_shapes.get(method)
            if shapes is None and not prepared_here:
                shapes = shapes_of(module)
            converted = _converted(module, fold_quantize, pre_convert_passes, post_convert_passes)
            programs[method] = capture_again(converted, method, shapes)
    without = [method for method, exported in programs.items() if not quantizes(exported)]
    if len(without) == len(programs):
        raise StageError(
            f"no quantize or dequantize operator is left in {', '.join(without)}: the program is not quantized",
            stage="convert",
            hint="The quantizer annotated nothing that could be converted, or a pass took it out again.",
        )
    for method in without:
        etgraph.warn(f"method {method!r} is left without quantize or dequantize operators")
    return program.become(Quantized, methods=programs)


def _check_seen(method: str, module: Any) -> None:
    from stages.support.prepared import blind_observers, is_for_training

    blind = blind_observers(module)
    if not blind:
        return
    more = f" and {len(blind) - 3} more" if len(blind) > 3 else ""
    if is_for_training(module):
        hint = "Train it, or run it in training mode on real inputs, before it is converted."
    else:
        hint = "Give calibration_inputs, or run the prepared program on real inputs, before it is converted."
    raise UsageError(
        f"the observers of {', '.join(blind[:3])}{more} in method {method!r} have seen no value", hint=hint
    )


def _converted(module: Any, fold_quantize: bool, before: Sequence[Any], after: Sequence[Any]) -> Any:
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    from stages.support.prepared import annotate_again, apply_passes, is_for_training, own_copy, port_origins

    training = is_for_training(module)
    module = apply_passes(own_copy(module, share_parameters=True), before, "pre_convert_passes")
    if training:
        move_exported_model_to_eval(module)
    annotate_again(module)
    converted = convert_pt2e(module, fold_quantize=fold_quantize)
    port_origins(converted)
    return apply_passes(converted, after, "post_convert_passes")
