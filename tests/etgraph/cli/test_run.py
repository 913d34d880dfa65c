"""`etgraph run`: results, files, checks, failures and what is left behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Etgraph, check_golden, normalised

#: The command line in a process of its own.
ETGRAPH = (sys.executable, "-c", "from etgraph.cli import main; main()")


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_module_to_verified_pte(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "--verify", "--no-cache")
    assert answer.code == 0
    check_golden("run_verify", normalised(answer.out))
    assert answer.err == "note: no recipe was given, so xnnpack_fp32 is meant\n"
    assert files_in(folder) == {"net.py", "make.pte"}
    assert (folder / "make.pte").read_bytes()[4:8] == b"ET12"


def test_json_document_says_everything(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "--verify", "--json", "--recipe", "portable", "-o", "out.pte")
    found = answer.document
    assert (answer.code, answer.err) == (0, "")
    assert found["source"] == {"given": "net.py:make", "kind": "module"}
    assert (found["recipe"], found["kind"]) == ("portable", "executorch")
    assert found["plan"]["kinds"] == ["module", "exported", "edge", "executorch"]
    assert [step["stage"] for step in found["steps"]] == ["torch_export", "to_edge", "to_executorch"]
    assert all(step["seconds"] > 0 and step["peak_bytes"] > 1e6 and step["reason"] for step in found["steps"])
    assert found["output"] == {"path": "out.pte", "bytes": (folder / "out.pte").stat().st_size}
    outputs = found["verification"]["methods"]["forward"]["outputs"]
    assert found["verification"]["passed"] is True
    assert 0 <= outputs[0]["max_absolute_error"] < 1e-5


def test_quiet_prints_nothing_but_writes(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert (folder / "make.pte").exists()


def test_second_run_reuses_and_says_so_and_refresh_builds_again(etgraph_cli: Etgraph) -> None:
    def outcomes(*more: str) -> list[str]:
        steps = etgraph_cli("run", "net.py:make", "--recipe", "portable", "--json", *more).document["steps"]
        return [step["outcome"] for step in steps]

    assert outcomes() == ["ran"] * 3
    assert outcomes() == ["reused"] * 3
    assert outcomes("--refresh") == ["ran"] * 3
    assert outcomes("--no-cache") == ["ran"] * 3
    assert outcomes("--cache-dir", "elsewhere") == ["ran"] * 3
    assert outcomes("--cache-dir", "elsewhere") == ["reused"] * 3


@pytest.mark.parametrize("recipe", ["portable", "xnnpack_fp32"])
def test_stopped_at_edge_and_resumed_from_the_file_gives_the_same_bytes(
    folder: Path, etgraph_cli: Etgraph, recipe: str
) -> None:
    split = ("--recipe", recipe, "--path", "split", "--no-cache")
    assert etgraph_cli("run", "net.py:make", *split, "-o", "whole.pte").code == 0
    assert etgraph_cli("run", "net.py:make", *split, "--to", "edge").code == 0
    resumed = etgraph_cli("run", "make.edge.etg", *split, "-o", "resumed.pte", "--verify")
    assert resumed.code == 0, resumed.err
    assert (folder / "resumed.pte").read_bytes() == (folder / "whole.pte").read_bytes()


def test_every_artifact_on_the_way_is_dumped_and_each_resumes_to_the_same_bytes(
    folder: Path, etgraph_cli: Etgraph
) -> None:
    answer = etgraph_cli("run", "net.py:make", "--dump-stages", "stages", "--no-cache")
    assert answer.code == 0, answer.err
    assert files_in(folder / "stages") == {
        "make.1.exported.etg",
        "make.2.lowered.etg",
        "make.3.executorch.pte",
    }
    whole = (folder / "make.pte").read_bytes()
    assert (folder / "stages" / "make.3.executorch.pte").read_bytes() == whole
    for name in ("make.1.exported.etg", "make.2.lowered.etg"):
        assert etgraph_cli("run", f"stages/{name}", "-o", "again.pte", "--no-cache").code == 0
        assert (folder / "again.pte").read_bytes() == whole


def test_reused_artifacts_are_dumped_too(folder: Path, etgraph_cli: Etgraph) -> None:
    etgraph_cli("run", "net.py:make", "--recipe", "portable")
    found = etgraph_cli("run", "net.py:make", "--recipe", "portable", "--dump-stages", "s", "--json").document
    assert {step["outcome"] for step in found["steps"]} == {"reused"}
    assert found["dumped"] == ["s/make.1.exported.etg", "s/make.2.edge.etg", "s/make.3.executorch.pte"]


def test_shapes_stand_in_for_example_inputs(folder: Path, etgraph_cli: Etgraph) -> None:
    arguments = ("run", "net.py:Net", "--eval", "--recipe", "portable", "--no-cache")
    missing = etgraph_cli(*arguments)
    assert missing.code == 2
    assert "--shape 1x3x224x224" in missing.err
    assert etgraph_cli(*arguments, "--shape", "1x3x8x8", "--verify").code == 0


def test_keyword_shapes_reach_the_argument_of_that_name(folder: Path, etgraph_cli: Etgraph) -> None:
    (folder / "words.py").write_text(
        "import torch\nclass Words(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.table = torch.nn.Embedding(2, 4)\n"
        "    def forward(self, ids, *, scale):\n        return self.table(ids) * scale\n"
    )
    answer = etgraph_cli(
        "run", "words.py:Words", "--shape", "2x5:int64", "--shape", "scale=4", "--recipe", "portable", "--verify", "-q"
    )
    assert (answer.code, answer.err) == (0, "")


def test_module_in_training_mode_is_one_tidy_warning_and_eval_cures_it(etgraph_cli: Etgraph) -> None:
    arguments = ("run", "net.py:Net", "--shape", "2x3x8x8", "--to", "exported", "--no-cache")
    warned = etgraph_cli(*arguments)
    (line,) = [line for line in warned.err.splitlines() if line.startswith("warning: ")]
    assert "training mode" in line
    assert "--eval" in line
    assert "training mode" in etgraph_cli(*arguments, "--json").document["warnings"][0]
    assert "warning" not in etgraph_cli(*arguments, "--eval").err


def test_dry_run_shows_the_plan_and_writes_nothing(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:make", "--dry-run")
    assert answer.code == 0
    assert answer.out == etgraph_cli("plan", "net.py:make").out + "nothing was run (--dry-run)\n"
    assert files_in(folder) == {"net.py"}
    assert etgraph_cli("run", "net.py:make", "--dry-run", "--json").document["dry_run"] is True


def test_failed_stage_has_an_address_and_leaves_nothing(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "-o", "b.pte", "--no-cache")
    assert answer.code == 1
    assert answer.out == ""
    assert "method forward" in answer.err
    assert "erfinv" in answer.err
    assert "net.py:" in answer.err
    assert "return torch.erfinv(y)" in answer.err
    assert "Traceback" not in answer.err
    assert files_in(folder) == {"net.py"}


def test_failed_stage_as_json(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--json")
    error = answer.document["error"]
    assert (answer.code, answer.err) == (1, "")
    assert error["type"] == "StageError"
    assert error["stage"] in ("to_edge", "to_executorch")
    assert error["method"] == "forward"
    assert "return torch.erfinv(y)" in error["source_line"]
    assert error["resume_command"].startswith("etgraph run net.py:broken")


def resume_command(err: str) -> str:
    return next(line.strip() for line in err.splitlines() if line.strip().startswith("etgraph run"))


def test_after_a_failure_the_cache_resumes_by_the_same_command(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--refresh", "-o", "a b.pte")
    assert "which is in the cache:" in answer.err
    assert resume_command(answer.err) == "etgraph run net.py:broken --recipe portable -o 'a b.pte'"


def test_after_a_failure_what_could_not_be_cached_is_not_said_to_be(folder: Path, etgraph_cli: Etgraph) -> None:
    """A cache that cannot be written is no failure of a run, and nothing to resume from."""
    (folder / "file").touch()
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--cache-dir", "file")
    assert answer.code == 1
    assert "in the cache" not in answer.err
    assert "--dump-stages broken.stages" in resume_command(answer.err)


def test_after_a_failure_without_cache_the_command_keeps_artifacts(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--no-cache")
    assert resume_command(answer.err).endswith("--no-cache --dump-stages broken.stages")


def test_after_a_failure_the_command_starts_from_the_last_dumped_file(folder: Path, etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:broken", "--recipe", "portable", "--dump-stages", "s", "--no-cache")
    command = shlex.split(resume_command(answer.err))
    assert command[:2] == ["etgraph", "run"]
    assert (folder / command[2]).exists()
    assert command[3:] == ["--recipe", "portable", "-o", "broken.pte"]
    again = etgraph_cli(*command[1:])
    assert again.code == 1
    assert "erfinv" in again.err


def test_command_of_a_first_stage_that_fails_is_the_same_again(etgraph_cli: Etgraph) -> None:
    answer = etgraph_cli("run", "net.py:Net", "--eval", "--refresh", "--shape", "1x4x8x8")
    assert answer.code == 1
    assert "stage torch_export" in answer.err
    assert resume_command(answer.err) == "etgraph run net.py:Net --eval --shape 1x4x8x8"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "egde"), "did you mean 'edge'"),
        (("--from", "edge"), "SOURCE net.py:make is at module, and --from edge was asked for"),
        (("--from", "modul"), "did you mean 'module'"),
        (("--recipe", "xnnpak_fp32"), "did you mean 'xnnpack_fp32'"),
        (("--recipe", "portable", "--target", "ios"), "were both given"),
        (("--target", "no-such-board"), "--target no-such-board: there is no such target"),
        (("--path", "sideways"), "not one of auto, combined, split"),
        (("--shape", "1,2"), "--shape 1,2 cannot be read"),
        (("-o", "x.etg"), "suffix of intermediate programs"),
        (("--to", "edge", "-o", "x.pte"), "suffix of the final product"),
        (("-o", "no/x.pte"), "the folder no does not exist"),
        (("--to", "module"), "cannot be written to a file"),
        (("--to", "edge", "--verify"), "--verify executes a .pte"),
        (("--trust",), "--trust is about files"),
        (("--no-cache", "--refresh"), "--no-cache and --refresh"),
        (("--no-cache", "--cache-dir", "d"), "--no-cache and --cache-dir"),
        (("--nonsense",), "--nonsense"),
        (("--dump-stages", "net.py"), "--dump-stages net.py"),
    ],
)
def test_wrong_use_is_refused_before_any_work(
    folder: Path, etgraph_cli: Etgraph, arguments: tuple[str, ...], said: str
) -> None:
    """Exit code 2, words on stderr, one document under --json, and nothing written."""
    answer = etgraph_cli("run", "net.py:make", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    as_json = etgraph_cli("run", "net.py:make", *arguments, "--json")
    assert (as_json.code, as_json.err) == (2, "")
    error = as_json.document["error"]
    assert said in error["problem"] + error["hint"]
    assert files_in(folder) == {"net.py"}


def test_verify_without_inputs_is_refused_before_any_work(folder: Path, etgraph_cli: Etgraph) -> None:
    import torch

    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    program._example_inputs = None
    torch.export.save(program, folder / "bare.pt2")
    answer = etgraph_cli("run", "bare.pt2", "--verify")
    assert answer.code == 2
    assert "--verify needs example inputs" in answer.err
    assert files_in(folder) == {"net.py", "bare.pt2"}
    assert etgraph_cli("run", "bare.pt2", "--verify", "--shape", "2").code == 0


def test_eval_is_refused_past_the_module(folder: Path, etgraph_cli: Etgraph) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), folder / "relu.pt2")
    answer = etgraph_cli("run", "relu.pt2", "--eval")
    assert answer.code == 2
    assert "is at exported already" in answer.err


def test_program_of_a_backend_that_this_host_lacks_is_written_and_said_not_to_be_verified(
    folder: Path, etgraph_cli: Etgraph
) -> None:
    """A Core ML program is whole on a host without Core ML; nobody is told that it was checked."""
    pytest.importorskip("coremltools")
    if sys.platform == "darwin":
        pytest.skip("this host has Core ML")
    answer = etgraph_cli("run", "net.py:make", "--recipe", "coreml_fp32", "--verify", "--no-cache")
    assert answer.code == 0, answer.err
    assert "warning: not verified: this program needs CoreMLBackend" in answer.err
    assert "compared with the source" not in answer.out
    assert (folder / "make.pte").exists()


def test_wrong_result_exits_1_and_says_which_output(
    folder: Path, etgraph_cli: Etgraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model differs between tracing and checking, as one that reads a global does."""
    (folder / "moody.py").write_text(
        "import torch\nclass Moody(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x * (1.0 if torch.compiler.is_exporting() else 1.5)\n"
    )
    arguments = ("run", "moody.py:Moody", "--shape", "4", "--recipe", "portable", "--verify", "--no-cache")
    answer = etgraph_cli(*arguments)
    assert answer.code == 1
    assert "TOO LARGE" in answer.out
    assert "the outputs differ from those of moody.py:Moody" in answer.err
    found = etgraph_cli(*arguments, "--json")
    assert found.code == 1
    assert found.document["verification"]["passed"] is False


