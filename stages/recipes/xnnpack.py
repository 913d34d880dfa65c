"""XNNPACK, the CPU backend of ExecuTorch."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.recipes import Deferred, Through


@etgraph.recipe("xnnpack_fp32", backends=("XnnpackBackend",))
def xnnpack_fp32() -> etgraph.Recipe:
    """XNNPACK in fp32, portable kernels for what it does not take. The default."""
    lowering = {"compile_config": Deferred(_compile_config), "partitioners": Deferred(_partitioners)}
    return etgraph.Recipe(
        name="xnnpack_fp32",
        stages={
            "to_edge": lowering,
            "to_backend": {"partitioners": Deferred(_partitioners)},
            "to_edge_transform_and_lower": lowering,
            "to_executorch": {"backend_config": Deferred(_backend_config)},
        },
        through=(Through("lowered", "delegates to XNNPACK", instead="portable"),),
        backends=("XnnpackBackend",),
    )


def _partitioners() -> list[Any]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return [XnnpackPartitioner()]


def _compile_config() -> Any:
    from executorch.backends.xnnpack.utils.configs import get_xnnpack_edge_compile_config

    return get_xnnpack_edge_compile_config()


def _backend_config() -> Any:
    from executorch.backends.xnnpack.utils.configs import get_xnnpack_executorch_backend_config

    return get_xnnpack_executorch_backend_config()
