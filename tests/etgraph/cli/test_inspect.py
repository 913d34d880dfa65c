"""`etgraph inspect`: each kind, in words and as data."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from etgraph.cli.app import invoke

from .conftest import NET, Etgraph, check_golden, normalised


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every artifact on the split way, as a file, made once."""
    folder = tmp_path_factory.mktemp("stages")
    (folder / "net.py").write_text(NET)
    command = "run net.py:make --recipe xnnpack_fp32 --path split --dump-stages s --no-cache -q"
    with contextlib.chdir(folder):
        assert invoke(command.split()) == 0
    return folder


def without_versions(text: str) -> str:
    """Leave out what differs between installations and with every change of the code."""
    return "".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(("versions: ", "written with: ", "fingerprint: "))
    )


def test_module(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("inspect", "net.py:make")
    assert (answer.code, answer.err) == (0, "")
    check_golden("inspect_module", without_versions(normalised(answer.out)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("make.1.exported.etg", "exported"),
        ("make.2.edge.etg", "edge"),
        ("make.3.lowered.etg", "lowered"),
        ("make.4.executorch.pte", "executorch"),
    ],
)
def test_files_of_every_kind(
    stages: Path, etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.chdir(stages)
    words = etgraph_cli("inspect", f"s/{name}")
    assert (words.code, words.err) == (0, "")
    check_golden(f"inspect_{kind}", without_versions(normalised(words.out)))
    found = etgraph_cli("inspect", f"s/{name}", "--json").document
    assert found["kind"] == kind
    assert (found["written_with"] or {}).get("torch") == (found["versions"]["torch"] if kind != "executorch" else None)
    assert found["versions"]["torch"]


def test_graph_has_shapes_and_source_lines(stages: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("inspect", f"{stages}/s/make.2.edge.etg", "--graph")
    (line,) = [line for line in answer.out.splitlines() if "aten.convolution.default(" in line]
    assert "float32[1, 4, 6, 6]" in line
    assert "net.py:" in line
    assert "self.conv(image)" in line


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.pt2", b""), ("text.etg", b"hello"), ("zeros.pte", bytes(400)), ("noise.bin", b"\x89ETG")],
)
def test_files_that_are_nothing_of_ours_are_refused(
    folder: Path, etgraph_cli: Etgraph, name: str, content: bytes
) -> None:
    (folder / name).write_bytes(content)
    for command in ("inspect", "plan", "run"):
        answer = etgraph_cli(command, name, *(("-o", "x.pte") if command == "run" else ()))
        assert answer.code == 2, command
        assert name in answer.err
        assert "Traceback" not in answer.err
    assert not (folder / "x.pte").exists()
