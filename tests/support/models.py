"""Small real models, seed 0, with their example inputs; and small configurations of transformers' classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import etgraph


class ConvNet(nn.Module):
    """Convolution, batch norm, ReLU6 and pooling: what ReLU6 networks are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu6(self.norm(self.conv(x)))
        x = F.hardtanh(self.depthwise(x), 0.0, 6.0)
        return self.head(x.mean((2, 3)))


class Autoencoder(nn.Module):
    """Two methods and no forward."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(6, 3)
        self.up = nn.Linear(3, 6)

    def encode(self, x):
        return torch.tanh(self.down(x))

    def decode(self, z, *, scale):
        return {"x": self.up(z) * scale, "z": z}


class Cache(nn.Module):
    """A buffer that is written to in forward, as a key-value cache is."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.register_buffer("keys", torch.zeros(1, 8, 4))
        self.register_buffer("seen", torch.full((1,), 3.0))

    def forward(self, x, position):
        self.keys.index_copy_(1, position, self.proj(x))
        self.seen.add_(1.0)
        return self.keys.sum(1) + self.seen


class Attention(nn.Module):
    """A transformer block with tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.unembed = nn.Linear(8, 16, bias=False)
        self.unembed.weight = self.embed.weight

    def forward(self, tokens):
        return F.softmax(self.unembed(self.block(self.embed(tokens))), -1)


class Recurrent(nn.Module):
    """An LSTM and a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.gru = nn.GRU(6, 5, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


class Branching(nn.Module):
    """torch.cond with linear layers in its branches."""

    def __init__(self) -> None:
        super().__init__()
        self.yes = nn.Linear(4, 4)
        self.no = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(torch.cond(x.sum() > 0, lambda x: self.yes(x), lambda x: self.no(x) + 1.0, (x,)))


def made(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return a model in eval mode, its example inputs, and further arguments of `etgraph.run`; seed 0."""
    torch.manual_seed(0)
    model, inputs, rest = MODELS[name]()
    return model.eval(), inputs, rest


def _dynamic() -> tuple[Any, Any, dict[str, Any]]:
    batch = torch.export.Dim("batch", min=1, max=8)
    return nn.Sequential(nn.Linear(4, 3), nn.GELU()), (torch.randn(2, 4),), {"dynamic_shapes": ({0: batch},)}


MODELS = {
    "conv": lambda: (ConvNet(), (torch.randn(1, 3, 10, 10),), {}),
    "methods": lambda: (
        Autoencoder(),
        {"encode": (torch.randn(2, 6),), "decode": etgraph.Inputs(torch.randn(2, 3), scale=torch.tensor(2.0))},
        {"constant_methods": {"width": 6}},
    ),
    "cache": lambda: (
        Cache(),
        [(torch.randn(1, 2, 4), torch.tensor([0, 1])), (torch.randn(1, 2, 4), torch.tensor([5, 2]))],
        {},
    ),
    "attention": lambda: (Attention(), (torch.randint(16, (1, 5)),), {}),
    "recurrent": lambda: (Recurrent(), (torch.randn(1, 3, 4),), {}),
    "branching": lambda: (Branching(), [(torch.ones(2, 4),), (-torch.ones(2, 4),)], {}),
    "dynamic": _dynamic,
}


def network(name: str) -> tuple[Any, Any]:
    """Return a small configuration of one of transformers' classes, with random weights, and its inputs."""
    import transformers

    torch.manual_seed(0)
    if name == "mobilenet":
        config = transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.35)
        return transformers.MobileNetV2ForImageClassification(config).eval(), (torch.randn(1, 3, 32, 32),)
    if name == "vit":
        config = transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32
        )
        return transformers.ViTForImageClassification(config).eval(), (torch.randn(1, 3, 32, 32),)
    if name == "bert":
        config = transformers.BertConfig(
            vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
        )
        return transformers.BertModel(config).eval(), (torch.randint(64, (1, 8)),)
    raise KeyError(name)
