"""Small networks that codec tests save and load; each is a few kilobytes and seeded."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.map import map as torch_map
from torch.export import Dim


class Activations(nn.Module):
    """Convolution, batch norm and activations with arguments that are not the defaults."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.norm(self.conv(x))
        return (
            F.hardtanh(y, 0.0, 6.0),
            F.relu6(y),
            F.leaky_relu(y, 0.2),
            F.elu(y, 0.5),
            F.softmax(y, -1),
            y.clamp(-1.5, 2.0),
        )


class Recurrent(nn.Module):
    """An LSTM and a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


class Branches(nn.Module):
    """Control flow: cond with a linear layer in a branch, and map."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: self.linear(x) - 1, (x,))
        return torch_map(lambda row: row.sin() + 1, y)


class Loop(nn.Module):
    """A while loop over a counter and a tensor."""

    def forward(self, n, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda n, x: n < 5, lambda n, x: (n + 1, x * 1.5), (n, x))


class Tied(nn.Module):
    """Tied weights and buffers that are views: transposed, expanded, and a slice of a larger tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("transposed", torch.arange(6.0).view(2, 3).t())
        self.register_buffer("expanded", torch.arange(3.0).expand(4, 3))
        self.register_buffer("sliced", torch.randn(64, 64)[3:5, 7:15])

    def forward(self, i):
        return self.out(self.embed(i)), self.transposed * 2, self.expanded + 1, self.sliced - 1


class Cache(nn.Module):
    """A buffer that is updated, one that is not persistent, and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kv", torch.zeros(2, 8))
        self.register_buffer("scale", torch.full((8,), 3.0), persistent=False)
        self.linear = nn.Linear(8, 8)

    def forward(self, x, at):
        self.kv.index_copy_(0, at, self.linear(x))
        return self.kv.sum(0) * self.scale + torch.tensor([1.0, 2.0] * 4)


class Nested(nn.Module):
    """Nested and keyword inputs, an int, an optional left None, and a dynamic batch."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, inputs, *, mask=None, times=2):
        y = self.linear(inputs["a"]) * times + inputs["b"][0]
        return {"y": y.reshape(-1), "rest": (y + 1, mask)}


class Sizes(nn.Module):
    """Sizes that depend on one another."""

    def forward(self, x, y):
        return torch.cat([x[:, 1:], y]) * x.shape[0]


class Types(nn.Module):
    """float16, bfloat16 and int64, and a result without dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.randn(3).half())
        self.register_buffer("brain", torch.randn(3).bfloat16())

    def forward(self, a, b, i):
        return a + self.low, b * self.brain, (i + 1).sum()


class Linear(nn.Module):
    """One layer; for what the network does not matter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return F.relu(self.linear(x))


def cases() -> dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]]:
    """Name to network, inputs, keyword inputs and dynamic shapes."""
    torch.manual_seed(0)
    r, any_size = torch.randn, {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    batch = Dim("batch", min=1, max=9)
    return {
        "activations": (Activations(), (r(2, 3, 6, 6),), {}, None),
        "recurrent": (Recurrent(), (r(2, 5, 4),), {}, None),
        "branches": (Branches(), (r(2, 4),), {}, None),
        "loop": (Loop(), (torch.tensor(0), r(3)), {}, None),
        "tied": (Tied(), (torch.tensor([1, 2]),), {}, None),
        "cache": (Cache(), (r(1, 8), torch.tensor([1])), {}, None),
        "nested": (
            Nested(),
            ({"a": r(3, 4), "b": (r(3, 4),)},),
            {"mask": None, "times": 3},
            {"inputs": {"a": {0: batch}, "b": ({0: batch},)}, "mask": None, "times": None},
        ),
        "sizes": (Sizes(), (r(4, 5), r(3, 4)), {}, (any_size, any_size)),
        "types": (Types(), (r(3).half(), r(3).bfloat16(), torch.tensor([5, 6])), {}, None),
        "linear": (Linear(), (r(2, 8),), {}, None),
    }


def exported(name: str) -> Any:
    """Export a network of `cases` in eval mode, without gradients: with them its buffer update cannot be emitted."""
    module, args, kwargs, shapes = cases()[name]
    with torch.no_grad():
        return torch.export.export(module.eval(), args, kwargs, dynamic_shapes=shapes)
