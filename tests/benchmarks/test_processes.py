"""Measured processes: each by itself, in turns."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import Run, interleaved

ROOT = Path(__file__).resolve().parents[2]


def measured(*code):
    """Measure processes from one that is small, as the benchmarks are: this one may have imported torch."""
    script = """
import dataclasses, json, sys
from benchmarks.processes import run
for code in sys.argv[1:]:
    try:
        done = run(["-c", code])
        print(json.dumps(dataclasses.asdict(done) | {"told": done.told if "{" in done.out else None}))
    except RuntimeError as error:
        print(json.dumps(str(error)))
"""
    done = subprocess.run([sys.executable, "-c", script, *code], cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_peak_memory_is_of_the_one_process():
    """A small process after a large one is small again."""
    large, small = measured("held = bytearray(300_000_000)", "pass")
    assert large["peak"] > 300_000_000
    assert small["peak"] < 150_000_000


def test_processor_time_is_of_the_one_process():
    busy, idle = measured("import time\nwhile time.process_time() < 0.5: pass", "import time\ntime.sleep(0.6)")
    assert busy["cpu"] >= 0.5 > idle["cpu"]
    assert idle["wall"] >= 0.6


def test_what_it_tells_is_its_last_line():
    (told,) = measured("print('talk'); print('{\"wall\": 1.5}')")
    assert told["told"] == {"wall": 1.5}


def test_a_process_that_fails_is_no_measurement():
    (error,) = measured("import sys; print('sorry', file=sys.stderr); sys.exit(3)")
    assert "ended with 3:" in error
    assert "sorry" in error


def test_ways_take_turns_and_every_other_round_backwards():
    order = []

    def way(name):
        def go(number):
            order.append(f"{name}{number}")
            return Run(1.0, 1.0, 1, "", "")

        return go

    runs = interleaved({"a": way("a"), "b": way("b"), "c": way("c")}, 3, once=["c"])
    assert order == ["a0", "b0", "c0", "b1", "a1", "a2", "b2"]
    assert {name: len(done) for name, done in runs.items()} == {"a": 3, "b": 3, "c": 1}
