"""A difference as a value: what it says about itself, in JSON and in words."""

from __future__ import annotations

import json

from etgraph.difference import TOPICS, Difference, ProgramChange, Side

A, B = Side("a.pte", "executorch", "f" * 64), Side("b.pte", "executorch", "e" * 64)


def found(*changes: ProgramChange) -> Difference:
    return Difference(A, B, changes, ("a note",))


def test_without_changes_it_is_the_same_and_says_how_that_is_known() -> None:
    equal = Difference(A, A, ())
    assert equal.same
    assert "are equal" in str(equal)
    assert "f" * 64 in str(equal)
    unproven = Difference(Side("a", "module", ""), Side("b", "module", ""), ())
    assert "as far as can be told" in str(unproven)


def test_words_mark_what_is_added_gone_and_changed() -> None:
    text = str(
        found(
            ProgramChange("operators", "forward", "aten.add.Tensor", None, 2),
            ProgramChange("operators", "forward", "aten.sub.Tensor", 1, None),
            ProgramChange("arguments", "forward", "aten.clamp.default min", "0.0", "-1.0", "/x/net.py:3 in forward: y"),
            ProgramChange("weights", "", "w", "float32[2]", "float32[2]", "1 of 2 numbers"),
            ProgramChange("sizes", "", "program", 1000, 1500),
        )
    )
    for line in (
        "--- a.pte  (executorch)",
        "+++ b.pte  (executorch)",
        "  + forward: aten.add.Tensor 2",
        "  - forward: aten.sub.Tensor 1",
        "  ~ w float32[2]  (1 of 2 numbers)",
        "  ~ program: 1,000 -> 1,500 (+500)",
        "note: a note",
    ):
        assert line in text.splitlines()
    assert "(net.py:3 in forward: y)" in text


def test_of_many_changes_some_are_shown_and_all_are_in_json() -> None:
    many = found(*(ProgramChange("weights", "", f"w{i}", None, "float32[2]") for i in range(30)))
    assert "and 10 more" in str(many)
    document = json.loads(json.dumps(many.to_json(), allow_nan=False))
    assert len(document["changes"]) == 30
    assert document["same"] is False
    assert {change["topic"] for change in document["changes"]} <= set(TOPICS)
