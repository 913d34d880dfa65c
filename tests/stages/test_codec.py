"""Promises of the codec: what is loaded is what was saved, and becomes the same `.pte`."""

from __future__ import annotations

import copy

import pytest
import torch
from codec_models import Linear, cases, exported
from codec_support import artifact, final_bytes, from_exported, in_new_process, load, save
from torch import nn

import etgraph
from etgraph import container
from etgraph.artifact import Edge, Executorch, Exported, Inputs, Lowered, Module, Provenance
from etgraph.blobs import MemoryBlobs
from etgraph.errors import ArtifactFileError, UsageError
from stages.codec import decode, encode, fingerprint, fingerprint_of_document

NAMES = ["activations", "recurrent", "branches", "loop", "tied", "cache", "nested", "sizes", "types"]


def without_record(document):
    """A document without the record of what was left out, which is empty the second time."""
    document["debug"].pop("dropped")
    return document


@pytest.mark.parametrize("name", NAMES)
def test_encoding_a_decoded_program_gives_the_same_document(name, tmp_path):
    """Nothing is lost or changed at exported, ATEN and edge, in meaning and in what only tools read."""
    program = exported(name)
    for kind in ("exported", "aten", "edge"):
        source = from_exported(program, kind)
        document, blobs = encode(source)
        loaded = load(save(source, tmp_path / "m.etg"))
        again, blobs_again = encode(loaded)
        assert without_record(again) == without_record(document)
        assert blobs.keys() == blobs_again.keys()
        assert fingerprint(loaded) == fingerprint(source) == fingerprint_of_document(document)


@pytest.mark.parametrize("name", ["activations", "recurrent", "branches", "tied", "nested", "types"])
def test_a_loaded_program_computes_the_same_in_python(name, tmp_path):
    """`module()` of the loaded program gives the outputs of the one in memory, to the bit."""
    _, args, kwargs, _ = cases()[name]
    source = artifact(name, "exported")
    loaded = load(save(source, tmp_path / "m.etg"))
    with torch.no_grad():
        expected, got = (a["forward"].module()(*args, **kwargs) for a in (source, loaded))
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_a_loaded_lowered_program_runs_and_can_be_copied(tmp_path):
    """A delegate runs its original graph, in the loaded program and in a copy of it."""
    args = cases()["linear"][1]
    source = artifact("linear", "lowered")
    loaded = load(save(source, tmp_path / "m.etg"))
    with torch.no_grad():
        expected = source["forward"].module()(*args)
        torch.testing.assert_close(loaded["forward"].module()(*args), expected, rtol=0, atol=0)
        copied = Lowered(methods={"forward": copy.deepcopy(loaded["forward"])})
    assert final_bytes(copied, "xnnpack") == final_bytes(source, "xnnpack")


RESUME = """
import hashlib
from pathlib import Path
from codec_support import final_bytes, load
path, backend = Path(sys.argv[1]), sys.argv[2]
digests = []
for file in sorted(path.glob("*.etg")):
    digests.append(file.name + "=" + hashlib.sha256(final_bytes(load(file), backend)).hexdigest())
print(" ".join(digests))
"""


@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("portable", ["recurrent", "branches", "tied"]),
        ("xnnpack", ["activations", "cache", "nested"]),
        pytest.param("xnnpack", ["recurrent", "tied", "sizes"], marks=pytest.mark.slow),
        pytest.param("vulkan", ["activations", "linear"], marks=pytest.mark.slow),
    ],
)
def test_resumed_in_a_new_process_the_pte_is_the_same_byte_for_byte(backend, names, tmp_path):
    """Saved at exported, edge and lowered, loaded elsewhere and taken on: the same `.pte`."""
    import hashlib

    expected = []
    for name in names:
        program = exported(name)
        kinds = ["exported", "edge", *(["lowered"] if backend != "portable" else [])]
        for kind in kinds:
            source = from_exported(program, kind, backend)
            save(source, tmp_path / f"{name}.{kind}.etg")
            expected.append(f"{name}.{kind}.etg=" + hashlib.sha256(final_bytes(source, backend)).hexdigest())
    assert in_new_process(RESUME, tmp_path, backend).split() == sorted(expected)


