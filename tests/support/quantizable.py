"""Small networks to quantize, their inputs, and how far two results are apart."""

from __future__ import annotations

import math

import torch
from torch import nn

import etgraph


class Net(nn.Module):
    """Convolution, batch norm, pooling and a linear layer; counts its calls, takes a keyword, returns a structure."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, *, extra, scale=None):
        self.calls.add_(1)
        pooled = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return {"scores": self.head(pooled) + extra["bias"], "more": (pooled,)}


class Small(nn.Module):
    """Two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(32, 64)
        self.two = nn.Linear(64, 32)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


class Coder(nn.Module):
    """Two methods and no forward."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(16, 8)
        self.up = nn.Linear(8, 16)

    def encode(self, x):
        return torch.relu(self.down(x))

    def decode(self, z, *, scale):
        return {"x": self.up(z) * scale}


class Trainable(nn.Module):
    """Convolution, batch norm, dropout and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.conv(x))).mean((2, 3))))


def seeded(cls: type[nn.Module]) -> nn.Module:
    """Make a network in eval mode with weights of seed 0."""
    torch.manual_seed(0)
    return cls().eval()


def net_inputs(batch: int, seed: int = 0) -> etgraph.Inputs:
    """Inputs of `Net`."""
    random = torch.Generator().manual_seed(seed)
    return etgraph.Inputs(
        torch.randn(batch, 3, 8, 8, generator=random), extra={"bias": torch.randn(batch, 4, generator=random)}
    )


def net_shapes() -> dict[str, object]:
    """Dynamic shapes of `Net`: any batch up to 16."""
    batch = torch.export.Dim("batch", min=1, max=16)
    return {"x": {0: batch}, "extra": {"bias": {0: batch}}}


def small_inputs(count: int = 8) -> list[tuple[torch.Tensor]]:
    """Samples for `Small`."""
    random = torch.Generator().manual_seed(1)
    return [(torch.randn(4, 32, generator=random),) for _ in range(count)]


def snr(wanted: torch.Tensor, got: torch.Tensor) -> float:
    """Signal-to-noise ratio in dB."""
    noise = float((wanted - got).square().sum())
    return math.inf if noise == 0 else 10 * math.log10(float(wanted.square().sum()) / noise)


def operators(program: torch.export.ExportedProgram) -> list[str]:
    """The operators of a program, by name."""
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def xnnpack_quantizer(**settings: bool):
    """XNNPACK's quantizer with symmetric settings."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    return XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**settings))
