"""`etgraph demo`: the main job as one's first minute."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from etgraph.cli.demo_model import make

from .conftest import Etgraph, check_golden, normalised


def test_demo_shows_the_whole_way(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("demo")
    assert (answer.code, answer.err) == (0, "")
    words = etgraph_cli("plan", "etgraph.cli.demo_model:make", "--recipe", "xnnpack_fp32").out
    assert words in answer.out
    check_golden("demo", normalised(answer.out.replace(words, "(as etgraph plan says it)\n")))
    assert (folder / "demo.pte").read_bytes()[4:8] == b"ET12"


@pytest.mark.slow
def test_commands_that_demo_hints_at_work(folder: Path, etgraph_cli: Etgraph) -> None:
    """Each as printed, the file of an exported program apart, which is the user's own."""
    said = etgraph_cli("demo").out
    whole = (folder / "demo.pte").read_bytes()
    hints = [line.partition("etgraph ")[2].split() for line in said.splitlines() if "  etgraph " in line]
    assert len(hints) == 5
    for hint in hints[1:]:
        answer = etgraph_cli(*hint)
        assert answer.code == 0, answer.err
    assert (folder / "demo.pte").read_bytes() == whole


@pytest.mark.slow
def test_demo_as_data(etgraph_cli: Etgraph) -> None:
    found = etgraph_cli("demo", "-o", "d.pte", "--json").document
    assert found["verification"]["passed"] is True
    assert found["output"]["path"] == "d.pte"


def test_model_is_the_same_every_time_and_leaves_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, inputs = make()
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(4)
    second, _ = make()
    assert torch.equal(first(*inputs), second(*inputs))
    assert not first.training
    assert float(first.stem[0][1].running_mean.abs().max()) > 0