@pytest.mark.slow
def test_core_ml_resumed_has_the_same_structure_and_size(tmp_path):
    """Core ML's package ids differ from run to run; a saved lowered program holds its bytes and is exact."""
    source = artifact("linear", "lowered", "coreml")
    loaded = load(save(source, tmp_path / "m.etg"))
    assert final_bytes(loaded, "coreml") == final_bytes(source, "coreml")
    edge = artifact("linear", "edge")
    again = final_bytes(load(save(edge, tmp_path / "e.etg")), "coreml")
    assert len(again) == len(final_bytes(edge, "coreml"))


def test_ties_views_and_grad_flags_are_as_they_were(tmp_path):
    """Tied weights stay one object, views keep strides and share storage, parameters keep requires_grad."""
    source = artifact("tied", "exported")["forward"]
    loaded = load(save(Exported(methods={"forward": source}), tmp_path / "m.etg"))["forward"]

    def facts(program):
        return {
            name: (type(t), t.requires_grad, t.dtype, t.shape, t.stride(), t.storage_offset())
            for name, t in program.state_dict.items()
        }

    def ties(program):
        pointers = [t.untyped_storage().data_ptr() for t in program.state_dict.values()]
        return [pointers.index(p) for p in pointers]

    assert facts(loaded) == facts(source)
    assert ties(loaded) == ties(source)
    for name, tensor in source.state_dict.items():
        assert torch.equal(tensor, loaded.state_dict[name])


