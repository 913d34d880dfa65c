"""Plans in the languages of other tools: that these tools read them."""

import shutil
import subprocess

import pytest
from null_world import FLOWERING, null_world, seed

import etgraph


@pytest.fixture
def plan():
    with null_world() as world:
        stage = world.stages["germinate"]
        object.__setattr__(stage, "name", 'a "quoted" \\ stage')
        world.stages[stage.name] = world.stages.pop("germinate")
        yield etgraph.plan(seed(), recipe=FLOWERING, to="fruit", cache=False)


def test_dot_quotes_what_it_names(plan):
    assert '"seed" -> "sprout" [label="a \\"quoted\\" \\\\ stage", penwidth=3];' in plan.to_dot()


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_the_dot_of_a_plan(plan):
    done = subprocess.run(["dot", "-Tsvg"], input=plan.to_dot(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for name in ("seed", "sprout", "flower", "fruit", "bloom", "ripen", "a &quot;quoted&quot; \\ stage"):
        assert f">{name}</text>" in done.stdout


def test_what_was_rejected_says_where_it_leads(plan):
    rejected = [one for choice in plan.to_dict()["choices"] for one in choice["rejected"]]
    assert {(one["stage"], one["produces"]) for one in rejected} >= {("grow_at_once", "fruit"), ("ripen", "fruit")}
