"""Bundled programs: written with what the source computes, and read as programs that can be checked by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from models import made

import etgraph


@pytest.mark.parametrize("name", ["conv", "methods", "cache", "dynamic"])
def test_a_bundled_program_holds_the_pte_its_inputs_and_what_the_source_computes(tmp_path: Path, name: str) -> None:
    model, inputs, rest = made(name)
    path = tmp_path / "m.bpte"
    result = etgraph.run(model, inputs, recipe="portable", bundled=path, **rest)
    loaded = etgraph.load(path)
    assert isinstance(loaded, etgraph.Executorch)
    assert loaded.buffer == result.artifact.buffer
    source = result.source.example_inputs
    assert {m: len(given) for m, given in loaded.example_inputs.items()} == {m: len(s) for m, s in source.items()}
    for method, samples in source.items():
        for one, other in zip(loaded.example_inputs[method], samples, strict=True):
            for a, b in zip(one.args, [*other.args, *other.kwargs.values()], strict=True):
                assert torch.equal(a, b)
    checked = etgraph.run(path).verify()
    assert checked.max_error < 1e-5
    assert set(checked) == set(source)
    assert "outputs that the bundled program brings" in checked.notes[0]


def test_a_file_may_be_the_first_thing_that_a_process_runs(tmp_path: Path) -> None:
    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable").save(tmp_path / "m.pte")
    statement = f"import etgraph; print(etgraph.run({str(tmp_path / 'm.pte')!r}).artifact.kind)"
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "executorch", done.stderr


def test_upstreams_reader_takes_it(tmp_path: Path) -> None:
    from executorch.extension.pybindings.portable_lib import _load_bundled_program_from_buffer

    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable", bundled=tmp_path / "m.bpte")
    assert _load_bundled_program_from_buffer((tmp_path / "m.bpte").read_bytes()) is not None


def test_outputs_that_differ_from_the_expected_are_seen(tmp_path: Path) -> None:
    from dataclasses import replace

    from stages.verification import verify

    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable", bundled=tmp_path / "m.bpte")
    loaded: Any = etgraph.load(tmp_path / "m.bpte")
    wrong = tuple(tuple(value + 1 for value in outputs) for outputs in loaded.expected_outputs["forward"])
    loaded = replace(loaded, expected_outputs={"forward": wrong})
    assert 0.9 < verify(loaded, loaded).max_error < 1.1


def test_of_a_module_captured_as_in_evaluation_the_outputs_of_evaluation_are_expected(tmp_path: Path) -> None:
    """The module itself is in training mode, and stays so."""
    recipe = etgraph.get_recipe("portable").with_options("torch_export", eval_mode=True)
    model, x = torch.nn.Dropout(0.5), torch.ones(64)
    etgraph.run(model, (x,), recipe, bundled=tmp_path / "m.bpte")
    ((expected,),) = etgraph.load(tmp_path / "m.bpte").expected_outputs["forward"]
    assert torch.equal(expected, x)
    assert model.training


def test_keyword_inputs_are_bundled_in_the_order_of_the_export(tmp_path: Path) -> None:
    class Minus(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, less: torch.Tensor) -> torch.Tensor:
            return x - less

    result = etgraph.run(Minus(), etgraph.Inputs(x=torch.ones(2), less=torch.zeros(2)), recipe="portable")
    result.save_bundled(tmp_path / "m.bpte", etgraph.Inputs(less=torch.full((2,), 3.0), x=torch.full((2,), 5.0)))
    (sample,) = etgraph.load(tmp_path / "m.bpte").example_inputs["forward"]
    assert [one.tolist() for one in sample.args] == [[5.0, 5.0], [3.0, 3.0]]
    assert etgraph.run(tmp_path / "m.bpte").verify().max_error == 0.0


def test_other_types_come_back(tmp_path: Path) -> None:
    class Picky(torch.nn.Module):
        def forward(self, image: torch.Tensor, which: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return (image * mask).index_select(1, which)

    inputs = (torch.randn(1, 4, 3, 3).half(), torch.tensor([2, 0]), torch.rand(3, 3) > 0.5)
    etgraph.run(Picky(), inputs, recipe="portable", bundled=tmp_path / "m.bpte")
    (sample,) = etgraph.load(tmp_path / "m.bpte").example_inputs["forward"]
    for one, other in zip(sample.args, inputs, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert etgraph.run(tmp_path / "m.bpte").verify().max_error == 0.0


def test_inputs_in_a_layout_that_upstreams_writer_loses_are_refused(tmp_path: Path) -> None:
    image = torch.randn(1, 4, 3, 3).to(memory_format=torch.channels_last)
    result = etgraph.run(torch.nn.ReLU(), (image,), recipe="portable")
    with pytest.raises(etgraph.UsageError, match="makes every tensor contiguous"):
        result.save_bundled(tmp_path / "m.bpte")


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x + 1, 3


class Writing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        x.add_(1)
        return x * 2


@pytest.mark.parametrize(
    ("model", "expected"),
    [(Plain(), "output 1 of method 'forward' is a int"), (Writing(), "returns mutated input x before its outputs")],
)
@pytest.mark.filterwarnings("ignore::etgraph.EtgraphWarning")
def test_what_the_format_has_no_place_for_is_said(tmp_path: Path, model: Any, expected: str) -> None:
    result = etgraph.run(model, (torch.ones(2),), recipe="portable")
    with pytest.raises(etgraph.UsageError, match=expected):
        result.save_bundled(tmp_path / "m.bpte")
    assert list(tmp_path.iterdir()) == []
