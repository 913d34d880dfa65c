"""What notebooks show of plans, artifacts and results: small, whole, and loading nothing."""

import pytest
from null_world import FLOWERING, PLAIN, null_world, seed
from pages import Page

import etgraph
from etgraph.artifact import Inputs
from etgraph.delegation import BackendCheck, DelegationCheck, MethodCheck, Operator, Untaken
from etgraph.many import Results
from etgraph.numerics import Comparison, Gap, NodeNumbers, OutputNumbers, StageNumbers, Suspect
from etgraph.result import Verification

EVIL = "<script>x</script>"


@pytest.fixture(autouse=True)
def world():
    with null_world() as world:
        taken = {"backends": [{"name": EVIL, "delegates": 1, "nodes": 3}], "others": 1}
        world.services["delegation"] = lambda artifact: {"forward": taken} if artifact.kind == "fruit" else {}
        yield world


def shown(value):
    page = Page(value._repr_html_())
    assert page.loaded() == []
    assert len(page.html) < 30_000
    return page


def run(recipe=PLAIN):
    return etgraph.run(seed(), recipe=recipe, to="fruit", cache=False)


def test_a_plan_shows_its_picture():
    page = shown(etgraph.plan(seed(), recipe=FLOWERING, to="fruit", cache=False))
    assert page.text[0] == "seed → fruit, recipe flowering"
    assert {"bloom", "flower"} <= set(page.text)


def test_a_result_shows_what_ran_and_what_backends_took():
    page = shown(run())
    assert any(text.startswith("ran · ") for text in page.text)
    assert f"{EVIL} 3" in page.text


def test_an_artifact_shows_its_methods_and_how_it_came_about():
    from dataclasses import replace

    artifact = replace(run().artifact, example_inputs={"forward": (Inputs(EVIL),)})
    page = shown(artifact)
    assert page.text[0] == "fruit program"
    assert f"Inputs('{EVIL}')" in page.text
    assert "came by: germinate → ripen" in page.text
    assert "no example inputs" in shown(run().source).text


def test_results_show_each_target():
    page = shown(Results({"good": run(), "bad": etgraph.UsageError(f"{EVIL}\nmore")}))
    assert {"good", "done", "bad", "failed", EVIL} <= set(page.text)


def test_a_verification_shows_each_output():
    found = Verification({"forward": (1e-7,)}, relative={"forward": (0.5,)}, samples={"forward": 1},
                         snr={"forward": (float("inf"),)}, notes=("a note",))  # fmt: skip
    assert {"1.0e-07", "5.0e-01", "inf dB", "a note"} <= set(shown(found).text)


def test_a_check_shows_what_is_taken_and_why_not_the_rest():
    one = Operator("n", "aten.sort.default", "float32[2]", "net.py:3")
    backend = BackendCheck("B", "P", (one,), 1, (Untaken("dtype", f"no {EVIL}", False, (one,)),))
    check = DelegationCheck("edge", "r", {"forward": MethodCheck("forward", (backend,), (one,))})
    page = shown(check)
    assert "recipe r would delegate 50% of the operators" in page.text
    assert {"aten.sort.default", f"no {EVIL}", "net.py:3", "B 1"} <= set(page.text)


def test_a_comparison_shows_where_numbers_leave_tolerance():
    gap = Gap(5.0, float("nan"), 0.0, 0.5)
    node = NodeNumbers("forward", "hardtanh", "aten.hardtanh", source_line="net.py:3", gap=gap, within=False)
    stage = StageNumbers("to_edge", "edge", (OutputNumbers("forward", 0, gap, gap, False),))
    found = Comparison((stage,), "noise", {"forward": 1}, (node,), (Suspect("to_edge", "edge", "forward", EVIL, node),))
    page = shown(found)
    assert "leaves tolerance at edge, made by to_edge" in page.text
    assert any(EVIL in text and "net.py:3" in text for text in page.text)
    assert {"5.0e+00", "nan", "too large"} <= set(page.text)
