"""The fields of upstream's `QuantizationRecipe` as options of stages; one that cannot be honoured is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etgraph.calibration import CalibrationFunctions
from etgraph.errors import UsageError
from etgraph.recipes import Through
from stages.support.quantizers import names_of, static_quantizers

_HOOKS = ("pre_prepare_passes", "post_prepare_passes", "pre_convert_passes", "post_convert_passes")
_FOR_QUANTIZERS = (*_HOOKS, "is_qat", "dynamic_batch_size", "calibration_inputs_fn", "train_fn")

Stages = dict[str, dict[str, Any]]


def quantizing_stages(name: str, upstream: Any) -> tuple[Stages, tuple[Through, ...]]:
    """Return the stages that an `ExportRecipe` quantizes with, and what the way must pass for it.

    Options of `torch_export` among them come on top of those that the recipe has anyway.

    Raises:
        UsageError: the fields contradict one another, or one would have no effect.
    """
    recipe = upstream.quantization_recipe
    if recipe is None:
        return {}, ()
    _check_fields(name, recipe)
    if not recipe.quantizers and not recipe.ao_quantization_configs:
        return {}, ()
    stages: Stages = {}
    does = []
    if recipe.ao_quantization_configs:
        stages.update(_weights(name, recipe, upstream))
        does.append("quantizes the weights of the eager module with torchao's quantize_")
    if recipe.quantizers:
        stages.update(_pt2e(recipe))
        does.append(f"quantizes with {names_of(recipe.quantizers)}")
    at = "module" if recipe.ao_quantization_configs else ""
    return stages, (Through("quantized", " and ".join(does), at=at),)


def _check_fields(name: str, recipe: Any) -> None:
    configs = recipe.ao_quantization_configs or ()
    if len(configs) > 1:
        raise UsageError(
            f"recipe {name} has {len(configs)} ao_quantization_configs, and quantize_ cannot be applied twice "
            "to one module reliably",
            hint="Use one, and choose modules by its filter_fn.",
        )
    idle = [field for field in _FOR_QUANTIZERS if getattr(recipe, field)]
    if idle and not recipe.quantizers:
        raise UsageError(
            f"recipe {name} gives {', '.join(idle)} and no quantizers, so that nothing would use them",
            hint="Give quantizers, or take these fields out.",
        )
    if recipe.is_qat and recipe.calibration_inputs_fn is not None:
        raise UsageError(
            f"recipe {name} gives calibration_inputs_fn with is_qat=True: training takes the place of calibration",
            hint="Take calibration_inputs_fn out, or run its inputs through the module in train_fn.",
        )
    if recipe.train_fn is not None and not recipe.is_qat:
        raise UsageError(
            f"recipe {name} gives a train_fn and is_qat=False, so that it would never be called",
            hint="Set is_qat=True, or take train_fn out.",
        )


def _weights(name: str, recipe: Any, upstream: Any) -> Stages:
    config = recipe.ao_quantization_configs[0]
    if recipe.quantizers:
        from stages.support.weight_quantization import QuantizeWeights

        transform = QuantizeWeights(config.ao_base_config, config.filter_fn)
        return {"source_transform": {"transforms": [transform], "in_place": upstream.source_transform_in_place}}
    return {
        "quantize_weights": {
            "config": config.ao_base_config,
            "filter_fn": config.filter_fn,
            "in_place": upstream.source_transform_in_place,
            "strict": upstream.strict,
        }
    }


def _pt2e(recipe: Any) -> Stages:
    def hooks(*names: str) -> dict[str, Any]:
        return {field: list(getattr(recipe, field)) for field in names if getattr(recipe, field)}

    prepare = {"quantizers": list(recipe.quantizers), "qat": recipe.is_qat, **hooks(*_HOOKS[:2])}
    export: dict[str, Any] = {}
    if recipe.dynamic_batch_size:
        prepare["dynamic_batch_size"] = export["dynamic_batch_size"] = True
    stages: Stages = {"prepare": prepare, "convert": hooks(*_HOOKS[2:])}
    if recipe.is_qat:
        # Captured as in eval: training switches batch norm and dropout over in the graph, and nothing else of a
        # training-mode trace is meant for the device.
        export["eval_mode"] = True
        stages["train"] = {"train_fn": recipe.train_fn} if recipe.train_fn else {}
    else:
        stages["calibrate"] = {"static": static_quantizers(recipe.quantizers)}
        if recipe.calibration_inputs_fn is not None:
            stages["calibrate"]["calibration_inputs"] = CalibrationFunctions((recipe.calibration_inputs_fn,))
    if export:
        stages["torch_export"] = export
    return stages


def missing_from_pipeline(recipe: Any, pipeline: set[str]) -> Mapping[str, str]:
    """Return fields of a `QuantizationRecipe` that a pipeline would drop, with the stage that it would have to name."""
    if recipe is None or not pipeline:
        return {}
    needs = {"quantizers": "QUANTIZE", "ao_quantization_configs": "SOURCE_TRANSFORM"}
    return {field: stage for field, stage in needs.items() if getattr(recipe, field) and stage not in pipeline}
