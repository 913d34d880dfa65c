"""`etgraph plan`: the same way that `run` takes, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Etgraph, check_golden


def test_words(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("plan", "net.py:make", "--to", "edge", "--recipe", "xnnpack_fp32")
    assert (answer.code, answer.err) == (0, "")
    check_golden("plan_edge", answer.out)


def test_data(etgraph_cli: Etgraph) -> None:
    """`--json` and `--format json` are one document, with the same plan as `run --json`."""
    arguments = ("net.py:make", "--recipe", "portable", "--to", "exported")
    first = etgraph_cli("plan", *arguments, "--json")
    second = etgraph_cli("plan", *arguments, "--format", "json")
    assert first.document == second.document
    assert first.document["plan"]["kinds"] == ["module", "exported"]
    assert first.document["plan"] == etgraph_cli("run", *arguments, "--json").document["plan"]


@pytest.mark.parametrize(("form", "first"), [("mermaid", "flowchart LR"), ("dot", "digraph plan {")])
def test_pictures(etgraph_cli: Etgraph, form: str, first: str) -> None:
    answer = etgraph_cli("plan", "net.py:make", "--format", form)
    assert answer.code == 0
    assert answer.out.splitlines()[0] == first
    assert "to_edge_transform_and_lower" in answer.out


def test_nothing_is_run_or_written(folder: Path, etgraph_cli: Etgraph) -> None:
    """A model that cannot be traced can be planned."""
    assert etgraph_cli("plan", "net.py:broken").code == 0
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"net.py"}


def test_forced_way(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("plan", "net.py:make", "--path", "split", "--json")
    assert answer.document["plan"]["kinds"] == ["module", "exported", "edge", "lowered", "executorch"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "yaml"), "--format yaml is not one of text, json, mermaid, dot"),
        (("--format", "dot", "--json"), "--format dot and --json"),
        (("--to", "prepared"), "prepared"),
        (("--recipe", "nothing"), "there is no recipe 'nothing'"),
    ],
)
def test_what_cannot_be_planned_is_refused(etgraph_cli: Etgraph, arguments: tuple[str, ...], said: str) -> None:
    answer = etgraph_cli("plan", "net.py:make", *arguments)
    assert answer.code == 2
    assert said in answer.out + answer.err
