"""The pytest plugin as its users have it: tests that pass, tests that fail, and the tables that they fail with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from null_world import null_world, seed

import etgraph
from etgraph.pytest_plugin import _bytes, assert_plan_unchanged

MODEL = """
    import pytest
    import torch
    import etgraph
    from etgraph.pytest_plugin import *

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.head = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.fmod(self.head(x), 2.0)

    @pytest.fixture
    def result(etgraph_run):
        return etgraph_run(Net().eval(), (torch.ones(1, 4),), recipe="xnnpack_fp32")
"""


@pytest.fixture
def user(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of a user's tests, run in processes of their own: torch cannot be imported twice in one.

    The plugin is loaded by name, whether or not it is installed as one.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\naddopts = -p etgraph.pytest_plugin")
    return pytester


def test_assertions_that_hold_pass_wrong_arguments_are_errors_and_the_model_is_lowered_once(
    user: pytest.Pytester,
) -> None:
    user.makepyfile(
        MODEL
        + """
    def test_all_of_them(result, etgraph_plan_snapshot):
        etgraph_plan_snapshot(result)
        assert_delegated(result, at_least=0.5)
        assert_delegated(result, at_least=0.5, backend="XnnpackBackend")
        assert_operators_absent(result, r"aten::sort", "dequantize")
        assert_matches_eager(result)
        assert_matches_eager(result, [(torch.randn(1, 4),), (torch.randn(1, 4),)])
        assert_error_below(result, 1e-5)
        assert_size_at_most(result, "10 kB")

    def test_again(result):
        assert [step.outcome for step in result.steps] == ["reused"] * 3

    def test_share(result):
        with pytest.raises(ValueError, match="from 0 to 1"):
            assert_delegated(result, at_least=90)

    def test_nothing(result):
        with pytest.raises(ValueError, match="at least one operator"):
            assert_operators_absent(result)

    def test_size(result):
        with pytest.raises(ValueError, match="'2 stone' is no size"):
            assert_size_at_most(result, "2 stone")
    """
    )
    user.runpytest_subprocess("--etgraph-update-plans").assert_outcomes(passed=5)
    written = json.loads((user.path / "plans" / "test_all_of_them.json").read_text())
    assert [step["stage"] for step in written["steps"]] == [
        "torch_export",
        "to_edge_transform_and_lower",
        "to_executorch",
    ]


def test_assertions_that_do_not_hold_fail_with_the_table(user: pytest.Pytester) -> None:
    user.makepyfile(
        MODEL
        + """
    def test_delegated(result):
        assert_delegated(result, at_least=0.9)

    def test_other_backend(result):
        assert_delegated(result, at_least=0.1, backend="CoreMLBackend")

    def test_absent(result):
        assert_operators_absent(result, r"fmod")

    def test_size(result):
        assert_size_at_most(result, "1 kB")

    def test_error(result):
        assert_error_below(result, 0.0)

    def test_eager(result):
        result.source.methods["forward"].head.bias.data.add_(1.0)
        assert_matches_eager(result, snr=200.0)

    def test_plan(result, etgraph_plan_snapshot):
        etgraph_plan_snapshot(result)
    """
    )
    outcome = user.runpytest_subprocess()
    outcome.assert_outcomes(failed=7)
    outcome.stdout.fnmatch_lines_random(
        [
            "backends took too little: forward 50.0%, and at least 90.0% is wanted",
            "  method   XnnpackBackend  portable  share",
            "  forward  1               1         50.0%  too little",
            "CoreMLBackend took too little: forward 0.0%, and at least 10.0% is wanted",
            "operators that match fmod are in the program at executorch",
            "  forward  aten::fmod.Scalar_out  1",
            "the program takes * kB (* bytes), and at most 1.0 kB (1,000) is wanted",
            "  the largest parts *what it is *method *size",
            "1 of 1 outputs differ from the source by more than is allowed: an absolute error below 0 is wanted",
            "1 of 1 outputs differ from the source by more than is allowed: 0.001 relative *",
            "  method   output  largest error  relative  signal to noise",
            "  forward  0       * too large",
            "there is no plan in *plans/test_plan.json yet",
        ]
    )
    assert "Traceback" not in outcome.stdout.str()


def wet(litres: int, to: str = "fruit") -> etgraph.Plan:
    recipe = etgraph.Recipe(name="wet", stages={"water": {"litres": litres}})
    return etgraph.plan(seed(), recipe=recipe, to=to, cache=False)


def test_a_plan_is_compared_by_its_steps_and_the_values_of_its_options(tmp_path: Path) -> None:
    file = tmp_path / "plans" / "wet.json"
    with null_world():
        with pytest.raises(pytest.fail.Exception, match="--etgraph-update-plans writes it"):
            assert_plan_unchanged(wet(1), file)
        assert_plan_unchanged(wet(1), file, update=True)
        assert_plan_unchanged(wet(1), file)
        assert_plan_unchanged(SimpleNamespace(plan=wet(1)), file)
        with pytest.raises(pytest.fail.Exception) as caught:
            assert_plan_unchanged(wet(2), file)
        assert "-    litres = 1" in str(caught.value)
        assert "+    litres = 2" in str(caught.value)
        with pytest.raises(pytest.fail.Exception, match=r"-ripen \(sprout -> fruit\)"):
            assert_plan_unchanged(wet(1, to="sprout"), file)


@pytest.mark.parametrize(
    ("given", "wanted"), [(7, 7), ("7", 7), ("2 MB", 2_000_000), ("0.5MiB", 524_288), ("3_000 b", 3000)]
)
def test_sizes_in_words(given: int | str, wanted: int) -> None:
    assert _bytes(given) == wanted


def test_loading_the_plugin_loads_neither_torch_nor_the_engine() -> None:
    seen = (
        "import sys, pytest; before = set(sys.modules); import etgraph.pytest_plugin; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('etgraph.pytest_plugin')))"
    )
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['etgraph']"
