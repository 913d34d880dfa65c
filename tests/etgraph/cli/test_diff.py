"""`etgraph diff`: exit codes as of diff, files and code, words and data."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import NET, Etgraph


@pytest.fixture
def two(folder: Path, etgraph_cli: Etgraph) -> None:
    """Two edge programs, of which the second has another operator, and a copy of the first."""
    (folder / "other.py").write_text(NET.replace(".relu()", ".sigmoid()"))
    for source, out in (("net.py:make", "a.edge.etg"), ("other.py:make", "b.edge.etg")):
        assert etgraph_cli("run", source, "--to", "edge", "-o", out).code == 0
    (folder / "copy.edge.etg").write_bytes((folder / "a.edge.etg").read_bytes())


def test_exit_codes_are_those_of_diff(two: None, etgraph_cli: Etgraph) -> None:
    same = etgraph_cli("diff", "a.edge.etg", "copy.edge.etg")
    assert same.code == 0
    assert "are equal" in same.out
    other = etgraph_cli("diff", "a.edge.etg", "b.edge.etg")
    assert other.code == 1
    assert "- forward: aten.relu.default" in other.out
    assert "+ forward: aten.sigmoid.default" in other.out
    quiet = etgraph_cli("diff", "a.edge.etg", "b.edge.etg", "-q")
    assert (quiet.code, quiet.out) == (1, "")


def test_trouble_is_2_without_a_traceback(folder: Path, two: None, etgraph_cli: Etgraph) -> None:
    (folder / "noise.pte").write_bytes(b"noise")
    for b in ("nothing.pte", "noise.pte", "net.py:nothing"):
        answer = etgraph_cli("diff", "a.edge.etg", b)
        assert answer.code == 2, b
        assert "Traceback" not in answer.err


def test_data(two: None, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("diff", "a.edge.etg", "b.edge.etg", "--json")
    assert answer.code == 1
    assert answer.document["same"] is False
    assert {change["what"] for change in answer.document["changes"]} == {"aten.relu.default", "aten.sigmoid.default"}


def test_two_versions_of_a_folder_import_each_their_own_neighbours(folder: Path, etgraph_cli: Etgraph) -> None:
    for name, number in (("old", 1.0), ("new", 2.0)):
        (folder / name).mkdir()
        (folder / name / "constants.py").write_text(f"SCALE = {number}\n")
        (folder / name / "model.py").write_text(
            "import torch\nfrom constants import SCALE\n"
            "class M(torch.nn.Module):\n"
            "    def forward(self, x):\n        return x * SCALE\n"
            "def make():\n    return M(), (torch.ones(2),)\n"
        )
    answer = etgraph_cli("diff", "old/model.py:make", "new/model.py:make")
    assert answer.code == 1
    assert "1.0" in answer.out
    assert "2.0" in answer.out
