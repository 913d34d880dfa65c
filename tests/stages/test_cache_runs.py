"""Real runs through the cache: what is reused, that it is what was built, and what happens when the cache is harmed."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from forks import forks, is_alive, kill, wait_for
from models import made
from torch import nn

import etgraph
from etgraph import memo
from etgraph.registry import registry


@pytest.fixture
def cache(tmp_path):
    return etgraph.Cache(tmp_path / "cache")


def outcomes(result):
    return {step.stage: step.outcome for step in result.steps}


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5000), nn.ReLU(), nn.Linear(5000, 2)).eval(), (torch.randn(2, 4),)


def test_example_inputs_that_a_stage_has_put_in_the_place_of_those_given_are_served(cache):
    """All others are those of the run that is served."""
    with registry.scratch():

        @etgraph.stage(reads_inputs=False)
        def zeros(program: etgraph.Exported) -> etgraph.Exported:
            """Give other example inputs."""
            return replace(program, example_inputs={"forward": (etgraph.Inputs(torch.zeros(2, 4)),)})

        recipe = etgraph.Recipe(name="zeros", stages={"zeros": {}})
        for outcome, number in (("ran", 1.0), ("reused", 2.0)):
            given = (torch.full((2, 4), number),)
            result = etgraph.run(small()[0], given, recipe, "exported", cache=cache, keep=["module"])
            assert outcomes(result) == {"torch_export": outcome, "zeros": outcome}
            assert result.artifact.example_inputs["forward"][0].args[0].eq(0.0).all()
            assert result.source.example_inputs["forward"][0].args[0].eq(number).all()


# -- what is served is what was built ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "recipe"),
    [("conv", "xnnpack_fp32"), ("methods", "xnnpack_fp32"), ("cache", "portable"), ("attention", "portable")],
)
def test_what_is_served_is_what_was_built(cache, name, recipe):
    model, inputs, rest = made(name)
    kinds = ["exported", "edge"]
    arguments = {"recipe": recipe, "path": "split", "cache": cache, "keep": kinds, **rest}
    if recipe == "portable":
        arguments["path"] = "auto"
    first = etgraph.run(model, inputs, **arguments)
    second = etgraph.run(model, inputs, **arguments)
    assert set(outcomes(first).values()) == {"ran"}
    assert set(outcomes(second).values()) == {"reused"}
    assert second.artifact.buffer == first.artifact.buffer
    assert second.artifact.data_files == first.artifact.data_files
    assert second.artifact.provenance == first.artifact.provenance
    for kind in kinds:
        assert second[kind].fingerprint == first[kind].fingerprint
    assert second.verify().max_error < 1e-4
    assert first.cache_problems == second.cache_problems == ()


def test_an_intermediate_that_was_served_goes_on_to_the_same_bytes(cache):
    model, inputs = small()
    whole = etgraph.run(model, inputs, "portable", cache=False).artifact.buffer
    for _ in range(2):
        edge = etgraph.run(model, inputs, "portable", to="edge", cache=cache).artifact
        assert etgraph.run(edge, recipe="portable", cache=False).artifact.buffer == whole


def test_what_was_told_is_told_again(cache):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).train()
    for outcome in ("ran", "reused"):
        with pytest.warns(etgraph.EtgraphWarning, match="exported in training mode"):
            result = etgraph.run(model, (torch.ones(1, 4),), "portable", to="exported", cache=cache)
        assert outcomes(result) == {"torch_export": outcome}


def test_a_served_program_has_the_inputs_of_its_own_run(cache):
    model, inputs = small()
    etgraph.run(model, inputs, "portable", cache=cache)
    new = (torch.full((2, 4), 7.0),)
    result = etgraph.run(model, new, "portable", cache=cache, keep=["exported"])
    assert set(outcomes(result).values()) == {"reused"}
    served = result["exported"]
    assert served.example_inputs["forward"][0].args[0] is new[0]
    assert served.methods["forward"].example_inputs[0][0] is new[0]
    errors = result.verify()
    assert errors.samples == {"forward": 1}
    assert errors.max_error < 1e-4
    # And what is verified is the program, on these numbers.
    assert result.verify((torch.full((2, 4), -7.0),)).max_error < 1e-4


def test_inputs_of_another_shape_are_another_program(cache):
    model, inputs = small()
    etgraph.run(model, inputs, "portable", cache=cache)
    result = etgraph.run(model, (torch.randn(3, 4),), "portable", cache=cache)
    assert set(outcomes(result).values()) == {"ran"}
    assert result.verify().max_error < 1e-4


# -- only what changed -------------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch):
    """The kinds of the programs that were read from the cache."""
    kinds = []
    real = memo.decode

    def decode(document, blobs):
        kinds.append(document["kind"])
        return real(document, blobs)

    monkeypatch.setattr(memo, "decode", decode)
    return kinds


def test_another_memory_plan_costs_loading_the_lowered_program_and_emitting_it(cache, loaded):
    model, inputs = small()
    etgraph.run(model, inputs, cache=cache)
    loaded.clear()
    plan = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False))
    recipe = etgraph.get_recipe("xnnpack_fp32").with_options("to_executorch", backend_config=plan)
    result = etgraph.run(model, inputs, recipe, cache=cache)
    assert outcomes(result) == {
        "torch_export": "reused",
        "to_edge_transform_and_lower": "reused",
        "to_executorch": "ran",
    }
    assert loaded == ["lowered"]
    assert result.artifact.buffer == etgraph.run(model, inputs, recipe, cache=False).artifact.buffer


def test_other_options_of_the_partitioner_reuse_the_edge_program(cache, loaded):
    model, inputs = small()

    def run(cache, **options):
        chosen = {"partitioners": [XnnpackPartitioner(**options)]}
        recipe = etgraph.get_recipe("xnnpack_fp32").with_options("to_edge", **chosen)
        recipe = recipe.with_options("to_backend", **chosen)
        return etgraph.run(model, inputs, recipe, path="split", cache=cache)

    run(cache)
    loaded.clear()
    result = run(cache, per_op_mode=True)
    assert outcomes(result) == {
        "torch_export": "reused",
        "to_edge": "reused",
        "to_backend": "ran",
        "to_executorch": "ran",
    }
    assert loaded == ["edge"]
    assert "per_op_mode changed from False to True" in result.steps[2].reason
    assert result.artifact.buffer == run(False, per_op_mode=True).artifact.buffer


def test_one_weight_runs_everything_and_another_copy_of_the_model_nothing(cache):
    model, inputs = small()
    first = etgraph.run(model, inputs, "portable", cache=cache)
    again, _ = small()
    assert set(outcomes(etgraph.run(again, inputs, "portable", cache=cache)).values()) == {"reused"}
    with torch.no_grad():
        again[0].weight.view(torch.int32)[0, 0] ^= 1
    result = etgraph.run(again, inputs, "portable", cache=cache)
    assert set(outcomes(result).values()) == {"ran"}
    assert result.artifact.buffer != first.artifact.buffer


def test_a_buffer_that_was_updated_between_two_runs_is_another_program(cache):
    model, inputs, _ = made("cache")
    first = etgraph.run(model, inputs, "portable", cache=cache)
    with torch.no_grad():
        model(*inputs[0])
    second = etgraph.run(model, inputs, "portable", cache=cache)
    assert outcomes(second)["torch_export"] == "ran"
    assert second.artifact.buffer == etgraph.run(model, inputs, "portable", cache=False).artifact.buffer
    assert second.artifact.buffer != first.artifact.buffer


def test_two_methods_bound_to_one_module_and_to_two(cache):
    model, inputs, _ = made("methods")
    other, _, _ = made("methods")
    torch.nn.init.ones_(other.up.weight)
    for methods in (
        {"encode": model.encode, "decode": model.decode},
        {"encode": model.encode, "decode": other.decode},
    ):
        result = etgraph.run(methods, inputs, "portable", cache=cache)
        assert result.artifact.buffer == etgraph.run(methods, inputs, "portable", cache=False).artifact.buffer


def test_check_cache_finds_every_hit_to_be_what_is_built_now(cache):
    model, inputs = small()
    etgraph.run(model, inputs, cache=cache)
    result = etgraph.run(model, inputs, cache=cache, check_cache=True)
    assert set(outcomes(result).values()) == {"reused"}


def test_a_file_that_changes_while_it_is_run_is_refused(cache, tmp_path):
    model, inputs = small()
    other = nn.Linear(4, 3)
    path = tmp_path / "model.exported.etg"
    etgraph.run(model, inputs, to="exported", cache=False).save(path)
    etgraph.run(path, recipe="portable", to="edge", cache=cache)
    harmed = etgraph.get_recipe("portable").with_options("to_edge", preserve_ops=("aten.linear.default",))

    def overwrite(event):
        if event.name == "step_started":
            etgraph.run(other, (torch.ones(2, 4),), to="exported", cache=False).save(path)

    with pytest.raises(etgraph.UsageError, match="was changed while it was being run"):
        etgraph.run(path, recipe=harmed, to="edge", cache=cache, on_event=overwrite)
    result = etgraph.run(path, recipe=harmed, to="edge", cache=cache)
    assert outcomes(result) == {"to_edge": "ran"}


# -- processes ---------------------------------------------------------------------------------------------------------

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 5000)
        self.last = nn.Linear(5000, 2)

    def forward(self, x):
        return self.last(self.first(x).relu())

def make():
    return Net().eval(), (torch.ones(2, 4),)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with forks(tmp_path_factory.mktemp("runs")) as running:
        yield running


@pytest.fixture
def processes(server, tmp_path, monkeypatch):
    """A way to run commands in processes of their own, in a folder with `net.py`, on one cache."""
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    server.folder = tmp_path / "project"
    server.folder.mkdir()
    (server.folder / "net.py").write_text(NET)
    return server


RUN = ("run", "net.py:make", "--recipe", "portable", "-o", "out.pte")


def right_bytes(processes):
    processes.json(*RUN[:-1], "right.pte", "--no-cache")
    return (processes.folder / "right.pte").read_bytes()


def test_a_run_that_was_killed_loses_at_most_the_step_in_progress(processes, tmp_path):
    """Killed after its first, and after its second step was stored."""
    right = right_bytes(processes)
    for stored in (1, 2):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        process, _ = processes.start(*RUN)
        wait_for(lambda stored=stored: len(list((tmp_path / "cache").glob("entries/*/*"))) >= stored)
        kill(process)
        wait_for(lambda process=process: not is_alive(process))
        document = processes.json(*RUN)
        assert [step["outcome"] for step in document["steps"]][:stored] == ["reused"] * stored
        assert (processes.folder / "out.pte").read_bytes() == right
        assert document["warnings"] == []


def test_two_processes_on_one_key_build_it_once(processes):
    right = right_bytes(processes)
    started = [processes.start(*RUN[:-1], f"{name}.pte", "--json") for name in ("one", "other")]
    wait_for(lambda: not any(is_alive(process) for process, _ in started))
    documents = [json.loads(out.read_text()[out.read_text().index("{") :]) for _, out in started]
    for first, second in zip(*(document["steps"] for document in documents), strict=True):
        assert {first["outcome"], second["outcome"]} == {"ran", "reused"}
    assert (processes.folder / "one.pte").read_bytes() == right
    assert (processes.folder / "other.pte").read_bytes() == right


def test_a_cache_that_is_emptied_during_a_run_costs_only_time(processes, cache):
    """By another process, after each step."""
    model, inputs = small()
    right = etgraph.run(model, inputs, "portable", cache=False).artifact.buffer
    place = ("--cache-dir", str(cache.directory))

    def empty(event):
        if event.name == "step_finished":
            assert processes.json("cache", "prune", "--size", "0", *place)["kept"] == 0

    assert etgraph.run(model, inputs, "portable", cache=cache, on_event=empty).artifact.buffer == right
    etgraph.run(model, inputs, "portable", cache=cache)
    # Now the first step is found in the cache, and is gone by the time at which the second needs it.
    with pytest.warns(etgraph.EtgraphWarning, match="was lost from the cache during the run"):
        result = etgraph.run(model, inputs, "portable", cache=cache, on_event=empty)
    assert result.artifact.buffer == right
    assert any("was lost from the cache during the run" in problem for problem in result.cache_problems)
    assert result.verify().max_error < 1e-4


STACKTRACE = """
import importlib.util, json, sys
import etgraph
from executorch.exir import ExecutorchBackendConfig
sys.path.insert(0, ".")
import net
recipe = etgraph.get_recipe("portable").with_options(
    "to_executorch", backend_config=ExecutorchBackendConfig(emit_stacktrace=EMIT)
)
model, inputs = net.make()
result = etgraph.run(model, inputs, recipe)
result.save("out.pte")
print(json.dumps([step.outcome for step in result.steps]))
"""


def test_a_line_that_moved_is_written_anew_where_stack_traces_are_written(processes):
    def run(emit):
        shutil.rmtree(processes.folder / "__pycache__", ignore_errors=True)
        code, printed = processes("-c", STACKTRACE.replace("EMIT", str(emit)))
        assert code == 0, printed
        return json.loads(printed.splitlines()[-1]), (processes.folder / "out.pte").read_bytes()

    plain, traced = run(False), run(True)
    assert traced[1] != plain[1]
    assert b"net.py" in traced[1]
    assert run(True) == (["ran", "reused", "reused"], traced[1])
    (processes.folder / "net.py").write_text("\n\n\n" + NET)
    assert run(False) == (["reused", "reused", "reused"], plain[1])
    moved = run(True)
    assert moved[0][-1] == "ran"
    assert moved[1] != traced[1]


# -- damage ------------------------------------------------------------------------------------------------------------


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def swapped(path):
    other = next(p for p in sorted(path.parents[1].rglob("*")) if p.is_file() and p != path)
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "a bit flipped": flipped,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "swapped with another": swapped,
    "gone": lambda path: path.unlink(),
    "a folder": folder,
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache after one run, and the right bytes."""
    directory = tmp_path_factory.mktemp("filled")
    model, inputs = small()
    right = etgraph.run(model, inputs, "portable", cache=etgraph.Cache(directory)).artifact.buffer
    return directory, right


@pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")
@pytest.mark.parametrize("sort", ["entries", "blobs"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_gives_the_right_program_and_a_line(filled, tmp_path, sort, damage):
    """Every file of that sort, one after the other."""
    directory, right = filled
    model, inputs = small()
    files = [path.relative_to(directory) for path in sorted((directory / sort).rglob("*")) if path.is_file()]
    assert len(files) == {"entries": 3, "blobs": 3}[sort]
    told = 0
    for number, name in enumerate(files):
        harmed = tmp_path / str(number)
        shutil.copytree(directory, harmed)
        DAMAGE[damage](harmed / name)
        result = etgraph.run(model, inputs, "portable", cache=etgraph.Cache(harmed))
        assert result.artifact.buffer == right
        # A file that is gone was evicted, for all that anybody knows: the step says so, and it is no problem.
        told += bool(result.cache_problems) or any("gone from the cache" in step.reason for step in result.steps)
        again = etgraph.run(model, inputs, "portable", cache=etgraph.Cache(harmed))
        assert again.artifact.buffer == right
        assert set(outcomes(again).values()) == {"reused"}
    # What a warm run does not read, it does not look at either.
    assert told >= 1


@pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")
def test_a_directory_that_cannot_be_used_gives_the_right_program_and_a_line(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    model, inputs = small()
    cache = etgraph.Cache(tmp_path / "file")
    for _ in range(2):
        result = etgraph.run(model, inputs, "portable", cache=cache)
        assert result.verify().max_error < 1e-4
        assert ["cannot be used" in problem for problem in result.cache_problems] == [True]


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")
def test_a_full_disk_gives_the_right_program_and_a_line(small_disk):
    model, inputs = made("conv")[:2]
    right = etgraph.run(model, inputs, "portable", cache=False).artifact.buffer
    cache = etgraph.Cache(small_disk / "cache", size_limit="1GB")
    (small_disk / "filler").write_bytes(bytes(24_000))
    for _ in range(2):
        result = etgraph.run(model, inputs, "portable", cache=cache)
        assert result.artifact.buffer == right
    assert any("No space left" in problem for problem in result.cache_problems)


@pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")
def test_a_disk_that_became_read_only_serves_and_keeps_nothing(small_disk):
    model, inputs = nn.Linear(4, 2).eval(), (torch.ones(1, 4),)
    where = small_disk / "cache"
    right = etgraph.run(model, inputs, "portable", cache=etgraph.Cache(where, size_limit="1GB")).artifact.buffer
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = etgraph.run(model, inputs, "portable", cache=etgraph.Cache(where))
    assert result.artifact.buffer == right
    assert set(outcomes(result).values()) == {"reused"}
    other = etgraph.run(nn.Linear(4, 3), inputs, "portable", cache=etgraph.Cache(where))
    assert other.verify().max_error < 1e-4
    assert any("Read-only" in problem for problem in other.cache_problems)


# -- third parties -----------------------------------------------------------------------------------------------------

THIRD_PARTY = '''
import etgraph
from etgraph.artifact import Exported
from dataclasses import replace


@etgraph.stage
def calibrated(program: Exported, *, note: str = "") -> Exported:
    """Write down what the first example input is, as a stage that calibrates would."""
    value = float(program.example_inputs["forward"][0].args[0].sum())
    return replace(program, constant_methods={**program.constant_methods, "seen": value})
'''


def test_a_stage_of_a_third_party_that_looks_at_inputs_is_not_served_those_of_others(cache, tmp_path, monkeypatch):
    from etgraph.registry import registry

    (tmp_path / "third_party.py").write_text(THIRD_PARTY)
    monkeypatch.syspath_prepend(tmp_path)
    model, _ = small()
    with registry.scratch():
        __import__("third_party")
        recipe = etgraph.get_recipe("portable").with_options("calibrated")
        seen = []
        for value in (1.0, 2.0, 1.0):
            result = etgraph.run(model, (torch.full((2, 4), value),), recipe, "exported", cache=cache)
            seen.append((result.artifact.constant_methods["seen"], outcomes(result)["calibrated"]))
        assert seen == [(8.0, "ran"), (16.0, "ran"), (8.0, "reused")]
        assert outcomes(result)["torch_export"] == "reused"
    sys.modules.pop("third_party", None)
    assert Path(tmp_path / "third_party.py").exists()
