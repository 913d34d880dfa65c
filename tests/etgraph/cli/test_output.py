"""What commands print, and where."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings

import pytest

from etgraph.cli.noise import only_what_matters, runtime_log_hidden
from etgraph.cli.output import Output
from etgraph.errors import EtgraphWarning, StageError
from etgraph.words import table


def test_document_is_strict_json_even_for_what_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).document({"error": float("nan"), "list": (1, float("inf")), "fine": 0.5})
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert found == {"error": "nan", "list": [1, "inf"], "fine": 0.5, "warnings": []}


def test_error_document_has_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    error = StageError("broke", stage="to_edge", method="encode", node="n1", source_line="m.py:3", hint="do this")
    Output(as_json=True).error(error)
    shown = json.loads(capsys.readouterr().out)["error"]
    assert shown["type"] == "StageError"
    assert (shown["stage"], shown["method"], shown["node"]) == ("to_edge", "encode", "n1")
    assert (shown["source_line"], shown["hint"], shown["exit_code"]) == ("m.py:3", "do this", 1)


def test_upstream_is_hidden_and_our_warnings_are_one_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: shown.append(str(message)))
    with only_what_matters(Output()):
        warnings.warn("pytree is deprecated", FutureWarning, stacklevel=1)
        logging.getLogger("upstream").warning("Failed to load")
        for _ in range(2):
            warnings.warn("a buffer starts at 3", EtgraphWarning, stacklevel=1)
        print("from somebody's model")
    assert capsys.readouterr() == ("", "warning: a buffer starts at 3\nfrom somebody's model\n")
    assert shown == []


def test_verbose_shows_what_upstream_says(caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder) -> None:
    caplog.set_level(logging.WARNING)
    with only_what_matters(Output(verbose=True)):
        warnings.warn("pytree is deprecated", FutureWarning, stacklevel=1)
        logging.getLogger("upstream").warning("Failed to load")
    assert [str(one.message) for one in recwarn] == ["pytree is deprecated"]
    assert "Failed to load" in caplog.text


def test_errors_that_upstream_logs_are_never_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with only_what_matters(Output()):
        logging.getLogger("upstream").error("the compiler crashed")
    assert "the compiler crashed" in caplog.text


def test_logging_and_warnings_are_as_before_afterwards() -> None:
    before = (logging.root.manager.disable, warnings.showwarning, sys.stdout)
    with only_what_matters(Output()):
        assert logging.root.manager.disable >= logging.WARNING
    assert (logging.root.manager.disable, warnings.showwarning, sys.stdout) == before


NOISE = "[cpuinfo_utils.cpp:71] Reading file /sys/devices/soc0/image_version\n"


def test_runtime_log_is_hidden_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    """From C++ and from Python alike; a warning that comes meanwhile is not lost."""
    with runtime_log_hidden(verbose=False):
        os.write(2, NOISE.encode())
        print(NOISE, end="", file=sys.stderr)
        print("warning: a word of ours", file=sys.stderr)
        os.write(2, b"a word of C++\n")
    assert capfd.readouterr().err == "warning: a word of ours\na word of C++\n"


def test_runtime_log_is_shown_when_the_block_fails_or_by_wish(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), runtime_log_hidden(verbose=False):
        os.write(2, NOISE.encode()) / 0
    assert capfd.readouterr().err == NOISE
    with runtime_log_hidden(verbose=True):
        os.write(2, NOISE.encode())
    assert capfd.readouterr().err == NOISE


def test_table_is_never_cut_and_has_no_trailing_blanks() -> None:
    long = "x" * 300
    assert table([("a", "1"), (long, "10")], right=(1,)) == f"a{' ' * 299}   1\n{long}  10"


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    assert table([("float32[1, 3]", "[red]")]) == "float32[1, 3]  [red]"
