"""What is said of a network must be true of its program, and one that fails loses no other."""

import types

import pytest

from benchmarks import cold
from benchmarks.asking import Ask, PartsFailed
from benchmarks.figures import Answer, Figure


def test_a_part_that_fails_keeps_the_others(monkeypatch):
    def part(name, rounds):
        if "int8" in name:
            raise RuntimeError("off by 1")
        return Answer([Figure("cold", name, (1.0,), "x")])

    monkeypatch.setattr(cold, "_part", part)
    with pytest.raises(PartsFailed, match="mobilenet_v2/int8: off by 1") as failure:
        cold.measure(Ask())
    assert [one.what for one in failure.value.answer.figures] == [p for p in cold.PARTS if "fp32" in p]


@pytest.mark.parametrize(
    ("part", "errors", "said"),
    [
        ("vit_small/fp32", {cold.HAND: 1e-6, cold.ETGRAPH: 0.2}, "with_etgraph is off by 0.2"),
        ("mobilenet_v2/int8", {cold.HAND: 0.4, cold.ETGRAPH: 0.5}, "with_etgraph is off by 0.5"),
        ("vit_small/fp32", {cold.HAND: float("nan"), cold.ETGRAPH: 1e-6}, "by_hand is off by nan"),
    ],
)
def test_a_wrong_program_has_no_figures(monkeypatch, part, errors, said):
    checked = types.SimpleNamespace(told={way: {"relative": error} for way, error in errors.items()})

    def run(way, network, precision, folder, number):
        (folder / f"{way}.pte").write_bytes(b"")

    monkeypatch.setattr(cold, "_run", run)
    monkeypatch.setattr(cold, "module", lambda name, job: checked)
    with pytest.raises(RuntimeError, match=said):
        cold._part(part, 1)
