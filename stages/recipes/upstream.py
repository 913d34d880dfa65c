"""ExecuTorch's own recipes, taken as they are: an `ExportRecipe`, a `RecipeType`, or its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import etgraph
from etgraph.errors import UsageError
from etgraph.recipes import Through, closest

#: Where upstream's providers are, by how the values of their RecipeTypes begin (executorch 1.5). The registry of
#: upstream knows a provider only after its module was imported.
PROVIDERS = {
    "xnnpack": "executorch.backends.xnnpack.recipes",
    "coreml": "executorch.backends.apple.coreml.recipes",
    "coreai": "executorch.backends.apple.coreai.recipes",
    "qnn": "executorch.backends.qualcomm.recipes",
    "arm": "executorch.backends.arm.recipes",
    "ethos": "executorch.backends.arm.recipes",
    "tosa": "executorch.backends.arm.recipes",
    "vgf": "executorch.backends.arm.recipes",
}


@etgraph.recipe_adapter
def adapt(given: Any, options: Mapping[str, Any]) -> etgraph.Recipe | None:
    """Turn one of upstream's recipes, or the name of one, into a recipe of etgraph's."""
    if isinstance(given, str):
        module = PROVIDERS.get(given.partition("_")[0])
        if module is None:
            return None
        given = _type_named(given, module)
    if "executorch.export.recipe" not in sys.modules:
        return None
    from executorch.export import ExportRecipe
    from executorch.export.recipe import RecipeType

    if isinstance(given, RecipeType):
        try:
            given = ExportRecipe.get_recipe(given, **options)
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(f"upstream cannot make its recipe {given.value}: {error}") from error
    elif isinstance(given, ExportRecipe) and options:
        raise UsageError(f"options {', '.join(options)} were given for a recipe that is already made")
    return from_export_recipe(given) if isinstance(given, ExportRecipe) else None


def _type_named(name: str, module: str) -> Any:
    try:
        provider = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"recipe {name!r} belongs to {module}, which cannot be imported here: {error}",
            hint="Install what the message names; `etgraph doctor` shows which backends can be used here.",
        ) from error
    from executorch.export.recipe import RecipeType

    known = {
        member.value: member
        for value in vars(provider).values()
        if isinstance(value, type) and issubclass(value, RecipeType) and value is not RecipeType
        for member in value
    }
    if name not in known:
        raise UsageError(
            f"{module} has no recipe {name!r}{closest(name, known)}",
            hint=f"It has: {', '.join(sorted(known))}.",
        )
    return known[name]


def from_export_recipe(upstream: Any) -> etgraph.Recipe:
    """Return the recipe that asks for what an `ExportRecipe` asks for; a field that cannot be honoured is refused."""
    from executorch.export import LoweringRecipe
    from executorch.export.recipe import Mode

    name = upstream.name or "an unnamed ExportRecipe"
    _refuse_quantization(name, upstream.quantization_recipe)
    if upstream.mode is not Mode.RELEASE:
        etgraph.warn(f"recipe {name}: mode={upstream.mode.value!r} has no effect, upstream as here")
    lowering = upstream.lowering_recipe or LoweringRecipe()
    stages: dict[str, dict[str, Any]] = {"torch_export": {"strict": upstream.strict}}
    if upstream.aten_transform_passes:
        stages["aten_passes"] = {"passes": list(upstream.aten_transform_passes)}
    if lowering.edge_transform_passes:
        stages["edge_passes"] = {"passes": list(lowering.edge_transform_passes)}
    stages["to_edge"] = {"compile_config": lowering.edge_compile_config}
    if upstream.executorch_backend_config is not None:
        stages["to_executorch"] = {"backend_config": upstream.executorch_backend_config}
    pipeline = {stage.name for stage in upstream.pipeline_stages or ()}
    split = "TO_EDGE" in pipeline
    if lowering.edge_manager_transform_passes:
        place = "edge_manager_passes" if split or not lowering.partitioners else "lowered_manager_passes"
        stages[place] = {"passes": list(lowering.edge_manager_transform_passes)}
    _refuse_pipeline(name, pipeline, lowering)
    if not lowering.partitioners:
        return etgraph.Recipe(name=name, stages=stages)
    return _delegating(name, stages, lowering, split)


def _delegating(name: str, stages: dict[str, dict[str, Any]], lowering: Any, split: bool) -> etgraph.Recipe:
    given = lowering.partitioners
    classes = {
        type(p).__name__: None for chosen in (given.values() if isinstance(given, Mapping) else [given]) for p in chosen
    }
    stages["to_backend"] = {"partitioners": given}
    if not split:
        # A pipeline that names TO_EDGE decomposes everything first; the default one keeps operators whole.
        stages["to_edge"]["partitioners"] = given
        stages["to_edge_transform_and_lower"] = {
            "partitioners": given,
            "compile_config": lowering.edge_compile_config,
        }
    return etgraph.Recipe(
        name=name,
        stages=stages,
        through=(Through("lowered", f"delegates by {', '.join(classes)}", instead="portable"),),
        way="split" if split else "",
        way_reason="its pipeline_stages name to_edge and to_backend" if split else "",
    )


def _refuse_quantization(name: str, quantization: Any) -> None:
    import dataclasses

    if quantization is None:
        return
    given = [f.name for f in dataclasses.fields(quantization) if getattr(quantization, f.name)]
    if given:
        raise UsageError(
            f"recipe {name} quantizes ({', '.join(given)}), which etgraph cannot do yet",
            hint="Quantize with torchao first and give the quantized program, or take a recipe without quantization.",
        )


def _refuse_pipeline(name: str, pipeline: set[str], lowering: Any) -> None:
    if not pipeline:
        return
    known = {
        "SOURCE_TRANSFORM",
        "QUANTIZE",
        "TORCH_EXPORT",
        "TO_EDGE_TRANSFORM_AND_LOWER",
        "TO_EDGE",
        "EDGE_PROGRAM_MANAGER_TRANSFORM",
        "TO_BACKEND",
        "TO_EXECUTORCH",
    }
    if pipeline - known:
        raise UsageError(f"recipe {name} names pipeline stages that are unknown: {', '.join(pipeline - known)}")
    if lowering.partitioners and not pipeline & {"TO_BACKEND", "TO_EDGE_TRANSFORM_AND_LOWER"}:
        raise UsageError(
            f"recipe {name} has partitioners, and its pipeline_stages name no stage that delegates",
            hint="Add TO_BACKEND or TO_EDGE_TRANSFORM_AND_LOWER to pipeline_stages, or take the partitioners out.",
        )
    if lowering.edge_manager_transform_passes and "EDGE_PROGRAM_MANAGER_TRANSFORM" not in pipeline:
        raise UsageError(
            f"recipe {name} has edge_manager_transform_passes, and its pipeline_stages do not name "
            "EDGE_PROGRAM_MANAGER_TRANSFORM, so that upstream would drop them",
            hint="Add EDGE_PROGRAM_MANAGER_TRANSFORM to pipeline_stages.",
        )
