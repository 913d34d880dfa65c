"""What codec tests share: making artifacts, round trips, and bytes of the final program."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from codec_models import exported
from torch import nn

from etgraph import container
from etgraph.artifact import Edge, Exported, Lowered
from stages.codec import decode, encode

HERE = Path(__file__).resolve().parent
#: The repository.
ROOT = HERE.parent.parent


def partitioners(backend: str) -> list[Any]:
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        return [XnnpackPartitioner()]
    if backend == "vulkan":
        from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

        return [VulkanPartitioner()]
    if backend == "coreml":
        from executorch.backends.apple.coreml.partition import CoreMLPartitioner

        return [CoreMLPartitioner()]
    return []


def config() -> Any:
    from executorch.exir import EdgeCompileConfig

    return EdgeCompileConfig(_check_ir_validity=False)


def artifact(name: str, kind: str, backend: str = "xnnpack") -> Any:
    """One of `codec_models.cases` at a kind."""
    return from_exported(exported(name), kind, backend)


def from_exported(program: Any, kind: str, backend: str = "xnnpack") -> Any:
    from executorch.exir import to_edge, to_edge_transform_and_lower

    if kind == "exported":
        return Exported(methods={"forward": program})
    if kind == "aten":
        return Exported(methods={"forward": program.run_decompositions()})
    if kind == "edge":
        return Edge(methods={"forward": to_edge(program, compile_config=config()).exported_program()})
    lowered = to_edge_transform_and_lower(program, partitioner=partitioners(backend), compile_config=config())
    return Lowered(methods={"forward": lowered.exported_program()})


def final_bytes(source: Any, backend: str) -> bytes:
    """The `.pte` that an artifact becomes; the artifact is left as it was."""
    import executorch.kernels.quantized  # noqa: F401
    from executorch.exir import EdgeProgramManager, to_edge_transform_and_lower

    if source.kind in ("exported", "quantized"):
        lowered = to_edge_transform_and_lower(
            dict(source.methods), partitioner=partitioners(backend), compile_config=config()
        )
        return bytes(lowered.to_executorch().buffer)
    with torch.no_grad():
        manager = EdgeProgramManager({k: copy.deepcopy(v) for k, v in source.methods.items()}, {}, config())
    if source.kind == "edge":
        for partitioner in partitioners(backend):
            manager = manager.to_backend(partitioner)
    return bytes(manager.to_executorch().buffer)


def save(source: Any, path: Path) -> Path:
    container.write(path, *encode(source))
    return path


def load(path: Path) -> Any:
    opened = container.read(path)
    return decode(opened.document, opened)


def in_new_process(code: str, *arguments: Any) -> str:
    """Run code in a process of its own, with `codec_support` in reach; give what it printed last."""
    head = f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(ROOT)!r}]\n"
    command = [sys.executable, "-W", "ignore", "-c", head + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


class Net(nn.Module):
    """Convolution, batch norm, relu6 and a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(nn.functional.relu6(self.norm(self.conv(x))).mean((2, 3)))


def quantizable_inputs():
    torch.manual_seed(1)
    return (torch.randn(2, 3, 6, 6),)


def prepared(qat):
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e, prepare_qat_pt2e

    torch.manual_seed(0)
    module = Net().train(qat)
    program = torch.export.export(module, quantizable_inputs()).module(check_guards=False)
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True, is_qat=qat))
    graph = (prepare_qat_pt2e if qat else prepare_pt2e)(program, quantizer)
    graph(*quantizable_inputs())
    return graph


def converted(graph):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return torch.export.export(convert_pt2e(graph), quantizable_inputs())
