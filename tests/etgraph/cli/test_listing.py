"""`etgraph list`: what there is."""

from __future__ import annotations

import pytest

import etgraph
from etgraph.registry import registry

from .conftest import Etgraph


def test_kinds(etgraph_cli: Etgraph) -> None:
    words = etgraph_cli("list", "kinds")
    assert words.code == 0
    found = etgraph_cli("list", "kinds", "--json").document["kinds"]
    names = [row["name"] for row in found]
    assert names[:7] == ["module", "exported", "prepared", "quantized", "edge", "lowered", "executorch"]
    assert all(row["holds"] in " ".join(words.out.split()) for row in found)
    assert max(map(len, words.out.splitlines())) <= 80


def test_stages_with_kinds_and_options(etgraph_cli: Etgraph) -> None:
    found = {row["name"]: row for row in etgraph_cli("list", "stages", "--json").document["stages"]}
    assert found["torch_export"]["consumes"] == ["module"]
    assert found["torch_export"]["produces"] == "exported"
    assert found["torch_export"]["options"]["strict"] == "False"
    assert found["to_backend"]["options"]["partitioners"] == ""
    assert found["edge_passes"]["produces"] is None
    words = etgraph_cli("list", "stages").out
    assert "exported | quantized -> edge" in words
    assert "strict=False" in words


def test_a_stage_of_a_third_party_is_listed(etgraph_cli: Etgraph) -> None:
    with registry.scratch():

        @etgraph.stage(name="polish")
        def polish(program: etgraph.Edge, *, grain: int = 3) -> etgraph.Edge:
            """Polish."""
            return program

        found = etgraph_cli("list", "stages", "--json").document["stages"]
    assert ("polish", {"grain": "3"}) in [(row["name"], row["options"]) for row in found]


def test_recipes_of_ours_and_of_upstream_once_each(etgraph_cli: Etgraph) -> None:
    found = etgraph_cli("list", "recipes", "--json").document["recipes"]
    origin = {row["name"]: row["origin"] for row in found}
    assert len(origin) == len(found)
    assert origin["xnnpack_fp32"] == "etgraph"
    assert origin["coreml_fp16"] == "executorch"
    assert origin["qnn_fp16"] == "executorch"


def test_targets(etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "targets", {})
    assert etgraph_cli("list", "targets").out.startswith("no target is installed")


def test_list_needs_to_know_what(etgraph_cli: Etgraph) -> None:
    assert etgraph_cli("list").code == 2
    answer = etgraph_cli("list", "recipe")
    assert answer.code == 2
    assert "recipe" in answer.err
