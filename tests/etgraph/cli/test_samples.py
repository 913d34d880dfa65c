"""--inputs and --calibration: samples in code or in a file of tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

DATA = """
import torch

class Recorded(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return (torch.full((3, 8, 8), float(index)),)

loader = torch.utils.data.DataLoader(Recorded())
pair = [(torch.ones(1, 3, 8, 8),), (torch.zeros(1, 3, 8, 8),)]

def samples():
    for one in pair:
        yield one

def broken():
    raise KeyError("no such recording")
"""


@pytest.fixture
def data(folder: Path) -> Path:
    (folder / "data.py").write_text(DATA)
    torch.save([(torch.randn(1, 3, 8, 8),) for _ in range(3)], folder / "samples.pt")
    return folder


@pytest.mark.parametrize("given", ["data.py:pair", "data.py:samples", "samples.pt"])
def test_inputs_replace_those_of_the_source(data: Path, etgraph_cli, given: str) -> None:
    answer = etgraph_cli("run", "net.py:make", "--inputs", given, "--json", "--verify")
    assert answer.code == 0, answer.err
    count = 3 if given.endswith(".pt") else 2
    assert answer.document["verification"]["methods"]["forward"]["samples"] == count


@pytest.mark.parametrize("given", ["data.py:loader", "data.py:samples", "samples.pt"])
def test_a_program_from_a_file_is_calibrated(data: Path, etgraph_cli, given: str) -> None:
    assert etgraph_cli("run", "net.py:make", "--to", "exported", "-o", "net.exported.etg").code == 0
    source = ("run", "net.exported.etg", "--recipe", "xnnpack_int8", "--to", "quantized")
    refused = etgraph_cli(*source)
    assert refused.code == 2
    assert "--calibration on the command line" in " ".join(refused.err.split())
    answer = etgraph_cli(*source, "--calibration", given)
    assert answer.code == 0, answer.err
    assert (data / "net.quantized.etg").exists()


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--inputs", "data.py"), "--inputs data.py is a Python file, and does not say which name in it is meant"),
        (("--inputs", "net.pte"), "--inputs net.pte is neither code nor a .pt file"),
        (("--inputs", "data.py:pear"), "--inputs data.py:pear: it has no 'pear'; did you mean 'pair'?"),
        (("--inputs", "data.py:broken"), "--inputs data.py:broken: calling broken() failed: KeyError"),
        (("--inputs", "code.pt"), "--inputs code.pt cannot be read"),
        (("--inputs", "missing.pt"), "--inputs missing.pt does not exist"),
        (("--inputs", "samples.pt", "--shape", "1x3x8x8"), "--shape and --inputs were both given"),
        (("--calibration", "missing.py:x"), "--calibration missing.py:x: there is no file missing.py"),
    ],
)
def test_what_holds_no_samples_is_refused(data: Path, etgraph_cli, flags: tuple[str, ...], wanted: str) -> None:
    (data / "net.pte").write_bytes(b"")
    torch.save(torch.nn.Linear(1, 1), data / "code.pt")
    answer = etgraph_cli("run", "net.py:make", *flags, "-o", "out.pte")
    assert answer.code == 2
    assert wanted in " ".join(answer.err.split())
    assert not (data / "out.pte").exists()


def test_a_quantized_program_is_judged_by_what_is_fit_for_its_precision(data: Path, etgraph_cli) -> None:
    """An int8 output is never within 1e-3; a recipe that a target goes by has the ratio of that target."""
    answer = etgraph_cli(
        "run", "net.py:make", "--recipe", "xnnpack_int8", "--calibration", "samples.pt", "--verify", "--json"
    )
    assert answer.code == 0, answer.err
    checked = answer.document["verification"]
    assert checked["passed"] is True
    assert checked["tolerance"]["snr"] == 20
    assert all(out["max_relative_error"] > 1e-3 for out in checked["methods"]["forward"]["outputs"])
