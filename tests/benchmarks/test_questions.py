"""Each script answers by itself; the real ones on the smallest networks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import QUESTIONS
from benchmarks.report import figures_of

ROOT = Path(__file__).parents[2]


def ask(question, *arguments, expected=0):
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{question}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done


def answered(question, folder, *arguments):
    path = folder / "figures.json"
    ask(question, "--quick", "--json", str(path), *arguments)
    return {figure.what: figure for figure in figures_of(json.loads(path.read_text()))}


def test_planning_is_measured_with_its_exponent(tmp_path):
    figures = answered("planner", tmp_path, "--only", "chain")
    assert [f"a chain of {n} stages" in figures for n in ("10", "100", "1,000")] == [True] * 3
    assert any("power of the number of stages" in what for what in figures)
    assert not any("ladder" in what for what in figures)


def test_starting_is_measured_and_needs_no_torch(tmp_path):
    figures = answered("startup", tmp_path, "--only", "list kinds", "--rounds", "1")
    assert list(figures) == ["etgraph list kinds"]
    assert figures["etgraph list kinds"].note == "torch not imported"


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_unknown_part_is_refused(question):
    assert "nothing here is called nonsense" in ask(question, "--only", "nonsense", expected=1).stderr


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_script_says_what_it_answers(question):
    help_text = ask(question, "--help").stdout
    assert "?" in help_text
    assert "--rounds" in help_text


@pytest.mark.slow
def test_a_real_way_is_measured_checked_and_compared(tmp_path):
    figures = answered("cold", tmp_path, "--only", "vit_small/fp32")
    time = figures["a small ViT fp32, etgraph / by hand: processor time"]
    assert len(time.values) == 1
    note = figures["a small ViT fp32, etgraph / by hand: wall"].note
    assert note.startswith("byte for byte the .pte of the calls by hand; all executed: error at most")
    share = figures["a small ViT fp32: etgraph's own share of its time"]
    assert 0 < share.median < 50
    assert figures["a small ViT fp32, etgraph: peak memory"].median > 200
    assert {"a small ViT fp32, empty cache / no cache: wall", "a small ViT fp32, by hand: wall"} <= set(figures)


@pytest.mark.slow
def test_fingerprints_are_measured(tmp_path):
    figures = answered("fingerprint", tmp_path)
    assert figures["power of the number of nodes that it grows with"].median < 2


@pytest.mark.slow
def test_a_wrong_program_gives_no_figure(tmp_path):
    """The check executes: a .pte of another model is found out."""

    def told(module, **job):
        command = [sys.executable, "-m", f"benchmarks.{module}", json.dumps({"network": "vit_small", **job})]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    out = str(tmp_path / "x.pte")
    told("child", way="by_hand", precision="fp32", out=out)
    assert told("pte_check", files={"x": out})["x"]["relative"] < 1e-3
    assert told("pte_check", files={"x": out}, options={"layer_norm_eps": 0.5})["x"]["relative"] > 1e-3
