"""GPUs of Android phones: Vulkan, and XNNPACK for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.vulkan import vulkan_fp16, vulkan_fp32
from stages.recipes.xnnpack import xnnpack_fp32

_BACKENDS = ("VulkanBackend", "XnnpackBackend")


@etgraph.target("android-arm64-vulkan-fp16", backends=_BACKENDS, snr=40)
def fp16() -> etgraph.Recipe:
    """Vulkan in fp16, XNNPACK in fp32 for the rest."""
    return etgraph.get_recipe([vulkan_fp16(), xnnpack_fp32()])


@etgraph.target("android-arm64-vulkan-fp32", backends=_BACKENDS, snr=80)
def fp32() -> etgraph.Recipe:
    """Vulkan in fp32, XNNPACK for the rest."""
    return etgraph.get_recipe([vulkan_fp32(), xnnpack_fp32()])
