"""A command line that is run in this process, in a folder of its own, with a cache of its own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etgraph.cli.app import invoke

GOLDEN = Path(__file__).parent / "golden"

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, image):
        return self.head(self.norm(self.conv(image)).relu().mean((2, 3)))

def make():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(1, 3, 8, 8),)

class Broken(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        return torch.erfinv(y)

def broken():
    return Broken(), (torch.rand(2, 3),)
"""


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document that it printed; fails when there is anything else on stdout."""
        return json.loads(self.out)


Etgraph = Callable[..., Answer]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `net.py` in it; the cache is elsewhere and empty."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "net.py").write_text(NET)
    monkeypatch.chdir(here)
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    return here


@pytest.fixture
def etgraph_cli(folder: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Etgraph]:
    """Call `etgraph` with arguments in `folder`; what it prints is read from the file descriptors."""
    before = list(sys.path)

    def call(*arguments: str) -> Answer:
        capfd.readouterr()
        code = invoke(arguments)
        printed = capfd.readouterr()
        return Answer(code, printed.out, printed.err)

    yield call
    sys.path[:] = before


def normalised(text: str) -> str:
    """Replace what differs from run to run: durations, sizes of memory, dates."""
    text = re.sub(r"\d+\.\d+ s\b", "N s", text)
    text = re.sub(r"\d[\d.,]* (?:bytes|kB|MB|GB)", "SIZE", text)
    text = re.sub(r"\b\d\.\de[-+]\d\d\b", "ERROR", text)
    # Columns are as wide as what stands in them.
    return re.sub(r"[─-]{3,}", "---", re.sub(r"(?<=\S) {2,}", "  ", text))


def check_golden(name: str, text: str) -> None:
    """Compare with a stored transcript; `ETGRAPH_UPDATE_GOLDEN=1` stores this one instead."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("ETGRAPH_UPDATE_GOLDEN"):
        file.write_text(text)
    assert file.read_text() == text
