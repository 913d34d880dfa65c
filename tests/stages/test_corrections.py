"""Faults of upstream's partitioners that would give a wrong program without a word."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import etgraph


class AfterConv(nn.Module):
    def __init__(self, between):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.between = between

    def forward(self, x):
        return F.softmax(self.between(self.conv(x)), -1)


@pytest.mark.parametrize("path", ["combined", "split"])
@pytest.mark.parametrize("between", [nn.Identity(), nn.ReLU(), nn.AvgPool2d(2)], ids=["conv", "relu", "pool"])
def test_softmax_over_the_width_of_a_convolution_is_right_on_xnnpack(between, path):
    """Case A2; upstream computes it over the channels, off by 0.26."""
    torch.manual_seed(0)
    result = etgraph.run(AfterConv(between).eval(), (torch.randn(1, 3, 8, 8),), path=path, cache=False)
    assert result.verify().max_error < 1e-5


def test_softmax_of_attention_is_delegated_as_before():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    class Scores(nn.Module):
        def forward(self, q, k):
            return F.softmax(q @ k.transpose(2, 3), -1)

    inputs = (torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4))
    exported = torch.export.export(Scores(), inputs)
    by_hand = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
    result = etgraph.run(exported, cache=False)
    assert result.artifact.buffer == by_hand
    assert "softmax" not in str(result.artifact.methods["forward"]["operators"])


def test_the_partitioner_that_is_given_is_not_changed():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    from stages.support.corrections import corrected

    given = XnnpackPartitioner()
    before = dict(given.target_partitioner_configs)
    assert corrected(given) is not given
    assert given.target_partitioner_configs == before
