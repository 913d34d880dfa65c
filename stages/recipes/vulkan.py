"""Vulkan, ExecuTorch's backend for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through


@etgraph.recipe("vulkan_fp32", backends=("VulkanBackend",))
def vulkan_fp32() -> etgraph.Recipe:
    """Vulkan in fp32."""
    return _on_vulkan("vulkan_fp32", _fp32)


@etgraph.recipe("vulkan_fp16", backends=("VulkanBackend",))
def vulkan_fp16() -> etgraph.Recipe:
    """Vulkan, computing in fp16; inputs and outputs stay fp32."""
    return _on_vulkan("vulkan_fp16", _fp16)


def _on_vulkan(name: str, partitioners: Callable[[], list[Any]]) -> etgraph.Recipe:
    lowering = {"compile_config": Deferred(_compile_config), "partitioners": Deferred(partitioners)}
    return etgraph.Recipe(
        name=name,
        stages={
            "to_edge": lowering,
            "to_backend": {"partitioners": Deferred(partitioners)},
            "to_edge_transform_and_lower": lowering,
        },
        through=(Through("lowered", "delegates to Vulkan", instead="portable"),),
        backends=("VulkanBackend",),
    )


def _compile_config() -> Any:
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(_check_ir_validity=False)


def _fp32() -> list[Any]:
    return _partitioners(force_fp16=False)


def _fp16() -> list[Any]:
    return _partitioners(force_fp16=True)


def _partitioners(**options: Any) -> list[Any]:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    return [VulkanPartitioner(options)]
