"""The stage graph is a networkx multigraph without cycles between kinds."""

import pytest
from null_world import null_world

import etgraph
from etgraph.errors import StageDeclarationError
from etgraph.graph import attached_to, build


def test_kinds_are_nodes_and_stages_edges():
    with null_world() as world:
        graph = build(world.stages.values())
        assert set(graph["seed"]) == {"sprout", "fruit"}
        assert list(graph["sprout"]["fruit"]) == ["ripen"]
        assert "water" in attached_to(graph, "sprout")
        assert attached_to(graph, "seed") == {}


def test_a_cycle_between_kinds_is_refused_and_drawn():
    with null_world() as world:
        from etgraph.artifact import KINDS

        def wither(plant: "Fruit") -> "Seed":  # noqa: F821
            """Begin again."""

        wither.__globals__.update(Fruit=KINDS["fruit"], Seed=KINDS["seed"])
        etgraph.stage(wither)
        with pytest.raises(StageDeclarationError, match="->") as caught:
            build(world.stages.values())
        assert "wither" in str(caught.value)
