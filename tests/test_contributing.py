"""The code of CONTRIBUTING.md works as it stands there: a stage, a recipe and a kind from outside."""

import re
from pathlib import Path

import pytest
from models import made

import etgraph
from etgraph.registry import registry

ROOT = Path(__file__).parent.parent


@pytest.fixture
def contributed(tmp_path, monkeypatch):
    """Import the code blocks as a module of a third party, for the length of a test."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "my_stages.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path)
    with registry.scratch():
        import my_stages

        yield my_stages
    import sys

    del sys.modules["my_stages"]


def test_a_stage_and_a_recipe_from_outside_are_planned_and_run(contributed):
    model, inputs, _ = made("conv")
    result = etgraph.run(model, inputs, "xnnpack_per_op")
    assert [step.stage for step in result.steps] == ["torch_export", "to_edge", "to_xnnpack", "to_executorch"]
    assert result.verify().max_error < 1e-4
    again = etgraph.run(model, inputs, "xnnpack_per_op")
    assert [step.outcome for step in again.steps] == ["reused"] * 4
    fewer = etgraph.run(model, inputs, etgraph.get_recipe("xnnpack_per_op", per_op=False))
    assert [step.outcome for step in fewer.steps] == ["reused", "reused", "ran", "ran"]
    assert "option per_op changed from True to False" in fewer.steps[2].reason


def test_a_kind_from_outside_is_recognised_planned_cached_and_saved(contributed, tmp_path):
    model, inputs, _ = made("conv")
    result = etgraph.run(model, inputs, "portable", to="listing")
    assert result.artifact.methods["forward"][0] == "graph():"
    assert etgraph.detect(result.artifact.methods["forward"]) == "listing"
    assert [s.outcome for s in etgraph.run(model, inputs, "portable", to="listing").steps] == ["reused", "reused"]
    path = result.save(tmp_path / "net.listing.etg")
    assert etgraph.load(path).fingerprint == result.artifact.fingerprint


def test_without_the_third_party_its_files_say_what_is_missing(tmp_path):
    from etgraph import container

    container.write(tmp_path / "x.listing.etg", {"kind": "listing", "methods": {}}, {})
    with pytest.raises(etgraph.EtgraphError, match="listing"):
        etgraph.load(tmp_path / "x.listing.etg")
