"""ExecuTorch's own recipes, taken as they are: an `ExportRecipe`, a `RecipeType`, or its name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import etgraph
from etgraph.errors import UsageError
from etgraph.recipes import Through


@etgraph.recipe_adapter
def adapt(given: Any, options: Mapping[str, Any]) -> etgraph.Recipe | None:
    """Turn one of upstream's recipes, or the name of one, into a recipe of etgraph's."""
    if isinstance(given, str):
        from stages.support.upstream_types import type_named

        given = type_named(given)
    if given is None or "executorch.export.recipe" not in sys.modules:
        return None
    from executorch.export import ExportRecipe
    from executorch.export.recipe import RecipeType

    from stages.support.upstream_types import made

    if isinstance(given, RecipeType):
        given = made(given, options)
    elif isinstance(given, ExportRecipe) and options:
        raise UsageError(f"options {', '.join(options)} were given for a recipe that is already made")
    return from_export_recipe(given) if isinstance(given, ExportRecipe) else None


def from_export_recipe(upstream: Any) -> etgraph.Recipe:
    """Return the recipe that asks for what an `ExportRecipe` asks for; a field that cannot be honoured is refused."""
    from executorch.export import LoweringRecipe
    from executorch.export.recipe import Mode

    from stages.support.upstream_quantization import quantizing_stages

    name = upstream.name or "an unnamed ExportRecipe"
    if upstream.mode is not Mode.RELEASE:
        etgraph.warn(f"recipe {name}: mode={upstream.mode.value!r} has no effect, upstream as here")
    lowering = upstream.lowering_recipe or LoweringRecipe()
    stages, through = quantizing_stages(name, upstream)
    stages["torch_export"] = {"strict": upstream.strict, **stages.get("torch_export", {})}
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
    _refuse_pipeline(name, pipeline, lowering, upstream.quantization_recipe)
    if not lowering.partitioners:
        return etgraph.Recipe(name=name, stages=stages, through=through)
    return _delegating(name, stages, through, lowering, split)


def _delegating(
    name: str,
    stages: dict[str, dict[str, Any]],
    through: tuple[Through, ...],
    lowering: Any,
    split: bool,
) -> etgraph.Recipe:
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
        through=(
            *through,
            Through("lowered", f"delegates by {', '.join(classes)}", instead="portable"),
        ),
        way="split" if split else "",
        way_reason="its pipeline_stages name to_edge and to_backend" if split else "",
    )


def _refuse_pipeline(name: str, pipeline: set[str], lowering: Any, quantization: Any) -> None:
    from stages.support.upstream_quantization import missing_from_pipeline

    if not pipeline:
        return
    for field, stage in missing_from_pipeline(quantization, pipeline).items():
        raise UsageError(
            f"recipe {name} has {field}, and its pipeline_stages do not name {stage}, so that upstream would drop them",
            hint=f"Add {stage} to pipeline_stages, or take {field} out.",
        )
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
