"""Files that others wrote: recognised, repaired, and never run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
from codec_models import cases, exported
from codec_support import ROOT, artifact, converted, final_bytes, from_exported, in_new_process, prepared, save

import etgraph
from etgraph.errors import ArtifactFileError, EtgraphWarning, UntrustedFileError, UsageError
from stages.codec import fingerprint
from stages.codec.foreign import load_file, recognise_file


def rewrite(source: Path, target: Path, change) -> Path:
    """Copy an archive, giving each member's name and bytes to `change`; None leaves the member out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            data = change(info.filename, old.read(info))
            if data is not None:
                new.writestr(zipfile.ZipInfo(info.filename), data)
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One file of each form, of the same network."""
    from executorch.exir.serde import serialize

    path = tmp_path_factory.mktemp("foreign")
    program = exported("activations")
    torch.export.save(program, path / "m.pt2")
    serialize.save(from_exported(program, "edge")["forward"], path / "m.exir")
    lowered = from_exported(program, "lowered")
    serialize.save(lowered["forward"], path / "low.exir")
    (path / "m.pte").write_bytes(final_bytes(lowered, "xnnpack"))
    save(from_exported(program, "edge"), path / "m.edge.etg")
    return path


def test_forms_are_told_apart_without_torch(folder):
    """Each file's form and kind are known before torch is imported."""
    code = f"""
        import sys
        from pathlib import Path
        from stages.codec.foreign import recognise_file
        folder = Path({str(folder)!r})
        seen = {{p.name: (recognise_file(p).form, recognise_file(p).kind) for p in folder.iterdir()}}
        assert seen["m.pt2"] == ("pt2", "exported"), seen
        assert seen["m.exir"] == ("exir", "edge"), seen
        assert seen["low.exir"] == ("exir", "lowered"), seen
        assert seen["m.pte"] == ("pte", "executorch"), seen
        assert seen["m.edge.etg"] == ("etgraph", "edge"), seen
        assert not {{"torch", "executorch"}} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=ROOT)


def test_a_pt2_of_torch_goes_on_to_the_same_bytes(folder):
    """A standard file loads without trust, with its example inputs, and gives the same `.pte`."""
    loaded = load_file(folder / "m.pt2")
    assert loaded.kind == "exported"
    assert torch.equal(loaded.example_inputs["forward"][0].args[0], cases()["activations"][1][0])
    assert final_bytes(loaded, "xnnpack") == final_bytes(artifact("activations", "exported"), "xnnpack")


def test_an_exir_edge_file_is_put_back(folder):
    """Loaded by upstream the program is another one; repaired it gives the same bytes, and it is told."""
    with pytest.warns(EtgraphWarning, match="unused outputs.*positional arguments.*requires_grad"):
        loaded = load_file(folder / "m.exir")
    assert loaded.kind == "edge"
    expected = final_bytes(artifact("activations", "edge"), "xnnpack")
    assert final_bytes(loaded, "xnnpack") == expected
    assert loaded.provenance[-1].stage == "repaired"
    from executorch.exir.serde import serialize

    from etgraph.artifact import Edge

    unrepaired = Edge(methods={"forward": serialize.load(str(folder / "m.exir"))})
    assert final_bytes(unrepaired, "xnnpack") != expected


class Hardswish(torch.nn.Module):
    """An operator that Core ATen lacks."""

    def forward(self, x):
        return torch.nn.functional.hardswish(x)


class Widened(torch.nn.Module):
    """Converts what XNNPACK has added, by an operator with a dim order or without."""

    def forward(self, x):
        return (x + 1).to(torch.float64)


@pytest.mark.parametrize(
    ("model", "config", "choice"),
    [
        (Hardswish(), {"preserve_ops": [torch.ops.aten.hardswish.default]}, "preserve_ops"),
        (Widened(), {"_skip_dim_order": True}, "skip_dim_order"),
    ],
)
def test_choices_that_an_exir_file_forgets_are_read_from_its_graph(tmp_path, model, config, choice):
    """Operators kept whole, and dim order skipped: upstream loads a program that its own verifier then refuses."""
    from executorch.exir import EdgeCompileConfig, to_edge
    from executorch.exir.serde import serialize

    exported_program = torch.export.export(model, (torch.randn(2, 3),))
    manager = to_edge(exported_program, compile_config=EdgeCompileConfig(**config))
    serialize.save(manager.exported_program(), tmp_path / "m.exir")
    with pytest.warns(EtgraphWarning, match="it had been forgotten that"):
        loaded = load_file(tmp_path / "m.exir")
    made = etgraph.run(manager, to="edge").artifact
    assert getattr(made.compile_config, choice)
    assert getattr(loaded.compile_config, choice) == getattr(made.compile_config, choice)
    lowered = [etgraph.run(a, recipe="xnnpack_fp32", to="lowered").artifact for a in (loaded, made)]
    assert lowered[0].compile_config == lowered[1].compile_config
    assert str(lowered[0]["forward"].graph) == str(lowered[1]["forward"].graph)


def test_an_etrecord_of_a_program_with_operators_kept_whole_goes_on(tmp_path):
    """An edge program on its way to XNNPACK keeps linear whole, and its record comes back as that."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    result = etgraph.run(model, (torch.randn(2, 4),), "xnnpack_fp32", etrecord=tmp_path / "m.etrecord")
    with pytest.warns(EtgraphWarning, match="these are kept whole: aten.linear.default"):
        again = etgraph.run(tmp_path / "m.etrecord", recipe="xnnpack_fp32")
    assert again.artifact.buffer == result.artifact.buffer


