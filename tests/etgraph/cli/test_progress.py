"""Progress on a terminal: what a step says of itself, and where a run stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import etgraph
from etgraph.cli.output import Output
from etgraph.cli.progress import Progress
from etgraph.declaration import progress as say
from etgraph.registry import registry


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any stderr is taken for a terminal of 100 columns."""
    monkeypatch.setattr("etgraph.cli.progress.is_terminal", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def ran(capsys: pytest.CaptureFixture[str], output: Output) -> str:
    """Run a stage that comes to 3 of 10 and fails; return what stderr shows."""
    import torch

    with registry.scratch():

        @etgraph.stage
        def polish(program: etgraph.Exported) -> etgraph.Exported:
            """Polish."""
            say(3, 10)
            raise ValueError("out of polish")

        recipe = etgraph.Recipe(name="polished", stages={"polish": {}})
        with pytest.raises(etgraph.StageError), Progress(output) as shown:
            etgraph.run(torch.nn.ReLU(), (torch.ones(2),), recipe, "exported", cache=False, on_event=shown)
    return capsys.readouterr().err


def test_steps_their_progress_and_where_it_stopped(
    folder: Path, terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ran(capsys, Output())
    assert "1/2 torch_export (ran)" in shown
    assert "2/2 polish (3/10) (stopped)" in shown


@pytest.mark.parametrize("output", [Output(quiet=True), Output(as_json=True)])
def test_nothing_when_quiet_or_for_a_machine(
    folder: Path, terminal: None, capsys: pytest.CaptureFixture[str], output: Output
) -> None:
    assert ran(capsys, output) == ""


def test_nothing_in_a_pipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, Output()) == ""
