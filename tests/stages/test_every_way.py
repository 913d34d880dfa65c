"""Same bytes by every way: run through, stopped and resumed in memory from every kind, on every small model."""

import pytest
from models import MODELS, made, network

import etgraph

KINDS = ("module", "exported", "edge", "lowered", "executorch")


def pairs(kinds):
    return [(a, b) for i, a in enumerate(kinds) for b in kinds[i + 1 :]]


@pytest.mark.parametrize(
    ("name", "recipe"),
    [*((name, "xnnpack_fp32") for name in MODELS), ("conv", "portable"), ("cache", "portable")],
)
def test_every_pair_of_kinds_gives_what_the_uninterrupted_run_gives(name, recipe):
    model, inputs, rest = made(name)
    path = "auto" if recipe == "portable" else "split"
    kinds = KINDS if recipe == "xnnpack_fp32" else ("module", "exported", "edge", "executorch")
    whole = etgraph.run(model, inputs, recipe, path=path, cache=False, keep=kinds[1:-1], **rest)
    at = {kind: whole[kind] for kind in kinds[1:]}
    fingerprints = {kind: artifact.fingerprint for kind, artifact in at.items()}
    for start, end in pairs(kinds):
        if start == "module":
            continue
        given = at[start]
        resumed = etgraph.run(given, recipe=recipe, to=end, path=path, cache=False).artifact
        assert resumed.kind == end
        assert resumed.fingerprint == fingerprints[end], (start, end)
        assert given.fingerprint == fingerprints[start], f"{start} was changed on the way to {end}"
    assert etgraph.run(at["edge"], recipe=recipe, cache=False).artifact.buffer == whole.artifact.buffer
    errors = whole.verify()
    assert errors.max_error < 1e-4
    assert set(errors) == set(at["edge"].methods)


@pytest.mark.parametrize("name", MODELS)
def test_the_combined_way_gives_what_the_split_way_gives(name):
    """Stopping at edge keeps whole what the partitioners want whole, by the combined call's own first half."""
    model, inputs, rest = made(name)
    combined = etgraph.run(model, inputs, path="combined", cache=False, **rest)
    split = etgraph.run(model, inputs, path="split", cache=False, **rest)
    assert [s.stage for s in combined.steps] == ["torch_export", "to_edge_transform_and_lower", "to_executorch"]
    assert [s.stage for s in split.steps] == ["torch_export", "to_edge", "to_backend", "to_executorch"]
    assert combined.artifact.buffer == split.artifact.buffer


@pytest.mark.parametrize("name", ["conv", "attention", "recurrent", "dynamic"])
def test_the_bytes_are_those_of_the_hand_written_calls(name):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge, to_edge_transform_and_lower

    model, inputs, rest = made(name)
    exported = torch.export.export(model, inputs, **rest)
    by_hand = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
    assert etgraph.run(model, inputs, cache=False, **rest).artifact.buffer == by_hand
    assert etgraph.run(exported, cache=False).artifact.buffer == by_hand
    by_hand = to_edge(exported).to_executorch().buffer
    assert etgraph.run(model, inputs, "portable", cache=False, **rest).artifact.buffer == by_hand


@pytest.mark.parametrize(
    "name", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mobilenet", "vit"))]
)
def test_networks_of_transformers_give_one_program_by_every_way(name):
    model, inputs = network(name)
    combined = etgraph.run(model, inputs, path="combined", cache=False)
    assert combined.verify().max_error < 1e-4
    split = etgraph.run(model, inputs, path="split", cache=False, keep=["exported", "edge", "lowered"])
    assert split.artifact.buffer == combined.artifact.buffer
    for kind in ("exported", "edge", "lowered"):
        assert etgraph.run(split[kind], cache=False).artifact.buffer == combined.artifact.buffer


def test_a_run_to_executorch_leaves_the_edge_program_an_edge_program():
    """Case B5; upstream rewrites it in place."""
    model, inputs, _ = made("conv")
    edge = etgraph.run(model, inputs, "portable", to="edge", cache=False).artifact
    before = edge.fingerprint
    first = etgraph.run(edge, recipe="portable", cache=False).artifact.buffer
    assert edge.fingerprint == before
    assert etgraph.detect(edge.methods["forward"]) == "edge"
    assert etgraph.run(edge, recipe="portable", cache=False).artifact.buffer == first


def test_one_recipe_serves_two_models_in_a_row():
    """Case E5: the second model is not affected by the first."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.export import ExportRecipe, LoweringRecipe

    recipe = ExportRecipe(name="shared", lowering_recipe=LoweringRecipe(partitioners=[XnnpackPartitioner()]))
    first, second = made("conv"), made("dynamic")
    alone = etgraph.run(*second[:2], recipe, cache=False).artifact.buffer
    etgraph.run(*first[:2], recipe, cache=False)
    assert etgraph.run(*second[:2], recipe, cache=False).artifact.buffer == alone
