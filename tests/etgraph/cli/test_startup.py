"""What starts fast: nothing heavy is imported to show help, to list, or to refuse a wrong request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from etgraph.cli.app import COMMANDS, build

HEAVY = ("torch", "executorch", "torchao", "numpy", "coremltools")
REPORT = f"""
import sys
from etgraph.cli.app import invoke
code = invoke(sys.argv[1:])
print("imported:", [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("run --help", 0),
        ("inspect --help", 0),
        ("list kinds", 0),
        ("list stages", 0),
        ("list recipes", 0),
        ("list targets --json", 0),
        ("run missing.py:x", 2),
        ("run net.py", 2),
        ("run net.py:make --to egde", 2),
        ("run net.py:make --to edge -o x.pte", 2),
        ("run net.py:make --shape 1,3", 2),
    ],
)
def test_imports_neither_torch_nor_executorch(folder: Path, command: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", REPORT, *command.split()], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1] == "imported: []"


@pytest.mark.parametrize(
    "command", [[str(Path(sys.executable).with_name("etgraph"))], [sys.executable, "-m", "etgraph"]]
)
def test_installed_command_answers(folder: Path, command: list[str]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("etgraph ")


def test_every_command_has_help_with_examples(folder: Path) -> None:
    for command in (
        "run",
        "plan",
        "check",
        "inspect",
        "profile",
        "diff",
        "doctor",
        "demo",
        "list recipes",
        "list stages",
    ):
        done = subprocess.run(
            [sys.executable, "-c", REPORT, *command.split(), "--help"], capture_output=True, text=True, check=True
        )
        assert "Example" in done.stdout, command
        assert f"  etgraph {command}" in done.stdout, command


def test_each_command_is_found_alone_and_among_all() -> None:
    def names(app: typer.Typer) -> list[str]:
        return [found.name or "" for found in (*app.registered_commands, *app.registered_groups)]

    assert sorted(names(build())) == sorted(COMMANDS)
    assert {name: names(build(name)) for name in COMMANDS} == {name: [name] for name in COMMANDS}


def test_a_command_imports_no_other(folder: Path) -> None:
    code = (
        "import sys; from etgraph.cli.app import invoke; "
        "invoke(['plan', '--help']); print('etgraph.cli.cache' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_closed_pipe_is_no_traceback(folder: Path) -> None:
    """As in `etgraph list stages | head -1`, when the reader has gone before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from etgraph.cli import main; main()", "list", "recipes"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
