"""Where results go, refused before any work when they cannot go there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etgraph.cli.outfile import made_folder, output_path
from etgraph.cli.source import Reference
from etgraph.errors import UsageError

CODE = Reference(given="net.py:make", path=Path("net.py"), name="make")


@pytest.mark.parametrize(
    ("out", "kind", "wanted"),
    [
        (None, "executorch", "make.pte"),
        (None, "edge", "make.edge.etg"),
        ("x.pte", "executorch", "x.pte"),
        ("x.pt2", "exported", "x.pt2"),
        ("x.etg", "edge", "x.etg"),
        ("sub", "lowered", "sub/make.lowered.etg"),
        ("sub/", "executorch", "sub/make.pte"),
    ],
)
def test_names(folder: Path, out: str | None, kind: str, wanted: str) -> None:
    (folder / "sub").mkdir()
    assert output_path(out, CODE, kind) == Path(wanted)


@pytest.mark.parametrize(
    ("out", "kind", "problem", "hint"),
    [
        ("x.pte", "edge", ".pte is the suffix of the final product", "x.edge.etg"),
        ("x.PTE", "lowered", ".PTE is the suffix of the final product", "x.lowered.etg"),
        ("x.ptd", "exported", ".ptd is the suffix of the final product", "x.exported.etg"),
        ("x.etg", "executorch", ".etg is the suffix of intermediate programs", "x.pte"),
        ("x.edge.etg", "executorch", ".etg is the suffix of intermediate programs", "x.pte"),
        ("sub/x.pt2", "executorch", ".pt2 is the suffix of intermediate programs", "sub/x.pte"),
        ("x.bin", "executorch", "-o x.bin: .bin is not .pte", "x.pte"),
        ("x.PTE", "executorch", ".PTE is not .pte", "x.pte"),
        ("x", "executorch", "no suffix is not .pte", "x.pte"),
        ("x.pt2", "edge", ".pt2 is not .etg", "x.edge.etg"),
        ("no/x.pte", "executorch", "the folder no does not exist", "mkdir -p no"),
        ("no/", "executorch", "is a folder that does not exist", "mkdir -p no/"),
        ("net.py/x.pte", "executorch", "net.py is not a folder", ""),
        ("x", "module", "cannot be written to a file", "--to exported"),
    ],
)
def test_refusals(folder: Path, out: str, kind: str, problem: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        output_path(out, CODE, kind)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_source_is_not_overwritten_by_its_own_result(folder: Path) -> None:
    (folder / "m.edge.etg").write_bytes(b"kept")
    os.link(folder / "m.edge.etg", folder / "same.etg")
    reference = Reference(given="m.edge.etg", path=Path("m.edge.etg"))
    for out in ("m.edge.etg", "same.etg"):
        with pytest.raises(UsageError, match=r"-o .* is SOURCE itself"):
            output_path(out, reference, "edge")
    with pytest.raises(UsageError, match="and that is SOURCE") as caught:
        output_path(None, reference, "edge")
    assert caught.value.hint == "Name it with -o."


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_refused(folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o500)
    with pytest.raises(UsageError, match="does not permit it"):
        output_path("locked/x.pte", CODE, "executorch")


def test_a_folder_is_made_or_refused(folder: Path) -> None:
    assert made_folder("a/b", "--dump-stages").is_dir()
    with pytest.raises(UsageError, match=r"--dump-stages net\.py"):
        made_folder("net.py", "--dump-stages")
