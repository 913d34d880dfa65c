"""Targets on the command line: listed with what is missing, run several at a time, none lost by another's failure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from etgraph.recipes import Recipe
from etgraph.registry import registry
from etgraph.targets import Needs, Target
from stages.recipes.xnnpack import xnnpack_fp32

from .conftest import Etgraph

CALIBRATED = """
import torch, etgraph
from net import make as plain

def make():
    model, inputs = plain()
    return etgraph.Source(model, inputs, calibration_inputs=[inputs, (torch.randn(1, 3, 8, 8),)])
"""


def failing() -> Recipe:
    """XNNPACK by a partitioner that fails."""
    from executorch.exir.backend.partitioner import Partitioner

    class Broken(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            raise RuntimeError("it is broken")

    return xnnpack_fp32().with_options("to_edge_transform_and_lower", partitioners=[Broken()])


@pytest.fixture
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)


def test_each_target_is_listed_with_what_this_host_can_do(etgraph_cli: Etgraph, no_sdk: None) -> None:
    """The kinds of hardware that are promised are there, with precision, order of backends and what is missing."""
    rows = {row["name"]: row for row in etgraph_cli("list", "targets", "--json").document["targets"]}
    for name in (
        "ios-arm64-coreml-fp16", "ios-arm64-coreml-fp32", "ios-arm64-coreml-int8", "ios-arm64-coreml-int4w",
        "macos-arm64-coreml-fp16", "android-arm64-xnnpack-fp32", "android-arm64-xnnpack-int8",
        "android-arm64-vulkan-fp16", "android-arm64-vulkan-fp32", "android-arm64-qnn-fp16", "linux-x86_64-xnnpack-fp32",
        "linux-x86_64-xnnpack-int8", "linux-x86_64-xnnpack-int8_dynamic", "linux-x86_64-xnnpack-8da4w",
        "windows-x86_64-xnnpack-fp32", "macos-arm64-xnnpack-fp32", "linux-x86_64-openvino-fp32",
        "linux-x86_64-openvino-int8", "baremetal-cortex_m55-cmsis_nn-int8", "corstone300-cortex_m55-ethos_u55-int8",
        "corstone300-cortex_m55-ethos_u65-int8", "corstone320-cortex_m85-ethos_u85-int8", "generic-tosa_1.0-tosa-int8",
        "baremetal-xtensa-cadence-int8",
    ):  # fmt: skip
        assert rows[name]["precision"] == name.rpartition("-")[2]
    assert rows["ios-arm64-coreml-fp16"]["backends"] == ["CoreMLBackend", "XnnpackBackend"]
    assert not rows["ios-arm64-coreml-fp16"]["runs_here"]
    assert rows["linux-x86_64-xnnpack-fp32"]["runs_here"]
    qnn = rows["android-arm64-qnn-fp16"]
    assert not qnn["lowers_here"]
    assert "QNN_SDK_ROOT is not set" in qnn["missing"][0]
    assert "set QNN_SDK_ROOT" in qnn["install"]


def test_what_is_missing_stands_in_the_line_of_the_target(etgraph_cli: Etgraph, no_sdk: None) -> None:
    told = etgraph_cli("list", "targets").out
    wanted = r"android-arm64-qnn-fp16 +fp16 +no +no\n +QnnBackend, then XnnpackBackend\n +to lower: install Qualcomm's"
    assert re.search(wanted, told), told
    assert max(map(len, told.splitlines())) <= 80


def test_listing_imports_nothing_heavy(folder: Path) -> None:
    """A fresh process lists targets without torch, executorch or a backend in it."""
    code = (
        "import sys; from etgraph.cli.app import invoke; assert invoke(['list', 'targets', '-h']) == 0; "
        "assert invoke(['list', 'targets']) == 0; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'torch', 'executorch', 'torchao', 'coremltools', 'openvino', 'nncf', 'ethosu', 'networkx'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_doctor_says_what_would_add_targets(etgraph_cli: Etgraph, no_sdk: None) -> None:
    answer = etgraph_cli("doctor")
    able = sum(not target.to_lower.missing() for target in registry.targets.values())
    assert f"targets: {able} of {len(registry.targets)} can be lowered here" in answer.out
    assert "android-arm64-qnn-fp16:\n      install Qualcomm's AI Engine Direct SDK" in answer.out


def test_several_targets_at_once(etgraph_cli: Etgraph, folder: Path, no_sdk: None) -> None:
    """One export for all, a file for each that can be made, and a line for the one that cannot."""
    (folder / "calibrated.py").write_text(CALIBRATED)
    names = ["linux-x86_64-xnnpack-fp32", "android-arm64-qnn-fp16", "android-arm64-xnnpack-int8"]
    targets = [word for name in names for word in ("--target", name)]
    more = ("--no-cache", "--verify", "--dump-stages", "dump", "--json")
    answer = etgraph_cli("run", "calibrated.py:make", *targets, "-o", "out", *more)
    assert answer.code == 1
    fp32, qnn, int8 = answer.document["targets"]
    assert [row["target"] for row in (fp32, qnn, int8)] == names
    assert sorted(p.name for p in (folder / "out").iterdir()) == [
        "make.android-arm64-xnnpack-int8.pte",
        "make.linux-x86_64-xnnpack-fp32.pte",
    ]
    assert (qnn["outcome"], qnn["exit_code"]) == ("failed", 2)
    assert qnn["error"].startswith("target android-arm64-qnn-fp16 cannot be lowered here: Qualcomm's")
    assert [step["outcome"] for step in int8["steps"]][:2] == ["reused", "ran"]
    assert int8["steps"][0]["reason"] == "shared with linux-x86_64-xnnpack-fp32"
    for row in (fp32, int8):
        assert row["bytes"] == Path(row["path"]).stat().st_size
        assert row["delegation"]["forward"]["backends"][0]["name"] == "XnnpackBackend"
        assert row["verification"]["passed"] is True
    assert int8["verification"]["tolerance"]["snr"] == 20
    assert [Path(one).name for one in fp32["dumped"]] == [
        "make.1.exported.etg", "make.2.lowered.etg", "make.3.executorch.pte",
    ]  # fmt: skip
    assert {Path(one).parent for one in int8["dumped"]} == {Path("dump/android-arm64-xnnpack-int8")}
    assert all(Path(one).exists() for row in (fp32, int8) for one in row["dumped"])


def test_a_failure_says_how_to_go_on_for_its_target_alone(
    etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a target whose lowering fails, the exported program is kept."""
    names = ("linux-x86_64-xnnpack-fp32", "linux-x86_64-xnnpack-failing")
    made = Target(names[1], failing, "", ("XnnpackBackend",), Needs(), None, 80)
    monkeypatch.setitem(registry.targets, made.name, made)
    targets = [word for name in names for word in ("--target", name)]
    answer = etgraph_cli("run", "net.py:make", *targets, "-o", "out", "--no-cache", "--dump-stages", "dump", "--json")
    good, failed = answer.document["targets"]
    assert (good["outcome"], failed["outcome"], answer.code) == ("done", "failed", 1)
    assert failed["dumped"] == ["dump/linux-x86_64-xnnpack-failing/make.1.exported.etg"]
    assert failed["resume_command"] == (
        "etgraph run dump/linux-x86_64-xnnpack-failing/make.1.exported.etg --target linux-x86_64-xnnpack-failing "
        "-o out/make.linux-x86_64-xnnpack-failing.pte"
    )
    assert failed["resume_command"] in failed["error"]


