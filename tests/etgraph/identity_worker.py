"""Describe things in a process of its own: `models DIR...` or `real`.

Prints one JSON object: name to the parts of the description under "parts" and its digest under "digest".
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any


def model_in(directory: str) -> Any:
    """Import `model.py` of a directory as if nothing had been imported before, and make its model."""
    import torch

    before = set(sys.modules)
    sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        torch.manual_seed(0)
        name = "renamed" if directory.endswith("renamed") else "model"
        return importlib.import_module(name).make()
    finally:
        sys.path.remove(directory)
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(directory):
                del sys.modules[name]


def real_objects() -> dict[str, Callable[[], Any]]:
    """What people pass: partitioners, quantizers, passes, configs and recipes of ExecuTorch."""
    import coremltools
    import torch
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig
    from executorch.exir.capture._config import ExecutorchBackendConfig as _  # noqa: F401
    from executorch.exir.dialects._ops import ops as edge_ops
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, naive
    from executorch.exir.passes import MemoryPlanningPass, SpecPropPass
    from executorch.exir.passes.quant_fusion_pass import QuantFusionPass
    from executorch.export import ExportRecipe
    from torch.export import Dim
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig

    def quantizer(**options: Any) -> Any:
        return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))

    def coreml(target: Any) -> Any:
        specs = CoreMLBackend.generate_compile_specs(minimum_deployment_target=target)
        return CoreMLPartitioner(compile_specs=specs)

    suite = MemoryPlanningAlgorithmSuite
    return {
        "edge config": EdgeCompileConfig,
        "edge config, no dim order": lambda: EdgeCompileConfig(_skip_dim_order=True),
        "edge config, preserved": lambda: EdgeCompileConfig(preserve_ops=[torch.ops.aten.hardswish.default]),
        "backend config": ExecutorchBackendConfig,
        "backend config, no planned inputs": lambda: ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False)
        ),
        "memory plan": MemoryPlanningPass,
        "memory plan, naive": lambda: MemoryPlanningPass(memory_planning_algo=suite([naive])),
        "memory plan, alignment": lambda: MemoryPlanningPass(alignment=32),
        "pass": SpecPropPass,
        "other pass": QuantFusionPass,
        "xnnpack": XnnpackPartitioner,
        "xnnpack, per op": lambda: XnnpackPartitioner(per_op_mode=True),
        "xnnpack, static only": lambda: XnnpackPartitioner(config_precisions=ConfigPrecisionType.STATIC_QUANT),
        "vulkan": VulkanPartitioner,
        "vulkan, dynamic": lambda: VulkanPartitioner({"require_dynamic_shapes": True}),
        "core ml": CoreMLPartitioner,
        "core ml 17": lambda: coreml(coremltools.target.iOS17),
        "core ml 18": lambda: coreml(coremltools.target.iOS18),
        "quantizer": XNNPACKQuantizer,
        "quantizer, per tensor": quantizer,
        "quantizer, per channel": lambda: quantizer(is_per_channel=True),
        "quantizer, dynamic": lambda: quantizer(is_per_channel=True, is_dynamic=True),
        "recipe type": lambda: XNNPackRecipeType.FP32,
        "recipe": lambda: ExportRecipe.get_recipe(XNNPackRecipeType.FP32),
        "recipe int8": lambda: ExportRecipe.get_recipe(XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL),
        "torchao config": Int8DynamicActivationIntxWeightConfig,
        "dynamic shapes": lambda: {"x": {0: Dim("batch", min=1, max=8)}},
        "edge operator": lambda: edge_ops.edge.aten.add.Tensor,
        "other edge operator": lambda: edge_ops.edge.aten.add.Scalar,
        "set of many": lambda: {torch.float32, torch.ops.aten.add.Tensor, "a", ("b", 1), frozenset({2, "c"})},
        "graph module": _graph_module,
        "exported module": _exported_module,
        "parametrized": _parametrized,
    }


def _graph_module() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))


def _exported_module() -> Any:
    import torch

    torch.manual_seed(0)
    shapes = {"input": {0: torch.export.Dim.AUTO}}
    return torch.export.export(torch.nn.Linear(2, 2), (torch.ones(4, 2),), dynamic_shapes=shapes).module()


def _parametrized() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))


def main() -> None:
    """Print what was asked for."""
    from etgraph.identity import Undescribable, describe, describe_module

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.dont_write_bytecode = True
    said: dict[str, Any] = {}
    mode, *names = sys.argv[1:]
    if mode == "models":
        for directory in names:
            try:
                described = describe_module(model_in(directory))
                said[directory] = {"digest": described.digest, "parts": described.parts()}
            except Undescribable as why:
                said[directory] = {"digest": None, "why": str(why)}
    else:
        for name, make in real_objects().items():
            described = describe(make(), "option")
            said[name] = {"digest": described.digest, "again": describe(make()).digest}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
