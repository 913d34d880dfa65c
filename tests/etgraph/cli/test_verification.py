"""`etgraph run --verify`: every output counts, and by the errors alone where no target says more."""

from __future__ import annotations

from pathlib import Path

from .conftest import Etgraph

HALF_RIGHT = """
import torch

class HalfRight(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        return y, y * (1.0 if torch.compiler.is_exporting() else 1.5)

def made():
    return HalfRight(), (torch.ones(4),)
"""


def test_one_wrong_output_of_two_is_a_failure_and_the_program_is_written(folder: Path, etgraph_cli: Etgraph) -> None:
    """It is off by a third, 9.5 dB: what a ratio that nobody asked for would let pass."""
    (folder / "half.py").write_text(HALF_RIGHT)
    answer = etgraph_cli("run", "half.py:made", "--recipe", "portable", "--verify", "--no-cache", "--json")
    assert answer.code == 1
    found = answer.document["verification"]
    assert (found["done"], found["passed"], found["tolerance"]["snr"]) == (True, False, None)
    assert [one["passed"] for one in found["methods"]["forward"]["outputs"]] == [True, False]
    assert (folder / "made.pte").exists()
