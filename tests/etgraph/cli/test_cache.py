"""`etgraph cache`: what is in it, why a step would run, making room; and how `run` and `plan` use it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from etgraph.store import Cache


@pytest.fixture
def filled(etgraph_cli, folder):
    """One run, to exported: a single small entry."""
    assert etgraph_cli("run", "net.py:make", "--to", "exported", "-q").code == 0
    return Cache()


def test_path_names_the_directory_without_making_it(etgraph_cli, tmp_path):
    assert etgraph_cli("cache", "path").out == f"{tmp_path / 'cache'}\n"
    elsewhere = str(tmp_path / "elsewhere")
    assert etgraph_cli("cache", "path", "--cache-dir", elsewhere, "--json").document["path"] == elsewhere
    assert not (tmp_path / "elsewhere").exists()


def test_ls_shows_each_program_and_the_total(etgraph_cli, filled):
    answer = etgraph_cli("cache", "ls")
    assert answer.code == 0
    head, row, total = answer.out.splitlines()
    assert head.split() == ["key", "of", "stage", "from", "->", "to", "methods", "size", "made", "used"]
    assert "Net (forward)  torch_export  module -> exported  forward" in row
    assert row.endswith("just now  just now")
    assert total.startswith("1 program, ")
    assert total.endswith(f"in {filled.directory}")

    document = etgraph_cli("cache", "ls", "--json").document
    (entry,) = document["entries"]
    assert (entry["stage"], entry["produces"], entry["methods"]) == ("torch_export", "exported", ["forward"])
    assert entry["bytes"] == filled.entries()[0].nbytes
    assert document["bytes"] == sum(path.stat().st_size for path in filled.directory.rglob("*") if path.is_file())
    assert document["size_limit"] == filled.size_limit


def test_ls_tells_ages(etgraph_cli, filled):
    entry = filled.entries()[0]
    day = entry.created - 3 * 86400
    os.utime(entry.path, (day, day))
    assert etgraph_cli("cache", "ls").out.splitlines()[1].endswith("just now  3 d ago")


def test_why_before_the_first_run_and_after_it(etgraph_cli, folder):
    arguments = ("cache", "why", "net.py:make", "--recipe", "portable", "--to", "edge")
    before = etgraph_cli(*arguments, "--json").document["steps"]
    assert [step["outcome"] for step in before] == ["runs", "unknown"]
    assert before[0]["reason"] == "it has not run on this before"
    assert before[1]["reason"] == "it would run after torch_export, whose output is not known yet"
    assert Cache().entries() == []

    etgraph_cli("run", "net.py:make", "--to", "exported", "-q")
    words = etgraph_cli(*arguments).out.splitlines()
    assert words[1] == "  torch_export: would be reused"
    assert words[2].startswith("      reused what was built on ")
    assert words[3:] == ["  to_edge: would run", "      it has not run on this before"]


def test_why_names_the_part_that_changed(etgraph_cli, folder):
    etgraph_cli("run", "net.py:make", "--to", "exported", "-q")
    steps = etgraph_cli("cache", "why", "net.py:make", "--to", "exported", "--eval", "--json").document["steps"]
    assert [step["reason"] for step in steps] == ["option eval_mode was added: True"]
    steps = etgraph_cli("cache", "why", "net.py:make", "--to", "exported", "--shape", "1x3x9x9", "--json").document
    assert "from 8 to 9" in steps["steps"][0]["reason"]


def test_why_on_a_program_that_is_there_already(etgraph_cli, folder):
    etgraph_cli("run", "net.py:make", "--to", "exported", "-q")
    answer = etgraph_cli("cache", "why", "make.exported.etg", "--to", "exported")
    assert answer.out.splitlines()[-1] == "there is nothing to do"


def test_verify_finds_damage_and_exits_with_1(etgraph_cli, filled):
    good = etgraph_cli("cache", "verify")
    assert (good.code, good.out.endswith("all good\n")) == (0, True)
    path = filled.entries()[0].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    bad = etgraph_cli("cache", "verify")
    assert bad.code == 1
    assert "bad: " in bad.out
    assert "1 defect" in bad.out
    assert etgraph_cli("cache", "verify", "--json").document["bad"] == []


def test_prune_makes_room(etgraph_cli, filled):
    kept = etgraph_cli("cache", "prune", "--json").document
    assert (kept["removed"], kept["kept"]) == (0, 1)
    answer = etgraph_cli("cache", "prune", "--size", "1kB")
    assert answer.out.startswith("removed 1 program, ")
    assert filled.entries() == []


@pytest.mark.parametrize("size", ["much", "-1", "2 parsecs"])
def test_prune_refuses_what_is_no_size(etgraph_cli, filled, size):
    answer = etgraph_cli("cache", "prune", f"--size={size}")
    assert answer.code == 2
    assert f"--size is {size!r}, and a size in bytes was wanted" in answer.err
    assert len(filled.entries()) == 1


def test_clear_asks_nobody_in_a_pipe(etgraph_cli, filled, monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    answer = etgraph_cli("cache", "clear")
    assert answer.code == 2
    assert "clear would remove 1 program" in answer.err
    assert "--yes" in answer.err
    assert len(filled.entries()) == 1
    assert etgraph_cli("cache", "clear", "--yes").out.startswith("removed 1 program, ")
    assert filled.entries() == []


@pytest.mark.parametrize(("reply", "left", "code"), [("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)])
def test_clear_asks_on_a_terminal(etgraph_cli, filled, monkeypatch, reply, left, code):
    reader, writer = os.openpty()
    os.write(reader, reply.encode())
    with os.fdopen(writer, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert etgraph_cli("cache", "clear").code == code
    assert len(filled.entries()) == left


def test_a_directory_that_cannot_be_used_is_told(etgraph_cli, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    answer = etgraph_cli("cache", "ls", "--cache-dir", str(tmp_path / "file"))
    assert answer.code == 0
    assert answer.err.startswith("warning: the cache directory")
    assert answer.err.count("cannot be used") == 1


def test_run_uses_the_cache_that_it_is_given(etgraph_cli, folder, tmp_path):
    arguments = ("run", "net.py:make", "--to", "exported", "--cache-dir", str(tmp_path / "other"), "--json")
    assert etgraph_cli(*arguments).document["steps"][0]["outcome"] == "ran"
    assert etgraph_cli(*arguments).document["steps"][0]["outcome"] == "reused"
    assert etgraph_cli(*arguments, "--refresh").document["steps"][0]["outcome"] == "ran"
    assert etgraph_cli(*arguments, "--check-cache").document["steps"][0]["outcome"] == "reused"
    assert Cache().entries() == []
    off = etgraph_cli("run", "net.py:make", "--to", "exported", "--no-cache", "--json")
    assert off.document["steps"][0]["reason"] == "the cache is off"


@pytest.mark.parametrize(
    "flags", [("--no-cache", "--refresh"), ("--no-cache", "--check-cache"), ("--refresh", "--check-cache")]
)
def test_flags_that_contradict_each_other_are_refused(etgraph_cli, folder, flags):
    answer = etgraph_cli("run", "net.py:make", *flags)
    assert answer.code == 2
    assert f"{flags[0]} and {flags[1]} were both given" in answer.err


REPORT = """
import sys
from etgraph.cli.app import invoke
code = invoke(sys.argv[1:])
print("imported:", sorted({"torch", "executorch", "networkx"} & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_run_that_reuses_everything_imports_neither_torch_nor_executorch(etgraph_cli, folder, more):
    """From a file, in a process of its own; what it writes is what was built."""
    etgraph_cli("run", "net.py:make", "--to", "exported", "-q")
    etgraph_cli("run", "make.exported.etg", "-o", "built.pte", "-q")
    command = [sys.executable, "-c", REPORT, "run", "make.exported.etg", "-o", "served.pte", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "imported: ['networkx']"
    assert (folder / "served.pte").read_bytes() == (folder / "built.pte").read_bytes()


def test_what_was_wrong_with_the_cache_is_told_after_the_run(etgraph_cli, filled):
    path = filled.entries()[0].path
    path.write_bytes(path.read_bytes()[:-1])
    answer = etgraph_cli("run", "net.py:make", "--to", "exported")
    assert answer.code == 0
    assert answer.err.count("warning: cache entry") == 1
    assert etgraph_cli("run", "net.py:make", "--to", "exported").err.count("warning") == 0
