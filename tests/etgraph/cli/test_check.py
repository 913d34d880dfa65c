"""`etgraph check`: in words, as data, and refused where there is nothing to check."""

from __future__ import annotations

from .conftest import Etgraph, check_golden, normalised


def test_words(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("check", "net.py:make", "--no-elsewhere")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    check_golden("check", normalised(answer.out))


def test_data(etgraph_cli: Etgraph) -> None:
    found = etgraph_cli("check", "net.py:make", "--json", "--no-elsewhere", "--recipe", "xnnpack_fp32").document
    assert found["source"] == {"given": "net.py:make", "kind": "module"}
    (backend,) = found["methods"]["forward"]["backends"]
    (group,) = backend["untaken"]
    assert group["code"] == "arguments"
    assert "net.py:" in group["operators"][0]["source_line"]
    assert found["share"] == 0.8


def test_wrong_use_is_refused(etgraph_cli: Etgraph) -> None:
    for arguments, words in (
        (("--recipe", "portable"), "delegates nothing"),
        (
            ("--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-vulkan-fp32"),
            "check is about one way, and 2 targets were given",
        ),
        (("--target", "nowhere"), "no such target"),
    ):
        answer = etgraph_cli("check", "net.py:make", *arguments)
        assert answer.code == 2
        assert words in answer.err
        assert "Traceback" not in answer.err
