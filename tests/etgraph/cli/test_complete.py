"""Shell completion: names without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from etgraph.cli import complete


def test_names() -> None:
    assert complete.kinds("ex") == ["exported", "executorch"]
    assert complete.paths("") == ["auto", "combined", "split"]
    assert complete.recipes("port") == ["portable"]
    assert "xnnpack_fp32" in complete.recipes("xnn")
    assert complete.targets("no-such") == []


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("etgraph run net.py:make --to e", ["edge", "exported", "executorch"]),
        ("etgraph run net.py:make --recipe port", ["portable"]),
        ("etgraph plan net.py:make --path s", ["split"]),
        ("etgraph in", ["inspect"]),
    ],
)
def test_bash_gets_them(folder: Path, line: str, wanted: list[str]) -> None:
    """As bash asks: the words so far in the environment."""
    words = line.split()
    environment = {
        **os.environ,
        "_ETGRAPH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    script = "from etgraph.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split()) == sorted(wanted)