def test_the_plan_for_each_target_is_shown_and_nothing_is_run(etgraph_cli: Etgraph, folder: Path) -> None:
    names = ("linux-x86_64-xnnpack-8da4w(group_size=64)", "android-arm64-xnnpack-fp32")
    targets = [word for name in names for word in ("--target", name)]
    answer = etgraph_cli("run", "net.py:make", *targets, "--dry-run", "-o", "out")
    assert answer.code == 0
    assert [line for line in answer.out.splitlines() if line.startswith("from module to")] == [
        f"from module to executorch under recipe {name}" for name in names
    ]
    assert answer.out.endswith("nothing was run (--dry-run)\n")
    assert not (folder / "out").exists()


def test_a_target_without_a_plan_does_not_hide_the_others(etgraph_cli: Etgraph) -> None:
    names = ("linux-x86_64-xnnpack-int8", "android-arm64-xnnpack-fp32")
    targets = [word for name in names for word in ("--target", name)]
    answer = etgraph_cli("run", "net.py:make", *targets, "--dry-run", "--json")
    bad, good = answer.document["targets"]
    assert answer.code == bad["exit_code"] == 2
    assert "needs calibration_inputs" in bad["error"]
    assert good["plan"]["steps"]


def test_the_table_has_a_line_for_each(etgraph_cli: Etgraph, folder: Path, no_sdk: None) -> None:
    answer = etgraph_cli(
        "run", "net.py:make", "--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-qnn-fp16", "-o", "."
    )
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert re.fullmatch(r"target\s+size\s+delegated\s+time", lines[0])
    assert re.match(r"linux-x86_64-xnnpack-fp32\s+done\s+\S+ (kB|bytes)\s+\d+%\s+\S+ s\s+make\.linux", lines[1])
    assert re.match(r"android-arm64-qnn-fp16\s+failed\s+target android-arm64-qnn-fp16 cannot be lowered", lines[2])
    assert "error: android-arm64-qnn-fp16:" in answer.err


