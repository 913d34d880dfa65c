"""`etgraph inspect --model-explorer`: a file for each program, and folders that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Etgraph


def test_graphs_are_written_beside_what_is_told(folder: Path, etgraph_cli: Etgraph) -> None:
    pytest.importorskip("model_explorer")
    assert etgraph_cli("run", "net.py:make", "--to", "exported").code == 0
    answer = etgraph_cli("inspect", "make.exported.etg", "--model-explorer", "a/b")
    assert answer.code == 0, answer.err
    assert answer.err == ("graphs in a/b/make.exported.json; to look at them: model-explorer a/b/make.exported.json\n")
    assert "method forward" in answer.out
    written = json.loads((folder / "a/b/make.exported.json").read_text())
    assert (written["label"], [graph["id"] for graph in written["graphs"]]) == ("make.exported", ["forward"])
    found = etgraph_cli("inspect", "make.exported.etg", "--model-explorer", "a", "--json").document
    assert found["model_explorer"] == "a/make.exported.json"


def test_what_cannot_be_shown_or_written_is_said(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("inspect", "net.py:make", "--model-explorer", "net.py")
    assert answer.code == 2
    assert "--model-explorer net.py: the folder cannot be made" in answer.err
    answer = etgraph_cli("inspect", "net.py:make", "--model-explorer", "graphs")
    assert answer.code == 2
    assert "a program at module has no graph to show yet" in answer.err
    assert answer.out == ""
