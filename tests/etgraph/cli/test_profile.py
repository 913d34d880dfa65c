"""`etgraph profile`."""

from __future__ import annotations

from pathlib import Path

from .conftest import Etgraph


def test_a_model_is_run_to_a_pte_and_timed_with_its_lines(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("profile", "net.py:make", "--recipe", "portable", "--runs", "2")
    assert answer.code == 0, answer.err
    assert "2 runs on the example inputs" in answer.out
    assert "aten::convolution.out  [net.py:12]" in answer.out
    assert "memory 1:" in answer.out
    assert "cpuinfo" not in answer.err


def test_a_pte_with_its_record_as_text_and_as_json(folder: Path, etgraph_cli: Etgraph) -> None:
    made = etgraph_cli("run", "net.py:make", "--recipe", "portable", "-o", "m.pte", "--etrecord", "m.etrecord")
    assert made.code == 0, made.err
    bare = etgraph_cli("profile", "m.pte", "--runs", "1", "--shape", "1x3x8x8")
    assert bare.code == 0, bare.err
    assert "on the inputs given" in bare.out
    assert "note: a .pte has no debug information of its own" in bare.out
    document = etgraph_cli("profile", "m.pte", "--runs", "1", "--etrecord", "m.etrecord", "--json").document
    kernels = document["methods"]["forward"]["kernels"]
    assert any("net.py" in line for kernel in kernels for line in kernel["source_lines"])


def test_mistakes_are_one_line(folder: Path, etgraph_cli: Etgraph) -> None:
    (folder / "no.etrecord").write_text("nothing")
    for arguments, expected in (
        (("--etrecord", "missing"), "there is no ETRecord missing"),
        (("--etrecord", "no.etrecord"), "no.etrecord is no ETRecord"),
        (("--runs", "0"), "--runs"),
    ):
        answer = etgraph_cli("profile", "net.py:make", "--recipe", "portable", *arguments)
        assert answer.code == 2
        assert expected in answer.err
        assert "Traceback" not in answer.err
