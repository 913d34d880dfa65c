"""Insert what a quantizer needs to see of a program: observers, or fake quantization for training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Exported, Prepared
from etgraph.errors import StageError, UsageError

#: Operators of recurrent networks, which quantizers of torchao's PT2E know nothing of and which are decomposed later.
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@etgraph.stage(on_request=True, cost=3.0, reads_inputs=False, reads_provenance=True)
def prepare(
    program: Exported,
    *,
    quantizers: Sequence[Any],
    qat: bool = False,
    dynamic_batch_size: bool = False,
    pre_prepare_passes: Sequence[Callable[[Any], Any]] = (),
    post_prepare_passes: Sequence[Callable[[Any], Any]] = (),
) -> Prepared:
    """Insert observers where the quantizers want them, for calibration (PTQ) or training (QAT).

    Args:
        quantizers: PT2E quantizers; several annotate one after the other.
        qat: insert fake quantization, to be trained.
        dynamic_batch_size: insist that the first size of every tensor input may vary.
        pre_prepare_passes: functions from graph module to graph module, before anything is inserted.
        post_prepare_passes: the same, afterwards.

    Raises:
        StageError: the quantizers found nothing to quantize in any method.
    """
    from stages.support.prepared import observers_of
    from stages.support.quantizers import names_of, one_quantizer

    one_quantizer(quantizers)
    modules = {}
    shapes = dict(program.dynamic_shapes)
    for method, exported in program.methods.items():
        with etgraph.at(method):
            if dynamic_batch_size:
                _check_batch(method, exported)
            modules[method], found = _prepared(exported, quantizers, qat, pre_prepare_passes, post_prepare_passes)
            _refuse_twice(method, modules[method], program, quantizers)
            _note_shapes(shapes, method, found, program, dynamic_batch_size)
    idle = [method for method, module in modules.items() if not any(observers_of(module))]
    if len(idle) == len(modules):
        raise _nothing_found(program, quantizers)
    for method in idle:
        etgraph.warn(f"{names_of(quantizers)} found nothing to quantize in method {method!r}")
    return replace(program.become(Prepared, methods=modules), dynamic_shapes=shapes)


def _nothing_found(program: Exported, quantizers: Sequence[Any]) -> StageError:
    """Say why there was nothing to quantize, by the operators that there are."""
    from stages.support.programs import all_nodes, namespace_of
    from stages.support.quantizers import names_of

    nodes = [node for exported in program.methods.values() for node in all_nodes(exported)]
    operators = dict.fromkeys(str(node.target) for node in nodes if namespace_of(node.target))
    recurrent = [name for name in operators if name.split(".")[1] in _RECURRENT]
    decomposed = any(exported.dialect != "TRAINING" for exported in program.methods.values())
    if decomposed:
        why = "its operators were decomposed before, which hides them from the quantizer"
        hint = "Give the program as torch.export.export made it."
    elif recurrent:
        are = "is one operator, which is" if len(recurrent) == 1 else "are operators that are"
        why = f"{' and '.join(recurrent)} {are} taken apart after quantizing only"
        hint = "Quantize the weights of layers outside of it, write its cell as linear layers, or take an fp32 recipe."
    else:
        shown = ", ".join(list(operators)[:6]) or "none"
        why = f"it has no pattern for the operators that there are ({shown})"
        hint = "Check which operators it is set for, or take an fp32 recipe."
    return StageError(
        f"{names_of(quantizers)} found nothing to quantize in {', '.join(program.methods)}: {why}",
        stage="prepare",
        hint=hint,
    )


def _prepared(
    exported: Any, quantizers: Sequence[Any], qat: bool, before: Sequence[Any], after: Sequence[Any]
) -> tuple[Any, Any]:
    """Return the prepared module of one method, and the dynamic shapes that the program has."""
    import copy

    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e, prepare_qat_pt2e

    from stages.support.prepared import apply_passes, note_annotations, own_copy
    from stages.support.quantizers import one_quantizer
    from stages.support.tracing import shapes_of

    # Weights are shared with the exported program, which shares them with the caller's module: training writes to them.
    module = own_copy(exported.module(check_guards=False), share_parameters=not qat)
    shapes = shapes_of(module, exported.range_constraints)
    module = apply_passes(module, before, "pre_prepare_passes")
    # Quantizers note what they annotated: each method gets its own.
    quantizer = one_quantizer(copy.deepcopy(list(quantizers)))
    module = (prepare_qat_pt2e if qat else prepare_pt2e)(module, quantizer)
    module = apply_passes(module, after, "post_prepare_passes")
    note_annotations(module)
    return module, shapes


def _refuse_twice(method: str, module: Any, program: Exported, quantizers: Sequence[Any]) -> None:
    """Refuse to quantize what comes out of a dequantize, unless the recipe itself has asked for both."""
    from stages.support.prepared import observed_again
    from stages.support.quantizers import names_of

    again = observed_again(module)
    if not again:
        return
    more = f" and {len(again) - 3} more" if len(again) > 3 else ""
    shown = f"{', '.join(again[:3])}{more} in method {method!r}"
    if any(step.stage == "source_transform" for step in program.provenance):
        etgraph.warn(f"{names_of(quantizers)} quantizes again what a source transform has quantized: {shown}")
        return
    raise UsageError(
        f"{names_of(quantizers)} would quantize again what torchao's quantize_ has quantized in the module: {shown}",
        hint="Give the module as it was before quantize_, or a recipe that does not quantize (xnnpack_fp32), which "
        "lowers it as it is.",
    )


def _note_shapes(shapes: dict[str, Any], method: str, found: Any, program: Exported, dynamic_batch: bool) -> None:
    """Keep the dynamic shapes for when the program is captured again.

    A batch that varies only because the recipe wanted to train with batches of any size does not vary afterwards.
    """
    for_training = dynamic_batch and any(
        step.stage == "torch_export" and ("dynamic_batch_size", "True") in step.options for step in program.provenance
    )
    if found is not None and (method in shapes or not for_training):
        shapes[method] = found


def _check_batch(method: str, exported: Any) -> None:
    import torch

    user_inputs = set(exported.graph_signature.user_inputs)
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        sized = node.name in user_inputs and isinstance(value, torch.Tensor) and value.dim() > 0
        if sized and not isinstance(value.shape[0], torch.SymInt):
            raise UsageError(
                f"dynamic_batch_size is wanted, and input {node.name!r} of method {method!r} was exported with the "
                f"fixed batch size {value.shape[0]}",
                hint="Start from the module, or export it with a dynamic first dimension of at least 2 in the "
                "example inputs.",
            )
