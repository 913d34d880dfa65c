"""Reports of runs on null stages: what they say in each form, of failures too, and where they cannot be written."""

import json
import os

import pytest
from null_world import FLOWERING, PLAIN, null_world, seed
from pages import Page

import etgraph
from etgraph.errors import ArtifactFileError, StageError
from etgraph.recipes import Recipe
from etgraph.registry import service
from etgraph.report import Told, check_path, document_of, write_report
from etgraph.result import Verification

EVIL = "<script>alert('x')</script> | `a` *b* &"


@pytest.fixture(autouse=True)
def world():
    with null_world() as world:
        world.services.pop("sizes", None)
        world.services.pop("delegation", None)
        yield world


def run(recipe=PLAIN, source=None, **rest):
    rest.setdefault("cache", False)
    return etgraph.run(source if source is not None else seed(), recipe=recipe, to="fruit", **rest)


def failed():
    with pytest.raises(StageError) as caught:
        run(Recipe(name="grim", stages={"moody": {"mood": "bad"}}))
    return caught.value


def page(outcome, tmp_path, told=None):
    return Page(write_report(outcome, tmp_path / "report.html", told).read_text())


def test_a_page_loads_nothing_and_forbids_it(tmp_path):
    shown = page(run(FLOWERING), tmp_path, Told(command="etgraph run x --report https://example.org/x.html"))
    assert shown.loaded() == []
    policy = [meta["content"] for meta in shown.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_a_page_is_for_everybody(tmp_path):
    """A language, a title, a width for telephones, headers of tables, words for pictures, paper and darkness."""
    shown = page(run(FLOWERING), tmp_path)
    assert shown.of("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in shown.of("meta")
    assert all(
        picture.get("aria-label") or picture.get("aria-hidden") for picture in shown.of("svg") if "role" in picture
    )
    assert all("scope" in header for header in shown.of("th"))
    assert "@media print" in shown.html
    assert "prefers-color-scheme: dark" in shown.html


def test_a_page_tells_the_way_the_stages_and_the_options(tmp_path):
    shown = page(run(FLOWERING), tmp_path, Told(source="garden.py:rose", warnings=["leaves are yellow"]))
    said = " ".join(shown.text)
    assert shown.text[0] == "garden.py:rose · etgraph"
    for words in ("seed → sprout → flower → fruit", "germinate", "the cache is off", "leaves are yellow", "'red'"):
        assert words in said


def test_what_is_said_of_several_steps_is_said_once(tmp_path):
    shown = page(run(), tmp_path)
    assert shown.text.count("the cache is off") == 1
    assert "germinate, ripen" in shown.text


def test_sections_without_anything_in_them_are_left_out(tmp_path):
    headings = page(run(), tmp_path).text
    assert "Stages" in headings
    for absent in ("Delegation", "Size", "Outputs against the source", "Options"):
        assert absent not in headings


def test_a_failure_is_reported_with_its_address_and_what_ran(tmp_path):
    error = failed()
    error.node, error.source_line, error.method = "<b>", "model.py:3", "forward"
    shown = page(error, tmp_path)
    said = " ".join(shown.text)
    assert "Failed at moody, method forward, node <b>" in said
    assert "RuntimeError: bad mood" in said
    assert "model.py:3" in said
    assert "b" not in [tag for tag, _ in shown.elements]
    document = document_of(error)
    assert (document["status"], document["runs"][0]["error"]["stage"]) == ("failed", "moody")
    assert [step["stage"] for step in document["runs"][0]["steps"]] == ["germinate"]


def test_an_error_that_is_no_failure_of_a_stage_names_the_stage_that_it_stopped_at():
    @service("state_of")
    def state_of(artifact):
        return None

    def refuse(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Ask for something."""
        raise etgraph.UsageError("there is no water", hint="Bring some.")

    from etgraph.artifact import KINDS

    refuse.__globals__.update({kind.__name__: kind for kind in KINDS.values()})
    etgraph.stage(refuse)
    with pytest.raises(etgraph.UsageError) as caught:
        run(Recipe(name="dry", stages={"refuse": {}}))
    (only,) = document_of(caught.value)["runs"]
    assert (only["error"]["stage"], only["error"]["hint"]) == ("refuse", "Bring some.")
    assert [step["stage"] for step in only["plan"]["steps"]] == ["germinate", "refuse", "ripen"]


def test_json_is_the_whole_document_in_standard_json(tmp_path):
    found = Verification({"forward": (float("inf"),)}, relative={"forward": (float("nan"),)}, samples={"forward": 2},
                         snr={"forward": (-float("inf"),)})  # fmt: skip
    path = write_report(run(), tmp_path / "r.json", Told(verification=found))
    document = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert document["format"] == "etgraph report 1"
    (only,) = document["runs"]
    assert only["verification"]["methods"]["forward"]["outputs"][0]["max_absolute_error"] == "inf"
    assert [step["stage"] for step in only["steps"]] == ["germinate", "ripen"]
    assert only["plan"]["kinds"] == ["seed", "sprout", "fruit"]
    assert document["versions"]["etgraph"]


def test_numbers_that_are_not_finite_are_shown(tmp_path):
    found = Verification({"forward": (float("nan"), 1e-7)}, relative={"forward": (float("nan"), 0.0)},
                         samples={"forward": 1}, snr={"forward": (-float("inf"), float("inf"))})  # fmt: skip
    said = page(run(), tmp_path, Told(verification=found)).text
    assert {"nan", "1.0e-07", "exact", "-inf dB", "not judged"} <= set(said)
    assert said[said.index("largest error") + 1] == "inf"


def test_a_check_that_failed_is_the_status_of_the_run(tmp_path):
    tolerance = {"absolute": 1e-4, "relative": 1e-3, "snr": None}
    judged = {"done": True, "passed": False, "tolerance": tolerance, "notes": [],
              "methods": {"forward": {"samples": 1, "outputs": [
                  {"max_absolute_error": 2.0, "max_relative_error": 1.0, "snr": 0.0, "passed": False}]}}}  # fmt: skip
    shown = page(run(), tmp_path, Told(verification=judged))
    assert {"wrong outputs", "too large"} <= set(shown.text)
    assert document_of(run(), Told(verification=judged))["status"] == "wrong"


def test_a_run_wholly_from_the_cache_says_so_and_what_it_saved(tmp_path):
    cache = etgraph.Cache(tmp_path / "cache")
    run(cache=cache)
    shown = page(run(cache=cache), tmp_path)
    said = " ".join(shown.text)
    assert "2 of 2 steps reused" in said
    assert "nothing that it depends on has changed" in said
    assert sum(text.startswith("not 0.0") for text in shown.text) == 2


def test_nothing_to_do_is_said(tmp_path):
    done = etgraph.run(run().artifact, recipe=PLAIN, to="fruit", cache=False)
    assert "Nothing to do: the program is already at fruit." in page(done, tmp_path).text


def test_what_cannot_be_told_is_a_line_and_the_rest_is_shown(tmp_path, world):
    def sizes(artifact):
        raise RuntimeError("no scales")

    world.services["sizes"] = sizes
    shown = page(run(), tmp_path)
    assert "the sizes could not be told: RuntimeError: no scales" in shown.text
    assert "Stages" in shown.text


def evil_services(world):
    world.services["sizes"] = lambda artifact: [{"method": EVIL, "section": "weights", "name": EVIL, "bytes": 7}]
    taken = {"backends": [{"name": EVIL, "delegates": 1, "nodes": 3}], "others": 1}
    world.services["delegation"] = lambda artifact: {EVIL: taken}


def test_names_of_a_model_are_text_in_every_form(tmp_path, world):
    evil_services(world)
    told = Told(source=EVIL, command=EVIL, files={EVIL: 3}, warnings=[EVIL], problems=[EVIL])
    shown = page(run(), tmp_path, told)
    assert shown.loaded() == []
    assert " ".join(shown.text).count("<script>alert('x')</script>") >= 8
    markdown = write_report(run(), tmp_path / "r.md", told).read_text()
    outside_code = [line for line in markdown.splitlines() if not line.startswith("    ")]
    assert not any("<script" in line for line in outside_code)
    rows = [line for line in outside_code if line.startswith("|") and "alert" in line]
    assert rows
    columns = {line.count("|") for line in rows}
    assert columns <= {5, 6}, rows


def test_markdown_has_the_same_tables(tmp_path, world):
    evil_services(world)
    text = write_report(run(FLOWERING), tmp_path / "r.md", Told(source="garden")).read_text()
    assert text.startswith("# garden\n")
    for heading in ("### The way", "### Stages", "### Delegation", "### Size", "### Options", "## To do it again"):
        assert f"\n{heading}\n" in text
    assert "    seed -- germinate --> sprout" in text
    assert "\n\n\n" not in text
    for line in text.splitlines():
        assert line.count("|") == 0 or line.startswith("|") or line.startswith("    "), line


def test_several_targets_are_one_report_with_a_table_over_all(tmp_path):
    results = type("Results", (), {"outcomes": {"good-one": run(), "bad<one>": failed()}})()
    told = {
        "": Told(source="garden", command="etgraph run garden", warnings=["rain"]),
        "good-one": Told(files={"a": 3}),
    }
    document = document_of(results, told)
    assert [(one["target"], one["status"]) for one in document["runs"]] == [
        ("good-one", "done"),
        ("bad<one>", "failed"),
    ]
    assert (document["status"], document["warnings"]) == ("failed", ["rain"])
    shown = page(results, tmp_path, told)
    assert [link["href"] for link in shown.of("a")] == ["#run-1", "#run-2"]
    assert {"run-1", "run-2"} <= {section.get("id") for section in shown.of("section")}
    assert shown.text.count("bad<one>") == 2
    ids = [attributes["id"] for _, attributes in shown.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("report.pdf", ".pdf is not one of .html, .md, .json"),
        ("report", "no suffix is not one of"),
        ("no/report.html", "the folder no does not exist"),
        ("folder.html", "is a folder"),
        (3, "cannot be written to a int"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(tmp_path, monkeypatch, path, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(etgraph.UsageError, match=said):
        check_path(path)


def test_a_report_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("the old one")

    def full(descriptor):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactFileError, match=r"r\.html"):
        write_report(run(), path)
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_and_what_is_none(tmp_path):
    assert run().report(tmp_path / "r.json").exists()
    with pytest.raises(etgraph.UsageError, match="a list was given"):
        write_report([], tmp_path / "r.html")