def test_equal_storages_stay_apart(tmp_path):
    """Two buffers of equal content are one blob in the file and two tensors in memory."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(5000))
            self.register_buffer("b", torch.zeros(5000))

        def forward(self, x):
            return x + self.a + self.b

    path = save(Exported(methods={"forward": torch.export.export(Two(), (torch.ones(5000),))}), tmp_path / "m.etg")
    state = load(path)["forward"].state_dict
    before = path.read_bytes()
    state["a"].fill_(1)
    assert state["b"].sum() == 0
    assert path.read_bytes() == before
    assert before.count(bytes(20_000)) == 1


def test_unused_outputs_and_argument_forms_are_kept(tmp_path):
    """No getitem is invented, positional arguments stay positional, users keep their order."""
    source = artifact("activations", "edge")["forward"]
    loaded = load(save(Edge(methods={"forward": source}), tmp_path / "m.etg"))["forward"]

    def shape(program):
        return [
            (n.op, n.name, str(n.target), str(n.args), str(n.kwargs), [u.name for u in n.users])
            for n in program.graph.nodes
        ]

    assert shape(loaded) == shape(source)
    assert any("hardtanh" in str(entry) and "0.0, 6.0" in str(entry) for entry in shape(loaded))


def test_reordered_users_are_kept(tmp_path):
    """The order of users, which passes walk, is kept when it is not the order of the graph."""
    program = exported("activations")
    node = max(program.graph.nodes, key=lambda n: len(n.users))
    node.users = dict(reversed(node.users.items()))
    loaded = load(save(Exported(methods={"forward": program}), tmp_path / "m.etg"))["forward"]
    again = next(n for n in loaded.graph.nodes if n.name == node.name)
    assert [u.name for u in again.users] == [u.name for u in node.users]


def test_the_verifier_keeps_its_choices(tmp_path):
    """Preserved operators and the dim order choice are those that the edge program was made with."""
    from executorch.exir import EdgeCompileConfig, to_edge

    op = torch.ops.aten.hardswish.default

    class Swish(nn.Module):
        def forward(self, x):
            return torch.nn.functional.hardswish(x)

    program = torch.export.export(Swish(), (torch.ones(3),))
    edge = to_edge(program, compile_config=EdgeCompileConfig(preserve_ops=[op], _skip_dim_order=True))
    loaded = load(save(Edge(methods={"forward": edge.exported_program()}), tmp_path / "m.etg"))["forward"]
    verifier = loaded.verifier()
    assert op in verifier._preserve_ops
    assert not verifier.use_dim_order
    verifier.check(loaded)


def test_what_belongs_to_an_artifact_is_kept(tmp_path):
    """Several methods, example inputs, dynamic shapes, constant methods, provenance."""
    from torch.export import Dim

    batch = Dim("batch", min=1, max=8)
    shapes = {"x": {0: batch, 1: 2 * batch + 1}, "y": [Dim.AUTO, Dim.STATIC, None, 3]}
    program = exported("linear")
    source = Exported(
        methods={"encode": program, "decode": program},
        example_inputs={"encode": (Inputs(torch.ones(2, 8)), Inputs({"a": (1, None)}, k=[torch.zeros(1), "s"]))},
        dynamic_shapes={"encode": shapes},
        constant_methods={
            "vocab": 7,
            "table": [1.5, float("inf"), True, "x"],
            "t": torch.arange(3),
            "b": bytes(range(200)),
        },
        provenance=(Provenance("torch_export", "exported", (("strict", "False"),)),),
    )
    loaded = load(save(source, tmp_path / "m.etg"))
    assert list(loaded) == ["encode", "decode"]
    assert loaded["encode"] is loaded["decode"]
    first, second = loaded.example_inputs["encode"]
    assert torch.equal(first.args[0], torch.ones(2, 8))
    assert second.args == ({"a": (1, None)},)
    assert second.kwargs["k"][1] == "s"
    assert loaded.constant_methods["vocab"] == 7
    assert loaded.constant_methods["table"] == [1.5, float("inf"), True, "x"]
    assert loaded.constant_methods["b"] == bytes(range(200))
    assert torch.equal(loaded.constant_methods["t"], torch.arange(3))
    assert loaded.provenance == source.provenance
    again = loaded.dynamic_shapes["encode"]
    assert again["x"][0].__name__ == "batch"
    assert (again["x"][0].min, again["x"][0].max) == (1, 8)
    assert again["x"][1].root is again["x"][0]
    assert again["x"][1].fn(5) == 11
    assert again["y"] == [Dim.AUTO, Dim.STATIC, None, 3]
    assert fingerprint(loaded) == fingerprint(source)


def test_emitted_programs_keep_bytes_pieces_and_debug_maps(tmp_path):
    """An executorch artifact comes back with its pieces, data files and maps; its fingerprint ignores the pieces."""
    big = bytes(range(256)) * 40
    debug = {"delegate_map": {"forward": {0: {"name": "x", "delegate_map": {1: (2, 3)}}}}}
    source = Executorch(
        methods={"forward": {"inputs": [{"type": "tensor", "shape": [1]}]}},
        pieces=(b"head", b"pad", big, b"tail"),
        data_pieces={"w.ptd": (big,)},
        debug=debug,
    )
    loaded = load(save(source, tmp_path / "m.etg"))
    assert loaded.buffer == source.buffer
    assert loaded.data_files == {"w.ptd": big}
    assert dict(loaded.debug) == debug
    assert dict(loaded.methods) == dict(source.methods)
    joined = Executorch(methods=source.methods, pieces=(source.buffer,), data_pieces={"w.ptd": (big,)})
    assert fingerprint(joined) == fingerprint(source) == fingerprint(loaded)
    assert (tmp_path / "m.etg").read_bytes().count(big) == 1


def test_a_dynamic_program_goes_on_from_memory_and_from_a_file_alike(tmp_path):
    """Retracing gives the same edge program, whatever was traced before with the same symbols."""
    program = exported("sizes")
    loaded = load(save(Exported(methods={"forward": program}), tmp_path / "m.etg"))["forward"]
    edges = [from_exported(p, "edge") for p in (program, loaded, program, loaded)]
    assert len({fingerprint(edge) for edge in edges}) == 1
    assert loaded._guards_code == program._guards_code
    assert str(loaded.range_constraints) == str(program.range_constraints)


def test_data_dependent_sizes_are_kept(tmp_path):
    """Unbacked symbols, their ranges and bindings and the assertions about them survive."""

    class Data(nn.Module):
        def forward(self, x):
            n = x.sum().item()
            torch._check(n >= 1)
            torch._check(n < 8)
            return torch.ones(n) + 1

    program = torch.export.export(Data(), (torch.tensor([1, 2]),))
    source = Exported(methods={"forward": program})
    loaded = load(save(source, tmp_path / "m.etg"))
    assert without_record(encode(loaded)[0]) == without_record(encode(source)[0])
    edge = fingerprint(from_exported(loaded["forward"], "edge"))
    assert edge == fingerprint(from_exported(program, "edge"))


def test_a_module_is_refused_with_what_to_do():
    """An eager module is no program."""
    with pytest.raises(UsageError, match="eager module") as error:
        encode(Module(methods={"forward": nn.Linear(1, 1)}))
    assert "Export it" in str(error.value)


def test_a_rewritten_program_is_refused():
    """What to_executorch has rewritten is not an edge program any more, and the node is named."""
    from executorch.exir import to_edge

    manager = to_edge(exported("linear"))
    manager.to_executorch()
    with pytest.raises(UsageError, match=r"method 'forward', node .*to_executorch has rewritten|cannot be kept"):
        encode(Edge(methods={"forward": manager.exported_program()}))


def test_a_subclass_tensor_is_refused_by_name():
    """A tensor subclass in the state dict is named, with its class."""

    class Strange(torch.Tensor):
        pass

    program = exported("linear")
    program.state_dict["linear.bias"] = torch.zeros(4).as_subclass(Strange)
    with pytest.raises(UsageError, match=r"'linear.bias'.*Strange"):
        encode(Exported(methods={"forward": program}))


def test_nothing_in_a_document_is_executed():
    """Names that would end up in generated code, and operators that are not operators, are refused."""
    document, blobs = encode(artifact("linear", "exported"))
    node = next(n for n in document["meaning"]["graphs"][0]["nodes"] if n["op"] == "placeholder")

    def refused(change):
        changed = copy.deepcopy(document)
        change(changed["meaning"])
        with pytest.raises((ArtifactFileError, UsageError)):
            decode(changed, MemoryBlobs(blobs))

    def nodes(meaning):
        return meaning["graphs"][0]["nodes"]

    assert node["name"].isidentifier()
    evil = "x=__import__('os').system('true')"
    refused(lambda m: nodes(m)[0].update(name=evil))
    refused(lambda m: nodes(m)[0].update(target=evil))
    refused(lambda m: next(n for n in nodes(m) if n["op"] == "call_function").update(target="py:os.system"))
    refused(lambda m: next(n for n in nodes(m) if n["op"] == "call_function").update(target="op:aten::x.y"))
    refused(lambda m: next(n for n in nodes(m) if n["op"] == "call_function").update(kwargs=[[evil, 1]]))
    refused(lambda m: m["programs"][0]["state"][0].__setitem__(0, '"+' + evil))
    refused(lambda m: m["programs"][0]["signature"]["inputs"][0].__setitem__(2, '"+' + evil))
    refused(lambda m: m["table"].append(1) or nodes(m)[0]["meta"].append(["val", {"unknown": 1}]))


def test_an_unknown_operator_is_named_with_what_to_import():
    """An operator of a library that is not installed is an error that names it."""
    document, blobs = encode(artifact("linear", "exported"))
    node = next(n for n in document["meaning"]["graphs"][0]["nodes"] if n["op"] == "call_function")
    node["target"] = "op:strange_lib::thing.default"
    with pytest.raises(UsageError, match=r"strange_lib::thing.default.*not registered"):
        decode(document, MemoryBlobs(blobs))


def test_another_schema_is_a_clear_message():
    """A document of another schema is refused by its number."""
    document, blobs = encode(artifact("linear", "exported"))
    with pytest.raises(ArtifactFileError, match="schema 99"):
        decode({**document, "schema": 99}, MemoryBlobs(blobs))


def test_a_model_of_one_layer_shares_its_weights_between_files(tmp_path):
    """Exported and edge programs name the same blobs."""
    program = exported("linear")
    weights = [set(encode(from_exported(program, kind))[1]) for kind in ("exported", "edge")]
    assert weights[0] & weights[1]
    assert isinstance(Linear(), nn.Module)
    path = save(from_exported(program, "edge"), tmp_path / "m.etg")
    assert weights[1] == set(container.read(path))


def test_what_arms_quantizers_note_at_nodes_is_kept(tmp_path):
    """Cortex-M takes only the convolutions that are marked as quantized."""
    from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo

    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    node.meta["custom"] = {ArmAnnotationInfo.CUSTOM_META_KEY: ArmAnnotationInfo(quantized=True)}
    path = etgraph.run(program, to="exported", cache=False).save(tmp_path / "net.exported.etg")
    loaded = next(node for node in etgraph.load(path)["forward"].graph.nodes if node.op == "call_function")
    assert loaded.meta["custom"] == {ArmAnnotationInfo.CUSTOM_META_KEY: {"quantized": True}}
