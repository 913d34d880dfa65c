"""`etgraph doctor`: this environment, and environments that lack something."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from etgraph.cli import doctor
from etgraph.registry import registry

from .conftest import Etgraph


def test_this_environment_can_do_the_main_job(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("doctor")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == "the main job can work here"
    found = etgraph_cli("doctor", "--json").document
    assert (found["ok"], found["problems"]) == (True, [])
    versions = {row["name"]: row for row in found["versions"]}
    for name in ("torch", "executorch", "torchao", "etgraph"):
        assert versions[name]["version"] == metadata.version(name)
        assert versions[name]["fits"]
    assert "XnnpackBackend" in found["runtime"]["backends"]
    assert found["runtime"]["kernels"] > 100
    assert {b["name"]: b["lowers_here"] for b in found["backends"]}["XNNPACK"] is True
    assert found["cache"]["usable"] is True
    assert ("stages", "") in [(plugin["name"], plugin["problem"]) for plugin in found["plugins"]]


def test_looking_for_qnn_imports_nothing_of_it(etgraph_cli: Etgraph) -> None:
    """Importing its recipes starts a download."""
    etgraph_cli("doctor")
    assert not [name for name in sys.modules if name.startswith("executorch.backends.qualcomm")]


def test_version_out_of_range_is_a_problem_with_its_cure(etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.installed_version
    monkeypatch.setattr(doctor, "installed_version", lambda name: "2.3.0" if name == "torch" else real(name))
    answer = etgraph_cli("doctor")
    assert answer.code == 1
    assert 'problem: torch 2.3.0, and <2.15,>=2.13 is needed: pip install "torch<2.15,>=2.13"' in answer.out
    assert "OUT OF RANGE" in answer.out


def test_missing_distribution_is_a_problem(etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.installed_version
    monkeypatch.setattr(doctor, "installed_version", lambda name: None if name == "torchao" else real(name))
    answer = etgraph_cli("doctor", "--json")
    assert answer.code == 1
    assert answer.document["ok"] is False
    assert "torchao is not installed" in answer.document["problems"][0]


def test_runtime_without_xnnpack_is_a_problem(etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load_plugins()
    found = {"platform": "here", "runtime": {"loads": True, "backends": [], "kernels": 3}, "backends": []}
    monkeypatch.setitem(registry.services, "environment", lambda: found)
    answer = etgraph_cli("doctor")
    assert answer.code == 1
    assert "lacks XnnpackBackend" in answer.out


def test_works_where_packaging_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes with executorch; a doctor has to work where that is what is missing."""
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    rows = {row["name"]: row for row in doctor.requirement_rows()}
    assert rows["torch"]["fits"]
    assert "pytest" not in rows


def test_requirements_of_extras_are_not_demanded() -> None:
    names = {row["name"] for row in doctor.requirement_rows()}
    assert "torch" in names
    assert not names & {"pytest", "hypothesis", "ruff", "mypy"}