def test_an_exir_lowered_file_emits_the_same(folder):
    """A delegate with named data comes back, and so do the programs inside it."""
    with pytest.warns(EtgraphWarning):
        loaded = load_file(folder / "low.exir")
    assert loaded.kind == "lowered"
    assert final_bytes(loaded, "xnnpack") == (folder / "m.pte").read_bytes()


def test_a_pte_is_taken_for_inspection(folder):
    """Its bytes and what it says of its methods."""
    loaded = load_file(folder / "m.pte")
    assert loaded.kind == "executorch"
    assert loaded.buffer == (folder / "m.pte").read_bytes()
    assert loaded["forward"]["backends"] == ["XnnpackBackend"]


def test_an_etgraph_file_is_loaded_through_the_same_door(folder):
    """The kind can be asked for, and another one is refused."""
    assert fingerprint(load_file(folder / "m.edge.etg")) == fingerprint(artifact("activations", "edge"))
    with pytest.raises(UsageError, match="at edge, and 'lowered' was asked for"):
        load_file(folder / "m.edge.etg", kind="lowered")


def test_an_etrecord_offers_its_programs(tmp_path):
    """Edge by default, exported when asked for."""
    from executorch.exir import to_edge

    manager = to_edge(exported("linear"), generate_etrecord=True)
    record = manager.to_executorch().get_etrecord()
    path = tmp_path / "m.etrecord"
    record.save(str(path))
    described = recognise_file(path)
    assert described.form == "etrecord"
    assert set(described.choices) == {"edge", "exported"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_file(path).kind == "edge"
        assert final_bytes(load_file(path), "portable") == final_bytes(artifact("linear", "edge"), "portable")
        assert load_file(path, kind="exported").kind == "exported"
    with pytest.raises(UsageError, match="'lowered' was asked for"):
        load_file(path, kind="lowered")


def test_a_quantized_pt2_loads_where_nothing_else_was_imported(tmp_path):
    """The registry of q/dq operators is imported by us."""
    with torch.no_grad():
        torch.export.save(converted(prepared(qat=False)), tmp_path / "q.pt2")
    assert recognise_file(tmp_path / "q.pt2").kind == "quantized"
    code = "from stages.codec.foreign import load_file\nprint(load_file(sys.argv[1]).kind)"
    assert in_new_process(code, tmp_path / "q.pt2") == "quantized"


class Evil:
    """Unpickled, it would make a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


def change_program(folder, tmp_path, change, source="m.pt2"):
    """Change the JSON of a file's program."""

    def edit(name, data):
        if not name.endswith((".json",)) or "config" in name:
            return data
        program = json.loads(data)
        change(program)
        return json.dumps(program).encode()

    return rewrite(folder / source, tmp_path / source, edit)


def test_pickled_example_inputs_are_left_out_and_never_run(folder, tmp_path):
    """Example inputs that would run code are dropped with a warning; the program is loaded."""
    mark = tmp_path / "ran"
    payload = io.BytesIO()
    torch.save(((Evil(mark),), {}), payload)

    def edit(name, data):
        return payload.getvalue() if "sample_inputs" in name else data

    path = rewrite(folder / "m.pt2", tmp_path / "evil.pt2", edit)
    with pytest.warns(EtgraphWarning, match="example inputs are pickled"):
        loaded = load_file(path)
    assert not mark.exists()
    assert not loaded.example_inputs


def test_pickled_weights_need_trust(folder, tmp_path):
    """A weight marked as pickled is refused before anything is unpickled."""
    mark = tmp_path / "ran"
    payload = io.BytesIO()
    torch.save(Evil(mark), payload)

    def edit(name, data):
        if name.endswith("weights_config.json"):
            config = json.loads(data)
            next(iter(config["config"].values()))["use_pickle"] = True
            return json.dumps(config).encode()
        return payload.getvalue() if name.endswith("weight_0") else data

    path = rewrite(folder / "m.pt2", tmp_path / "evil.pt2", edit)
    with pytest.raises(UntrustedFileError, match=r"pickled weight.*could run code"):
        load_file(path)
    assert not mark.exists()


def nodes(program):
    return program["graph_module"]["graph"]["nodes"]


ATTACKS = {
    "guards": lambda p: p.update(guards_code=["__import__('os').system('true')"]),
    "guard attribute": lambda p: p.update(guards_code=["L['x'].__class__.__mro__[1] == 1"]),
    "expression": lambda p: nodes(p)[0]["inputs"].append(
        {"name": "e", "arg": {"as_sym_int": {"as_expr": {"expr_str": "__import__('os')", "hint": None}}}, "kind": 1}
    ),
    "expression call": lambda p: nodes(p)[0]["inputs"].append(
        {"name": "e", "arg": {"as_expr": {"expr_str": "lambdify(x, 1)"}}, "kind": 1}
    ),
    "name": lambda p: p["graph_module"]["graph"]["inputs"][0]["as_tensor"].update(name="x=print(1)"),
    "function": lambda p: nodes(p)[0].update(target="torch.hub.load"),
    "container": lambda p: p["graph_module"]["module_call_graph"][0]["signature"].update(
        in_spec=json.dumps(
            [1, {"type": "collections.defaultdict", "children_spec": [],
                 "context": json.dumps({"default_factory_module": "evil", "default_factory_name": "x"})}]
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_could_run_code_is_refused(folder, tmp_path, attack):
    """Guards, expressions, names, functions and containers outside of the grammar need trust."""
    with pytest.raises(UntrustedFileError):
        load_file(change_program(folder, tmp_path, ATTACKS[attack]))


def test_a_dynamic_pt2_needs_no_trust(tmp_path):
    """The expressions and guards that torch itself writes are in the grammar."""
    for name in ("sizes", "nested"):
        torch.export.save(exported(name), tmp_path / f"{name}.pt2")
        assert load_file(tmp_path / f"{name}.pt2").kind == "exported"


def test_trust_loads_what_torch_loads(folder):
    """With trust the file goes through torch's own loader."""
    assert load_file(folder / "m.pt2", trust=True).kind == "exported"


def test_other_versions_are_named(folder, tmp_path):
    """Another schema is a message with both numbers."""
    path = change_program(folder, tmp_path, lambda p: p["schema_version"].update(major=4), "m.exir")
    with pytest.raises(ArtifactFileError, match="schema 4, and the installed executorch reads 5"):
        load_file(path)
    path = change_program(folder, tmp_path, lambda p: p["schema_version"].update(major=99))
    with pytest.raises(ArtifactFileError, match="cannot be loaded"):
        load_file(path)


def test_wrong_things_are_named(tmp_path):
    """A state dict, TorchScript, a pickle, text, an empty file, a folder: each is called what it is."""
    import pickle

    torch.save({"w": torch.ones(2)}, tmp_path / "state.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(torch.nn.ReLU(), torch.ones(1)), tmp_path / "script.pt")
    (tmp_path / "pickle.pkl").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "text.txt").write_text("hello, this is not a program\n")
    (tmp_path / "empty.pte").write_bytes(b"")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "b")
    expected = {
        "state.pt": "state dict",
        "script.pt": "TorchScript",
        "pickle.pkl": "a pickle",
        "text.txt": "a text file",
        "empty.pte": "is empty",
        "noise.bin": "nothing that is known",
        "other.zip": "archive of something else",
        ".": "is a folder",
        "absent": "No such file",
    }
    for name, words in expected.items():
        with pytest.raises(ArtifactFileError, match=words) as error:
            load_file(tmp_path / name)
        assert "\n" not in error.value.problem


def test_damaged_foreign_files_are_refused_in_one_line(folder, tmp_path):
    """Cut anywhere, or with a bit flipped in a member, a foreign file is an error of ours and of one line."""
    for name in ("m.pt2", "m.exir"):
        good = (folder / name).read_bytes()
        for size in (10, 100, len(good) // 2, len(good) - 1):
            (tmp_path / "cut").write_bytes(good[:size])
            with pytest.raises(ArtifactFileError) as error:
                load_file(tmp_path / "cut")
            assert "\n" not in error.value.problem
        with zipfile.ZipFile(folder / name) as archive:
            places = [i.header_offset + 200 + i.file_size // 2 for i in archive.infolist() if i.file_size > 500]
        for at in places:
            bad = bytearray(good)
            bad[at] ^= 4
            (tmp_path / "flipped").write_bytes(bad)
            with pytest.raises(ArtifactFileError):
                load_file(tmp_path / "flipped")
    pte = (folder / "m.pte").read_bytes()
    (tmp_path / "cut.pte").write_bytes(pte[: len(pte) // 2])
    with pytest.raises(ArtifactFileError, match="cut to"):
        load_file(tmp_path / "cut.pte")
