"""Pictures: what is drawn, where, what it says in words, and that nothing in it is taken for a tag."""

import re

import pytest
from null_world import FLOWERING, PLAIN, null_world, seed
from pages import Page

import etgraph
from etgraph.pictures import need, rendered
from etgraph.pictures.bars import colours_of, draw_delegation
from etgraph.pictures.treemap import draw_sizes
from etgraph.pictures.way import draw_way


@pytest.fixture(autouse=True)
def world():
    with null_world() as world:
        yield world


def step(stage, outcome="ran", **more):
    return {"stage": stage, "outcome": outcome, "seconds": 1.5, "peak_bytes": 0, "built_seconds": 0.0, **more}


def plan(recipe=PLAIN):
    return etgraph.plan(seed(), recipe=recipe, to="fruit", cache=False).to_dict()


def test_a_plan_shows_each_kind_each_step_and_each_way_that_was_refused():
    page = Page(draw_way(plan(FLOWERING)))
    assert {"seed", "sprout", "flower", "fruit", "germinate", "bloom", "ripen"} <= set(page.text)
    assert any(text.startswith("not ") and "→" in text for text in page.text)
    assert page.of("svg")[0]["aria-label"].startswith("The way seed → sprout → flower → fruit. 1. germinate: planned")


def test_what_became_of_each_step_is_said_and_coloured():
    ran, reused = step("germinate", peak_bytes=2_000_000), step("ripen", "reused", built_seconds=20.0)
    page = Page(draw_way(plan(), [ran, reused]))
    assert "ran · 1.50 s · peak 2.0 MB" in page.text
    assert "reused · 1.50 s · built in 20.0 s" in page.text
    assert [line["class"] for line in page.of("line")] == ["line ran", "line reused"]


def test_a_failure_is_marked_and_what_comes_after_it_is_not_reached():
    page = Page(draw_way(plan(FLOWERING), [step("germinate")], "brown spots"))
    assert [line["class"] for line in page.of("line")] == ["line ran", "line failed", "line unreached"]
    assert [circle["class"] for circle in page.of("circle") if "kind" in circle["class"]] == [
        "kind", "kind", "kind unreached", "kind unreached",
    ]  # fmt: skip
    assert {"failed", "not reached"} <= set(page.text)


def test_lines_join_the_kinds_without_a_gap_also_where_a_pass_runs():
    wet = etgraph.Recipe(name="wet", stages={"water": {}})
    page = Page(draw_way(plan(wet)))
    ends = [(float(line["y1"]), float(line["y2"])) for line in page.of("line")]
    kinds = [float(circle["cy"]) for circle in page.of("circle") if "kind" in circle["class"]]
    assert ends[0][0] == kinds[0]
    assert ends[-1][1] == kinds[-1]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]


def test_no_text_reaches_beyond_the_picture():
    page = Page(draw_way(plan(), [step("germinate"), step("a_stage_of_a_third_party_with_a_very_long_name" * 2)]))
    width = float(page.of("svg")[0]["width"])
    for place, text in zip(
        page.of("text"), [t for t in page.text if not t.startswith(("The way", "not"))], strict=False
    ):
        assert float(place["x"]) + 7 * len(text) < width


def test_bars_are_in_proportion_and_fill_the_width():
    found = {"backends": [{"name": "A", "delegates": 2, "nodes": 30}, {"name": "B", "delegates": 1, "nodes": 10}]}
    delegation = {"forward": {**found, "others": 60}}
    page = Page(draw_delegation("forward", delegation["forward"], colours_of(delegation)))
    cells = page.of("svg")[1:]
    assert [(cell["x"], cell["width"]) for cell in cells] == [("0.0%", "30.0%"), ("30.0%", "10.0%"), ("40.0%", "60.0%")]
    assert "forward: A: 30 operators, 30 %; B: 10 operators, 10 %; portable: 60 operators, 60 %" in page.text
    assert [rect["class"] for rect in page.of("rect")] == ["fill-0", "fill-1", "fill-portable"]
    assert draw_delegation("empty", {"backends": [], "others": 0}, {}) == ""


def test_areas_of_a_treemap_are_in_proportion_and_cover_it():
    parts = [{"method": "", "section": "weights", "name": f"w{n}", "bytes": n} for n in (600, 300, 100)]
    page = Page(draw_sizes(parts))
    cells = page.of("svg")[1:]
    areas = [float(cell["width"][:-1]) * float(cell["height"]) for cell in cells]
    assert [round(area / sum(areas), 2) for area in areas] == [0.6, 0.3, 0.1]
    assert sum(areas) == pytest.approx(100 * 280, rel=1e-3)
    assert draw_sizes([]) == ""


def test_small_parts_of_a_treemap_are_drawn_as_one():
    parts = [{"method": "m", "section": "weights", "name": "large", "bytes": 10**6}]
    parts += [{"method": "m", "section": "weights", "name": f"small {n}", "bytes": 10} for n in range(500)]
    page = Page(draw_sizes(parts))
    assert len(page.of("svg")) == 3
    assert any("500 smaller parts" in text for text in page.text)


def test_a_label_is_shown_from_the_width_where_it_fits():
    assert need("x" * 10, 1.0) == "need-240"
    assert need("x" * 40, 0.5) == "need-720"
    assert need("x" * 200, 0.5) == "need-none"
    style = rendered("style.css")
    for name in re.findall(r"need-\d+", style):
        assert f"@container (min-width: {name[5:]}px) {{ .etg .{name} {{ display: inline; }} }}" in style


EVIL = "<script>alert(1)</script>\"'&"


def test_names_are_never_taken_for_tags():
    parts = [{"method": EVIL, "section": "weights", "name": EVIL, "bytes": 5}]
    found = {"backends": [{"name": EVIL, "delegates": 1, "nodes": 1}], "others": 0}
    made = {**plan(), "kinds": [EVIL], "start": EVIL}
    for text in (draw_sizes(parts), draw_delegation(EVIL, found, {EVIL: "fill-0"}), draw_way(made)):
        assert "script" not in [tag for tag, _ in Page(text).elements]
        assert EVIL in " ".join(Page(text).text)
