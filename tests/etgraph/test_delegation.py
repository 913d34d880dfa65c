"""What a check says, as a value: counts, shares, JSON and words."""

from __future__ import annotations

import json

from etgraph.delegation import BackendCheck, DelegationCheck, MethodCheck, Operator, Untaken


def operators(name: str, count: int, source_line: str = "") -> tuple[Operator, ...]:
    return tuple(Operator(f"{name}_{i}", name, "float32[2]", source_line) for i in range(count))


def checked() -> DelegationCheck:
    cumsum = operators("aten.cumsum.default", 1, "/home/me/net.py:7 in forward: return torch.cumsum(x, 0)")
    untaken = Untaken("unknown_operator", "Moon has no such operator", False, cumsum, ("another target: sun",))
    moon = BackendCheck("Moon", "MoonPartitioner", operators("aten.add.Tensor", 3), 2, (untaken,))
    sun = BackendCheck("Sun", "SunPartitioner", (), 0, (untaken,))
    forward = MethodCheck("forward", (moon, sun), cumsum, without_kernel=cumsum)
    empty = MethodCheck("nothing", (), ())
    return DelegationCheck("edge", "moon_fp32", {"forward": forward, "nothing": empty}, notes=("a note",))


def test_share_counts_all_methods() -> None:
    assert checked().share == 3 / 4
    assert DelegationCheck("edge", "r", {"nothing": MethodCheck("nothing", (), ())}).share == 0.0


def test_delegation_has_the_form_that_results_have_and_leaves_out_who_takes_nothing() -> None:
    assert checked().delegation == {
        "forward": {"backends": [{"name": "Moon", "delegates": 2, "nodes": 3}], "others": 1},
        "nothing": {"backends": [], "others": 0},
    }


def test_what_was_in_delegates_before_counts_as_taken() -> None:
    method = MethodCheck("forward", (), operators("aten.add.Tensor", 1), taken_before={"Moon": 4})
    assert (method.taken, method.operators) == (4, 5)
    assert "Moon has 4 operators in delegates already" in str(DelegationCheck("lowered", "r", {"forward": method}))


def test_json_has_every_operator_with_its_reason_and_line() -> None:
    found = json.loads(json.dumps(checked().to_json(), allow_nan=False))
    moon = found["methods"]["forward"]["backends"][0]
    assert (moon["offered"], moon["delegates"], len(moon["taken"])) == (4, 2, 3)
    (group,) = moon["untaken"]
    assert group["code"] == "unknown_operator"
    assert group["operators"][0]["source_line"].endswith("net.py:7 in forward: return torch.cumsum(x, 0)")
    assert group["helps"] == ["another target: sun"]
    assert found["methods"]["forward"]["without_kernel"][0]["operator"] == "aten.cumsum.default"


def test_words_name_the_line_the_reason_and_the_help_within_80_columns() -> None:
    text = str(checked())
    assert text.splitlines()[0] == "moon_fp32 takes 3 of 4 operators (75%); nothing was compiled"
    for part in ("net.py:7 in forward", "Moon has no such operator", "helps: another target: sun", "note: a note"):
        assert part in text
    assert "there is no operator in it" in text
    assert max(map(len, text.splitlines())) <= 80
