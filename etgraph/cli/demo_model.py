"""The bundled model of `etgraph demo`: convolutions with batch norm, then one attention block, on 32x32 images."""

from __future__ import annotations

from typing import Any

__all__ = ["make"]


def make() -> tuple[Any, tuple[Any, ...]]:
    """Return the model in eval mode with random weights from seed 0, and one image; the same every time."""
    import torch
    from torch import nn

    class SmallVision(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy here
        """Two strided convolutions give 64 tokens of 32 channels; they attend to one another and are averaged."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(_conv(nn, 3, 16), _conv(nn, 16, 32))
            self.norm = nn.LayerNorm(32)
            self.qkv = nn.Linear(32, 96)
            self.mix = nn.Linear(32, 32)
            self.head = nn.Linear(32, 10)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            tokens = self.stem(image).flatten(2).transpose(1, 2)
            q, k, v = self.qkv(self.norm(tokens)).chunk(3, dim=-1)
            weights = torch.softmax(q @ k.transpose(1, 2) / 32**0.5, dim=-1)
            tokens = tokens + self.mix(weights @ v)
            scores: torch.Tensor = self.head(tokens.mean(1))
            return scores

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SmallVision()
        with torch.no_grad():
            # A few batches in training mode, so that the batch norms hold statistics and not their start values.
            for _ in range(4):
                model(torch.randn(8, 3, 32, 32))
        return model.eval(), (torch.randn(1, 3, 32, 32),)


def _conv(nn: Any, inputs: int, outputs: int) -> Any:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )
