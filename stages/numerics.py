"""Run the same inputs through every form of a program, and find the node where the numbers first go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import etgraph
from etgraph.artifact import Artifact, Inputs

if TYPE_CHECKING:
    from etgraph.numerics import Comparison


@etgraph.service("compare")
def compare_stages(
    stages: Sequence[tuple[str, Artifact]],
    samples: Mapping[str, Sequence[Inputs]],
    *,
    inputs: str,
    snr: float | None = None,
) -> Comparison:
    """Execute the same method of several programs on the same inputs, and compare their outputs.

    Args:
        stages: the programs in order, each with what made it; the first is what all are compared with.
        samples: method to inputs.
        inputs: what these inputs are, in words.
        snr: the signal-to-noise ratio in dB that is fit for the precision of the last program.

    Raises:
        UsageError: the first program fails on these inputs.
    """
    from stages.support.comparing import ComparedStages

    return ComparedStages(stages, samples, snr).comparison(inputs)
