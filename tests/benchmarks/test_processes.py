"""Measured processes: each by itself, in turns."""

import pytest

from benchmarks.processes import Run, interleaved, run


def test_peak_memory_is_of_the_one_process():
    """A small process after a large one is small again."""
    large = run(["-c", "held = bytearray(300_000_000)"])
    small = run(["-c", "pass"])
    assert large.peak > 300_000_000
    assert small.peak < 150_000_000


def test_processor_time_is_of_the_one_process():
    busy = run(["-c", "import time\nwhile time.process_time() < 0.5: pass"])
    idle = run(["-c", "import time\ntime.sleep(0.6)"])
    assert busy.cpu >= 0.5 > idle.cpu
    assert idle.wall >= 0.6


def test_what_it_tells_is_its_last_line():
    assert run(["-c", "print('talk'); print('{\"wall\": 1.5}')"]).told == {"wall": 1.5}


def test_a_process_that_fails_is_no_measurement():
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3:.*sorry"):
        run(["-c", "import sys; print('sorry', file=sys.stderr); sys.exit(3)"])


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
