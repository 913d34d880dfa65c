"""`etgraph run --trace-numerics`."""

from __future__ import annotations

from pathlib import Path

from .conftest import Etgraph

MOODY = """
import torch

class Moody(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        return y * (1.0 if torch.compiler.is_exporting() else 1.5)

def made():
    return Moody(), (torch.ones(4),)
"""


def test_what_is_right_is_shown_kind_by_kind(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "--recipe", "portable", "--trace-numerics")
    assert answer.code == 0, answer.err
    lines = [line.split() for line in answer.out.splitlines() if line.endswith("  ok")]
    assert [line[0] for line in lines] == ["module", "exported", "edge", "executorch"]
    assert "computed on the example inputs (1 sample)" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 90


def test_what_goes_wrong_is_named_the_program_is_written_and_the_exit_code_is_1(
    folder: Path, etgraph_cli: Etgraph
) -> None:
    (folder / "moody.py").write_text(MOODY)
    arguments = ("run", "moody.py:made", "--recipe", "portable", "--trace-numerics", "--no-cache")
    answer = etgraph_cli(*arguments)
    assert answer.code == 1
    assert "first bad: exported, made by torch_export, method forward" in answer.out
    assert "Traceback" not in answer.err
    assert (folder / "made.pte").exists()
    document = etgraph_cli(*arguments, "--json").document
    assert document["numerics"]["within"] is False
    bad = [stage for stage in document["numerics"]["stages"] if stage["first_bad"]]
    assert [stage["kind"] for stage in bad] == ["exported"]
    assert bad[0]["outputs"][0]["source"]["absolute"] == 1.0


def test_it_is_about_one_way(etgraph_cli: Etgraph) -> None:
    targets = ("--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-xnnpack-fp32")
    answer = etgraph_cli("run", "net.py:make", *targets, "--trace-numerics")
    assert answer.code == 2
    assert "--trace-numerics is about one target" in answer.err
