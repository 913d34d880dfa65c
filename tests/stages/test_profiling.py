"""Profiles in the real runtime: kernels, lines of the model, memory. Times themselves are asserted nowhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from models import made

import etgraph
from etgraph.profiles import KernelTime, MethodProfile, Profile


def profiled(name: str, recipe: str = "portable", **more: Any) -> Profile:
    model, inputs, rest = made(name)
    return etgraph.profile(model, example_inputs=inputs, recipe=recipe, runs=2, **rest, **more)


def kernel(method: MethodProfile, name: str) -> KernelTime:
    (found,) = [one for one in method.kernels if one.name == name]
    return found


def test_kernels_of_the_runtime_and_of_delegates_with_the_lines_that_they_stand_for() -> None:
    found = profiled("conv", "xnnpack_fp32")
    method = found.methods["forward"]
    calls = [one for one in method.kernels if not one.inside]
    assert [one.name for one in calls] == ["XnnpackBackend", "aten::mean.out", "XnnpackBackend"]
    assert [one.instruction for one in calls] == [0, 1, 2]
    assert sum(one.share or 0.0 for one in calls) == pytest.approx(1.0)
    inside = [one.name for one in method.kernels if one.inside == "XnnpackBackend"]
    assert any("Convolution" in name for name in inside)
    assert any("Fully Connected" in name for name in inside)
    mean = kernel(method, "aten::mean.out")
    assert mean.operators == ("aten.mean.dim",)
    assert "return self.head(x.mean((2, 3)))" in mean.source_lines[0]
    assert any("F.relu6" in line for line in calls[0].source_lines)
    assert all(one.least <= one.milliseconds <= one.most for one in method.kernels)
    assert method.load_milliseconds > 0
    assert method.run_milliseconds > 0


def test_a_pte_alone_says_what_is_missing_and_its_record_brings_it(tmp_path: Path) -> None:
    model, inputs, _ = made("conv")
    etgraph.run(model, inputs, recipe="portable", etrecord=tmp_path / "m.etrecord").save(tmp_path / "m.pte")
    alone = etgraph.profile(tmp_path / "m.pte", runs=1)
    assert any("--etrecord FILE traces kernels" in note for note in alone.notes)
    assert alone.inputs == "random numbers, as no inputs were given"
    assert all(one.source_lines == () for one in alone.methods["forward"].kernels)
    traced = etgraph.profile(tmp_path / "m.pte", inputs, runs=1, etrecord=tmp_path / "m.etrecord")
    here = profiled("conv")
    for one, other in zip(traced.methods["forward"].kernels, here.methods["forward"].kernels, strict=True):
        assert (one.name, one.operators, one.source_lines) == (other.name, other.operators, other.source_lines)
    assert any(one.source_lines for one in traced.methods["forward"].kernels)


def test_a_record_of_another_program_is_told(tmp_path: Path) -> None:
    model, inputs, _ = made("dynamic")
    etgraph.run(model, inputs, recipe="portable", etrecord=tmp_path / "other.etrecord")
    model, inputs, _ = made("recurrent")
    etgraph.run(model, inputs, recipe="portable").save(tmp_path / "m.pte")
    found = etgraph.profile(tmp_path / "m.pte", runs=1, etrecord=tmp_path / "other.etrecord")
    assert any("seems to be of another program" in note for note in found.notes)


def test_several_methods_dynamic_sizes_and_branches() -> None:
    methods = profiled("methods").methods
    assert set(methods) == {"encode", "decode"}
    assert "torch.tanh(self.down(x))" in kernel(methods["encode"], "aten::tanh.out").source_lines[0]
    dynamic = profiled("dynamic").methods["forward"]
    assert any(holder.what == "float32[8, 4] at most" for holder in dynamic.arenas[0].holders)
    branches = profiled("branching").methods["forward"]
    assert kernel(branches, "aten::gt.Scalar_out").source_lines


def test_who_holds_the_memory_at_the_peak() -> None:
    class Wide(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = torch.cat([x, x, x, x], 1)
            return torch.relu(wide).sum(1)

    found = etgraph.profile(Wide(), example_inputs=(torch.ones(4, 100),), recipe="portable", runs=1)
    (arena,) = found.methods["forward"].arenas
    assert arena.peak_at == "at instruction 1 (aten::relu.out)"
    assert [holder.nbytes for holder in arena.holders] == [6400, 6400]
    assert arena.peak_bytes == 12800
    assert arena.nbytes >= arena.peak_bytes
    assert "torch.cat" in arena.holders[0].source_lines[0]
    assert arena.holders[0].role == "of instruction 0 (aten::cat.out)"


def test_inputs_are_held_before_they_are_read_and_outputs_until_the_end() -> None:
    class Spread(torch.nn.Module):
        def forward(self, x: torch.Tensor, late: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            early = torch.neg(x)
            wide = torch.cat([x, x, x, x], 1)
            return early, torch.relu(wide).sum(1) * late

    inputs = (torch.ones(4, 100), torch.ones(4))
    (arena,) = etgraph.profile(Spread(), example_inputs=inputs, recipe="portable", runs=1).methods["forward"].arenas
    assert arena.peak_at == "at instruction 2 (aten::relu.out)"
    roles = {holder.role: holder.nbytes for holder in arena.holders}
    assert roles["output 0, of instruction 0 (aten::neg.out)"] == 1600
    assert roles["input 1"] == 16
    assert arena.peak_bytes == 2 * 6400 + 1600 + 16


def test_buffers_are_held_all_the_time_and_views_are_counted_once() -> None:
    (arena,) = profiled("cache").methods["forward"].arenas
    assert [holder.role for holder in arena.holders].count("buffer") == 2
    assert sum(holder.nbytes for holder in arena.holders) == arena.peak_bytes <= arena.nbytes


def test_a_backend_that_this_host_lacks_is_one_clear_line_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from executorch.extension.pybindings import portable_lib

    from stages.profiling import profile_program

    model, inputs, _ = made("conv")
    program: Any = etgraph.run(model, inputs, recipe="portable").artifact
    elsewhere = replace(program, methods={"forward": {**program.methods["forward"], "backends": ["MoonBackend"]}})
    monkeypatch.delattr(portable_lib, "_load_for_executorch_from_buffer")
    with pytest.raises(etgraph.BackendUnavailableError, match="needs MoonBackend"):
        profile_program(elsewhere, {"forward": elsewhere.example_inputs["forward"]}, inputs="", runs=1)


def test_json_and_text() -> None:
    found = profiled("conv", "xnnpack_fp32")
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["methods"]["forward"]["kernels"][0]["name"] == "XnnpackBackend"
    assert data["methods"]["forward"]["arenas"][0]["holders"]
    text = str(found)
    assert "aten::mean.out  [models.py:" in text
    assert "planned" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": True}, "runs is True"),
        ({"etrecord": "nothing.etrecord"}, "there is no ETRecord nothing.etrecord"),
        ({"inputs": (torch.ones(1, 3, 99, 99),)}, "the runtime refuses these inputs"),
    ],
)
def test_wrong_requests_are_refused(arguments: Any, expected: str) -> None:
    model, inputs, _ = made("conv")
    with pytest.raises(etgraph.UsageError, match=expected):
        etgraph.profile(model, example_inputs=inputs, recipe="portable", **arguments)


@pytest.mark.parametrize(("content", "expected"), [(b"", "no ETRecord"), (b"PK\x05\x06" + b"\0" * 18, "no ETRecord")])
def test_a_record_that_is_none_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "bad.etrecord").write_bytes(content)
    model, inputs, _ = made("conv")
    with pytest.raises(etgraph.ArtifactFileError, match=expected):
        etgraph.profile(model, example_inputs=inputs, recipe="portable", runs=1, etrecord=tmp_path / "bad.etrecord")
