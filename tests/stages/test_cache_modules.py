"""Models in files: which edits export again, and which lower again. Each run is a process of its own, on one cache."""

import os
import shutil

import pytest
from forks import forks

MODEL = '''
"""A model that leans on what is around it."""
import torch
from torch import nn
from helpers import squash

SCALE = 2.0


def shifted(by=0.5):
    def shift(x):
        return x + by
    return shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)
        self.dropout = nn.Dropout(0.5)
        self.shift = shifted()

    def forward(self, x):
        # a comment
        return self.shift(self.dropout(squash(self.linear(x))) * SCALE)


def make():
    return Net().eval(), (torch.ones(2, 4),)
'''
HELPERS = """
import torch


def squash(x, limit=3.0):
    return torch.clamp(x, -limit, limit)
"""

#: What is edited, in which file, from what to what.
EDITS = {
    "a line of forward": ("net.py", "* SCALE)", "- SCALE)"),
    "a helper in another file": ("helpers.py", "torch.clamp(x, -limit, limit)", "torch.tanh(x) * limit"),
    "a default argument": ("helpers.py", "limit=3.0", "limit=0.25"),
    "a global constant": ("net.py", "SCALE = 2.0", "SCALE = 3.0"),
    "a closure value": ("net.py", "by=0.5", "by=0.75"),
    "the seed of the weights": ("net.py", "manual_seed(0)", "manual_seed(1)"),
    "one bit of a weight": ("net.py", "self.dropout =", (
        "self.linear.weight.data.view(torch.int32)[0, 0] ^= 1\n        self.dropout ="
    )),
}  # fmt: skip


@pytest.fixture(scope="module")
def etgraph(tmp_path_factory):
    with forks(tmp_path_factory.mktemp("models")) as running:
        yield running


@pytest.fixture
def project(etgraph, tmp_path, monkeypatch):
    """A project that was run once; `run()` runs it again and gives the outcome of each step by stage."""
    etgraph.folder = tmp_path / "project"
    etgraph.folder.mkdir()
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    write(etgraph.folder, "net.py", MODEL)
    write(etgraph.folder, "helpers.py", HELPERS)
    run(etgraph)
    return etgraph.folder


def write(folder, name, text):
    (folder / name).write_text(text)
    # Bytecode is found by time and size of the source, and two edits may fall into one second.
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def edit(folder, name, old, new):
    text = (folder / name).read_text()
    assert text.count(old) == 1
    write(folder, name, text.replace(old, new))


def run(etgraph, source="net.py:make", *more):
    document = etgraph.json("run", source, "--recipe", "portable", "-o", "out.pte", "--verify", *more)
    assert document["verification"]["passed"] is True
    return {step["stage"]: step["outcome"] for step in document["steps"]}, document


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_that_changes_the_program_exports_again_and_gives_the_right_program(etgraph, project, what):
    before = (project / "out.pte").read_bytes()
    edit(project, *EDITS[what])
    outcomes, document = run(etgraph)
    assert outcomes == {"torch_export": "ran", "to_edge": "ran", "to_executorch": "ran"}
    assert (project / "out.pte").read_bytes() != before
    assert "it has not run on this before" not in document["steps"][0]["reason"]


def test_eval_and_train_are_two_programs(etgraph, project):
    edit(project, "net.py", "Net().eval()", "Net().train()")
    document = etgraph.json("run", "net.py:make", "--recipe", "portable", "--to", "exported")
    assert document["steps"][0]["outcome"] == "ran"
    assert ".training changed from False to True" in document["steps"][0]["reason"]


def test_what_is_no_code_exports_nothing(etgraph, project):
    """Comments, docstrings, lines that move, a touched file, another name of the file."""
    edit(project, "net.py", "# a comment", "# another comment, and\n\n        # one more")
    edit(project, "net.py", '"""A model that leans on what is around it."""', '"""Other words."""')
    assert set(run(etgraph)[0].values()) == {"reused"}
    os.utime(project / "helpers.py", (1, 1))
    assert set(run(etgraph)[0].values()) == {"reused"}
    (project / "net.py").rename(project / "renamed.py")
    assert set(run(etgraph, "renamed.py:make")[0].values()) == {"reused"}


def test_code_that_gives_the_same_graph_exports_and_lowers_nothing(etgraph, project):
    """Early cutoff: other code, the same program."""
    edit(project, "net.py", "return self.shift(", "y = self.shift(")
    edit(project, "net.py", "* SCALE)\n", "* SCALE)\n        return y\n")
    outcomes, _ = run(etgraph)
    assert outcomes == {"torch_export": "ran", "to_edge": "reused", "to_executorch": "reused"}


def test_going_back_finds_what_was_built_before(etgraph, project):
    before = (project / "out.pte").read_bytes()
    edit(project, "net.py", "SCALE = 2.0", "SCALE = 5.0")
    run(etgraph)
    edit(project, "net.py", "SCALE = 5.0", "SCALE = 2.0")
    assert set(run(etgraph)[0].values()) == {"reused"}
    assert (project / "out.pte").read_bytes() == before


def test_why_says_what_changed_and_runs_nothing(etgraph, project):
    edit(project, "helpers.py", "limit=3.0", "limit=0.25")
    steps = etgraph.json("cache", "why", "net.py:make", "--recipe", "portable")["steps"]
    assert [step["outcome"] for step in steps] == ["runs", "unknown", "unknown"]
    assert "3.0 to 0.25" in steps[0]["reason"]
    assert steps[1]["reason"] == "it would run after torch_export, whose output is not known yet"
    assert run(etgraph)[0]["torch_export"] == "ran"
    steps = etgraph.json("cache", "why", "net.py:make", "--recipe", "portable")["steps"]
    assert {step["outcome"] for step in steps} == {"reused"}


def test_a_model_that_cannot_be_followed_is_exported_each_time_and_lowered_once(etgraph, project):
    """Its forward asks torch for a function by a name made at run time."""
    edit(project, "net.py", "self.linear(x)", "getattr(torch, ''.join(['a', 'bs']))(self.linear(x))")
    run(etgraph)
    outcomes, document = run(etgraph)
    assert outcomes == {"torch_export": "ran", "to_edge": "reused", "to_executorch": "reused"}
    assert "ran uncached" in document["steps"][0]["reason"]