SLEEPER = """
import pathlib, time, torch

class Sleeper(torch.nn.Module):
    def forward(self, x):
        pathlib.Path("started").touch()
        for _ in range(600):
            time.sleep(0.1)  # A signal that comes just before a sleep is seen after it.
        return x

def make():
    return Sleeper(), (torch.ones(2),)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_interrupted_run_leaves_nothing(folder: Path, number: signal.Signals, code: int) -> None:
    """A real signal to a real process in the middle of a stage."""
    (folder / "sleeper.py").write_text(SLEEPER)
    command = [*ETGRAPH, "run", "sleeper.py:make", "-o", "x.pte"]
    before = signal.getsignal(signal.SIGINT)
    # What a shell starts in the background ignores Ctrl-C, and so does what that starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    while not (folder / "started").exists():
        assert process.poll() is None, process.communicate()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    if number is signal.SIGINT:
        assert err.strip().splitlines()[-1] == "etgraph: interrupted; no output file was written"
    assert files_in(folder) == {"net.py", "sleeper.py", "started"}


def test_fresh_process_prints_no_noise_of_upstream(folder: Path) -> None:
    """What torchao, pytree, XNNPACK and the C++ runtime print when they are loaded stays hidden."""

    done = subprocess.run(
        [*ETGRAPH, "run", "net.py:make", "--verify", "--no-cache", "--recipe", "xnnpack_fp32"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert normalised(done.stdout) == (Path(__file__).parent / "golden" / "run_verify.txt").read_text()


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_terminal_shows_each_step_and_then_the_table_alone(folder: Path) -> None:
    """On a terminal the steps are seen as they run; in a pipe (every other test) there is nothing of it."""
    import pty

    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from etgraph.cli import main; main()",
        "run",
        "net.py:make",
        "--recipe",
        "portable",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += os.read(master, 1 << 16)
        except OSError:  # Linux's word for the end of a terminal
            break
    out = process.communicate()[0].decode()
    assert process.returncode == 0
    assert b"2/3 to_edge" in shown
    assert b"3/3 to_executorch (ran)" in shown
    assert "3/3" not in out
    assert "wrote make.pte" in out
