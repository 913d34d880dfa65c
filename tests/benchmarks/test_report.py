"""The table, the JSON and the comparison of two of them."""

import json
import re
import socket
import sys

import pytest

from benchmarks import __main__ as program
from benchmarks.figures import Answer, Figure, Series
from benchmarks.report import comparison, completed, document, figures_of, head, into_readme, number, table


def measured(*values, what="etgraph / by hand", wanted="<= 1.03", question="cold"):
    return Figure(question, what, tuple(values), "x", wanted)


def written(*figures, quick=False):
    return json.loads(json.dumps(document(Answer(list(figures)), quick=quick)))


def test_the_document_has_when_where_and_with_what():
    data = written(measured(1.0, 1.1))
    assert set(data) == {"schema", "date", "quick", "machine", "load", "versions", "failed", "figures", "series"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", data["date"])
    assert set(data["machine"]) == {"processor", "cores", "memory", "system", "architecture"}
    assert {"python", "etgraph", "torch", "executorch"} <= set(data["versions"])
    (figure,) = data["figures"]
    assert figure["values"] == [1.0, 1.1]
    assert (figure["low"], figure["median"], figure["high"]) == (1.0, pytest.approx(1.05), 1.1)
    assert figure["met"] is False
    assert figures_of(data) == [measured(1.0, 1.1)]


def test_some_questions_asked_again_keep_what_was_measured_of_the_others():
    old = written(measured(1.5), measured(2.0, question="warm"), measured(3.0, question="scale"))
    old |= {"date": "2026-01-02 03:04 UTC", "failed": ["cold", "store"], "earlier": {"scale": "2026-01-01 00:00 UTC"}}
    data = completed(written(measured(1.0)), old, ["cold"])
    assert figures_of(data) == [measured(2.0, question="warm"), measured(3.0, question="scale"), measured(1.0)]
    assert data["earlier"] == {"warm": "2026-01-02 03:04 UTC", "scale": "2026-01-01 00:00 UTC"}
    assert data["failed"] == ["store"]
    assert "warm: measured 2026-01-02 03:04 UTC" in head(data)


def test_a_part_asked_again_keeps_the_other_parts():
    old = written(measured(1.5), measured(1.1, what="int8"), measured(2.0, question="warm"))
    data = completed(written(measured(1.0)), old, ["cold"], in_part=True)
    assert figures_of(data) == [measured(1.1, what="int8"), measured(2.0, question="warm"), measured(1.0)]
    assert set(data["earlier"]) == {"cold", "warm"}


@pytest.mark.parametrize("name", ["schema", "quick", "machine", "versions"])
def test_nothing_is_kept_that_was_measured_otherwise(name):
    new = written(measured(1.0))
    assert completed(new, written(measured(2.0, question="warm")) | {name: "another"}, ["cold"]) == new


def test_the_document_names_neither_the_host_nor_a_path():
    text = json.dumps(written(measured(1.0)))
    assert socket.gethostname() not in text
    assert sys.prefix not in text


def test_a_document_of_another_form_is_refused():
    with pytest.raises(ValueError, match="holds no figures"):
        figures_of({"a": 1})
    with pytest.raises(ValueError, match="form 99"):
        figures_of({**written(measured(1.0)), "schema": 99})


def test_the_table_says_median_spread_wish_and_verdict():
    lines = table([measured(1.0, 1.2, 1.1), measured(1.0, what="memory")]).splitlines()
    assert lines[0] == "cold"
    assert re.search(r"etgraph / by hand +1\.100 x +1\.000 to 1\.200 +<= 1\.03 +MISSED$", lines[1])
    assert re.search(r"memory +1\.000 x +<= 1\.03 +met$", lines[2])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.0001234, "1.2e-04"), (0.5, "0.500"), (12.346, "12.35"), (123.45, "123.5"), (5e4, "50,000")],
)
def test_numbers_have_the_digits_that_mean_something(value, text):
    assert number(value) == text


def test_the_readme_gets_the_headlines_between_its_marks():
    headline = measured(1.0, what="ViT-base fp32, etgraph / by hand: wall")
    data = written(headline, measured(9.0, wanted="", what="ViT-base fp32, by hand: wall"))
    text = "before\n<!-- figures -->\nstale\n<!-- end of figures -->\nafter\n"
    filled = into_readme(text, data)
    assert into_readme(filled, data) == filled
    assert filled.startswith("before\n<!-- figures -->\nMeasured on ")
    assert filled.endswith("<!-- end of figures -->\nafter\n")
    assert "| cold | ViT-base fp32, etgraph / by hand: wall | 1.000 x | once | at most 1.03 | met |" in filled
    assert "by hand: wall | 9" not in filled
    assert "stale" not in filled


def test_a_readme_without_marks_and_quick_figures_are_refused():
    with pytest.raises(ValueError, match="has no <!-- figures -->"):
        into_readme("nothing", written(measured(1.0)))
    with pytest.raises(ValueError, match="quick run"):
        into_readme("<!-- figures --><!-- end of figures -->", written(measured(1.0), quick=True))


def test_a_change_counts_where_the_spreads_are_apart():
    old = written(measured(1.00, 1.02, what="a"), measured(1.00, 1.05, what="b"), measured(1.0, what="gone"))
    new = written(measured(1.10, 1.12, what="a"), measured(1.03, 1.04, what="b"), measured(1.0, what="new"))
    text, lost = comparison(old, new)
    assert re.search(r"higher +cold: a: 1\.010 -> 1\.110 x \+9\.9%  no longer <= 1\.03", text)
    assert re.search(r"as was +cold: b: 1\.025 -> 1\.035 x \+1\.0%", text)
    assert "gone   cold: gone" in text
    assert "new    cold: new" in text
    assert lost


def test_a_figure_that_was_bad_before_is_not_lost():
    assert not comparison(written(measured(2.0)), written(measured(3.0)))[1]


def test_quick_figures_are_not_compared_with_full_ones():
    with pytest.raises(ValueError, match="quick"):
        comparison(written(measured(1.0), quick=True), written(measured(1.0)))


def test_compare_on_the_command_line(tmp_path, monkeypatch, capsys):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(written(measured(1.0))))
    new.write_text(json.dumps(written(measured(2.0))))

    def asked(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, arguments)])
        return program.main()

    assert asked("compare", old, old) == 0
    assert asked("compare", old, new) == 1
    assert asked("compare", old, tmp_path / "absent.json") == 2
    assert "absent.json cannot be read" in capsys.readouterr().err
    new.write_text("{")
    assert asked("compare", old, new) == 2
    assert asked("table", old) == 0
    readme = tmp_path / "README.md"
    readme.write_text("<!-- figures --><!-- end of figures -->")
    assert asked("table", old, "--readme", readme) == 0
    assert "Measured on" in readme.read_text()
    readme.write_text("no marks")
    assert asked("table", old, "--readme", readme) == 2
    assert readme.read_text() == "no marks"


def test_plots_are_drawn_from_the_document(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks import plots

    series = Series("scale", "Time", "layers", "s", (1.0, 2.0), {"by hand": [1.0, 2.0], "etgraph": [1.1, 2.1]})
    data = json.loads(json.dumps(document(Answer([measured(1.0, 1.2)], [series]), quick=False)))
    drawn = plots.draw(data, tmp_path, "today")
    assert [path.name for path in drawn] == ["today-scale-1.png", "today-ratios.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
