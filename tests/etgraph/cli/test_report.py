"""`etgraph run --report`: real runs, failures, several targets, and paths that cannot be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pages import Page

from .conftest import Etgraph


def test_a_real_run_in_every_form(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "--verify", "--report", "run.html")
    assert answer.code == 0, answer.err
    assert "report in run.html" in answer.err
    page = Page((folder / "run.html").read_text())
    assert page.loaded() == []
    for words in ("net.py:make", "Delegation", "XnnpackBackend", "Outputs against the source", "ok", "Size"):
        assert words in page.text
    assert "etgraph run net.py:make --verify --report run.html" in page.text
    assert "etgraph inspect make.pte" in page.text
    # Options that a recipe makes late are shown as what they are.
    assert any(text.startswith("[XnnpackPartitioner(") for text in page.text)
    assert etgraph_cli("run", "net.py:make", "--report", "run.md").code == 0
    assert "| torch_export | module → exported | reused |" in (folder / "run.md").read_text()
    assert etgraph_cli("run", "net.py:make", "--report", "run.json", "--json").code == 0
    (run,) = json.loads((folder / "run.json").read_text())["runs"]
    assert run["files"] == [{"path": "make.pte", "bytes": (folder / "make.pte").stat().st_size}]
    assert sum(part["bytes"] for part in run["sizes"]) == run["files"][0]["bytes"]
    assert run["delegation"]["forward"]["backends"][0]["name"] == "XnnpackBackend"


def test_a_failed_run_has_its_report_with_address_and_way_on(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--report", "run.html")
    assert answer.code == 1
    assert answer.err.startswith("report in run.html\nerror: stage to_edge")
    said = " ".join(Page((folder / "run.html").read_text()).text)
    assert "Failed at to_edge, method forward, node erfinv" in said
    assert "return torch.erfinv(y)" in said
    assert "To go on from the last good artifact" in said


def test_a_path_that_cannot_be_written_is_refused_before_any_work(folder: Path, etgraph_cli: Etgraph) -> None:
    for path, said in (("run.txt", ".txt is not one of"), ("no/run.html", "the folder no does not exist")):
        answer = etgraph_cli("run", "net.py:make", "--report", path)
        assert answer.code == 2
        assert said in answer.err
    answer = etgraph_cli("run", "net.py:make", "--report", "run.html", "--dry-run")
    assert (answer.code, "--report is about a run" in answer.err) == (2, True)
    assert not (folder / "make.pte").exists()


def test_a_report_that_cannot_be_written_after_all_loses_no_program(
    folder: Path, etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes away while the run is under way."""
    (folder / "pages").mkdir()
    import etgraph.report

    written = etgraph.report.write_report

    def late(outcome, path, told):
        os.rmdir(folder / "pages")
        return written(outcome, path, told)

    monkeypatch.setattr(etgraph.report, "write_report", late)
    answer = etgraph_cli("run", "net.py:make", "--recipe", "portable", "--report", "pages/run.html")
    assert answer.code == 1
    assert "warning: the report could not be written: report pages/run.html cannot be written" in answer.err
    assert "wrote make.pte" in answer.out
    assert (folder / "make.pte").exists()


def test_several_targets_are_one_report(folder: Path, etgraph_cli: Etgraph) -> None:
    targets = ("--target", "linux-x86_64-xnnpack-fp32", "--target", "macos-arm64-xnnpack-fp32")
    answer = etgraph_cli("run", "net.py:make", *targets, "--report", "run.json", "-o", "out", "--verify")
    assert answer.code == 0, answer.err
    document = json.loads((folder / "run.json").read_text())
    assert [run["target"] for run in document["runs"]] == ["linux-x86_64-xnnpack-fp32", "macos-arm64-xnnpack-fp32"]
    assert all(run["verification"]["passed"] for run in document["runs"])
    assert [Path(run["files"][0]["path"]).parent.name for run in document["runs"]] == ["out", "out"]


def test_edge_is_not_said_to_be_undelegated(folder: Path, etgraph_cli: Etgraph) -> None:
    """Nothing is delegated yet at edge; that is no result."""
    assert etgraph_cli("run", "net.py:make", "--to", "edge", "--report", "run.html").code == 0
    page = Page((folder / "run.html").read_text())
    assert "Delegation" not in page.text
    assert "delegated" not in page.text
    assert "Size" in page.text


MIXED = """
import torch

class Mixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.fmod(self.head(x), 2.0)

def make():
    return Mixed().eval(), (torch.randn(2, 4),)
"""


def test_why_not_the_rest_is_in_the_report_where_something_is_left(folder: Path, etgraph_cli: Etgraph) -> None:
    (folder / "mixed.py").write_text(MIXED)
    assert etgraph_cli("run", "mixed.py:make", "--report", "run.html").code == 0
    page = Page((folder / "run.html").read_text())
    assert "Why not the rest" in page.text
    assert any("aten.fmod" in text for text in page.text)
    assert any("return torch.fmod(self.head(x), 2.0)" in text for text in page.text)
