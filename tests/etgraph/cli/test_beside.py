"""`etgraph run --etrecord` and `--bundled`."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from etgraph.result import Result

from .conftest import Etgraph


def test_both_are_written_and_a_bundled_program_checks_itself(folder: Path, etgraph_cli: Etgraph) -> None:
    arguments = ("run", "net.py:make", "--recipe", "portable", "--etrecord", "net.etrecord", "--bundled", "net.bpte")
    for _ in range(2):
        answer = etgraph_cli(*arguments)
        assert answer.code == 0, answer.err
        for name in ("make.pte", "net.etrecord", "net.bpte"):
            assert f"wrote {name}" in answer.out
            assert (folder / name).exists()
    assert "ETRECORD_V0" in zipfile.ZipFile(folder / "net.etrecord").namelist()
    answer = etgraph_cli("run", "net.bpte", "--verify", "-o", "again.pte", "--json")
    assert answer.document["verification"]["passed"] is True
    assert (folder / "again.pte").read_bytes() == (folder / "make.pte").read_bytes()
    about = etgraph_cli("inspect", "net.bpte", "--json").document
    assert about["kind"] == "executorch"
    assert about["example_inputs"]["forward"][0]["args"] == ["float32[1, 3, 8, 8]"]


def test_a_record_that_cannot_be_written_costs_the_exit_code_and_not_the_program(
    folder: Path, etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes away while the run is under way."""
    (folder / "records").mkdir()
    written = Result.save_etrecord

    def late(result, path):
        os.rmdir(folder / "records")
        return written(result, path)

    monkeypatch.setattr(Result, "save_etrecord", late)
    answer = etgraph_cli("run", "net.py:make", "--recipe", "portable", "--etrecord", "records/net.etrecord")
    assert answer.code == 1
    assert "records/net.etrecord was not written" in answer.err
    assert (folder / "make.pte").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--etrecord", "nowhere/n.etrecord"), "the folder nowhere does not exist"),
        (("--etrecord", "n.etrecord", "--to", "edge"), "--etrecord goes with a .pte"),
        (("--bundled", "n.pte"), "the suffix is that of a program"),
        (("--etrecord", "."), "--etrecord . is a folder"),
        (
            ("--bundled", "n.bpte", "--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-xnnpack-fp32"),
            "--bundled is about one target",
        ),
    ],
)
def test_wrong_use_is_refused_before_any_work(
    folder: Path, etgraph_cli: Etgraph, arguments: tuple[str, ...], expected: str
) -> None:
    answer = etgraph_cli("run", "net.py:make", *arguments)
    assert answer.code == 2
    assert expected in answer.err
    assert not list(folder.glob("*.pte"))
