"""Peak memory: exact where a step holds more than ever, sampled where something before it held more."""

import subprocess
import sys

import pytest

MEASURE = """
import sys, time
from etgraph.memory import PeakMemory

def hold(megabytes, seconds=0.0):
    data = bytearray(megabytes * 10**6)
    data[::4096] = bytes(len(range(0, len(data), 4096))).replace(b"\\0", b"\\1")
    time.sleep(seconds)

def measured(megabytes, seconds=0.0):
    with PeakMemory() as peak:
        peak.start()
        hold(megabytes, seconds)
    return peak.bytes / 1e6

{body}
"""


def measured(body):
    """The megabytes that a process prints, each on a line of its own."""
    done = subprocess.run([sys.executable, "-c", MEASURE.format(body=body)], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows gives samples only")
def test_a_spike_above_all_before_is_seen_however_short():
    large = bytearray(b"x") * 500_000_000  # What the process that starts another holds counts for nothing.
    idle, spike = measured("print(measured(0)); print(measured(300))")
    assert large[-1]
    assert 290 < spike - idle < 330


def test_a_step_after_a_larger_one_has_its_own_peak():
    idle, large, small = measured("print(measured(0)); print(measured(400, 1)); print(measured(100, 1))")
    assert large - idle > 390
    assert 90 < small - idle < 150


def test_what_was_never_started_has_no_peak():
    assert measured("with PeakMemory() as peak: hold(50)\nprint(peak.bytes)") == [0]