def test_one_target_says_what_was_taken_and_that_this_host_cannot_run_it(etgraph_cli: Etgraph, folder: Path) -> None:
    answer = etgraph_cli("run", "net.py:make", "--target", "android-arm64-vulkan-fp32", "-o", "net.pte")
    assert answer.code == 0
    assert re.search(r"forward: VulkanBackend \d+ operators in \d+ delegates?, .*\d on portable kernels", answer.out)
    assert "needs VulkanBackend, which the ExecuTorch runtime of this host does not have" in answer.err
    assert "each takes what those before it left: VulkanBackend, then XnnpackBackend" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "linux-x86_64-xnnpack-fp3"), "did you mean 'linux-x86_64-xnnpack-fp32'?"),
        (
            ("--target", "linux-x86_64-xnnpack-fp32", "--recipe", "portable"),
            "were both given, and a target is a recipe",
        ),
        (
            ("--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-xnnpack-fp32", "-o", "x.pte"),
            "names a file, and several targets make one each",
        ),
        (
            ("--target", "linux-x86_64-xnnpack-fp32", "--target", "android-arm64-xnnpack-fp32", "--trace-numerics"),
            "--trace-numerics is about one target, and 2 were given",
        ),
        (("--target", "linux-x86_64-xnnpack-8da4w(groups=64)"), "has no option 'groups'; did you mean 'group_size'?"),
        (("--recipe", "xnnpack_8da4w(group_size=x)"), "is given as x, which is no literal value"),
        (("--recipe", "android-arm64-xnnpack-fp32"), "Give target='android-arm64-xnnpack-fp32'"),
    ],
)
def test_what_cannot_be_meant_is_refused(etgraph_cli: Etgraph, arguments: tuple[str, ...], said: str) -> None:
    answer = etgraph_cli("run", "net.py:make", *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_a_plan_says_the_way_of_an_operator_library(etgraph_cli: Etgraph) -> None:
    said = etgraph_cli("plan", "net.py:make", "--target", "baremetal-xtensa-cadence-int8").err
    assert "needs calibration_inputs" in said
    answer = etgraph_cli("plan", "net.py:make", "--target", "android-arm64-qnn-fp16")
    assert answer.code == 0
    assert "to_edge_transform_and_lower  (exported -> lowered)" in answer.out
