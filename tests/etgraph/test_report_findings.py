"""What checks found, in reports: why backends left operators, and where numbers leave tolerance."""

import pytest
from null_world import PLAIN, null_world, seed
from pages import Page

import etgraph
from etgraph.report import Told, write_report

EVIL = "<script>alert('x')</script> | `a` *b* &"


@pytest.fixture(autouse=True)
def world():
    with null_world() as world:
        world.services.pop("sizes", None)
        world.services.pop("delegation", None)
        yield world


def run():
    return etgraph.run(seed(), recipe=PLAIN, to="fruit", cache=False)


def page(outcome, tmp_path, told):
    return Page(write_report(outcome, tmp_path / "report.html", told).read_text())


def checked(**more):
    operator = {"node": "n", "operator": "aten.sort.default", "value": "float32[2]", "source_line": EVIL}
    group = {
        "code": "unknown_operator",
        "reason": "no kernel",
        "quoted": True,
        "operators": [operator] * 3,
        "helps": [EVIL],
    }
    backend = {"backend": "B", "partitioner": "P", "offered": 3, "delegates": 0, "taken": [], "rewritten": None}
    method = {"operators": 3, "taken": 0, "taken_before": {}, "left": [operator], "without_kernel": [operator]}
    return {
        "kind": "seed",
        "recipe": "r",
        "share": 0.0,
        "steps": [],
        "notes": ["a note"],
        "methods": {"forward": {**method, "backends": [{**backend, "untaken": [group], **more}]}},
    }


def test_why_backends_left_operators_is_a_table_with_source_lines_and_what_helps(tmp_path):
    shown = page(run(), tmp_path, Told(check=checked()))
    said = " ".join(shown.text)
    assert "Why not the rest" in shown.text
    assert "aten.sort.default x3" in said
    assert "no kernel" in shown.text
    assert len(shown.of("q")) == 1
    assert f"What helps: {EVIL}" in said
    assert "This host's runtime has no kernel for aten.sort.default." in said
    markdown = write_report(run(), tmp_path / "r.md", Told(check=checked())).read_text()
    assert "| forward | B | aten.sort.default x3 | no kernel (what helps: &lt;script&gt;" in markdown
    assert "Nothing is left" in " ".join(page(run(), tmp_path, Told(check=checked(untaken=[]))).text)


def compared(*, within):
    gap = {"absolute": 5.0, "relative": "nan", "snr": "-inf", "cosine": 0.5, "argmax": None}
    output = {"method": "forward", "output": 0, "source": gap, "previous": gap, "within": within, "note": ""}
    stages = [
        {"stage": "grow", "kind": "sprout", "outputs": [output], "reason": "", "failed": False, "within": within},
        {"stage": "ripen", "kind": "fruit", "outputs": [], "reason": "no sun", "failed": False, "within": True},
    ]
    node = {
        "method": "forward",
        "node": "hardtanh",
        "operator": "aten.hardtanh",
        "counterpart": "relu6",
        "call": "now()",
        "counterpart_call": "before()",
        "source_line": EVIL,
        "scale": [0.5],
        "zero_point": [],
        "gap": gap,
        "within": False,
    }
    before = [{**node, "node": f"n{number}", "within": True, "counterpart_call": ""} for number in range(20)]
    suspect = {"stage": "grow", "kind": "sprout", "method": "forward", "words": "clamps", "node": node, "masked": False}
    return {
        "within": within,
        "stages": stages,
        "inputs": "the example inputs",
        "samples": {"forward": 2},
        "nodes": [] if within else [*before, node],
        "suspects": [] if within else [suspect],
        "notes": [],
    }


def test_numbers_along_the_way_name_the_first_bad_place(tmp_path):
    shown = page(run(), tmp_path, Told(numerics=compared(within=False)))
    said = " ".join(shown.text)
    assert "Outputs leave tolerance at sprout, made by grow" in said
    assert "computed on the example inputs (2 samples)" in said
    assert "The first bad place: sprout, made by grow, method forward" in said
    assert "now: now() before: before() scale 0.5" in said
    assert "not executed: no sun" in said
    assert "n15" in shown.text
    assert "n14" not in shown.text  # five before the bad one
    assert "off, the first" in said
    fine = page(run(), tmp_path, Told(numerics=compared(within=True)))
    assert "Every output is within tolerance at every kind" in " ".join(fine.text)
    text = write_report(run(), tmp_path / "r.md", Told(numerics=compared(within=False))).read_text()
    assert "> **The first bad place: sprout" in text
    assert "| fruit | not executed: no sun |" in text
