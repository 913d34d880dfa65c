"""Random sequences of store, lookup, prune, damage and restart, against a dictionary."""

import shutil
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from etgraph.blobs import digest_of
from etgraph.errors import CacheEntryError
from etgraph.store import Cache

KEYS = st.sampled_from(["a", "b", "c", "d"])
#: Packed, read and mapped; chosen from few, so that entries share them.
BLOBS = {
    digest_of(blob): blob
    for blob in (
        b"",
        b"small",
        b"s" * 16_383,
        b"r" * 16_384,
        b"q" * 100_000,
        b"m" * 1_048_576,
        b"n" * 1_500_001,
    )
}


class StoreMachine(RuleBasedStateMachine):
    """The cache may forget; it may not invent, mix or lose what is in use."""

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="etgraph-random-"))
        self.cache = Cache(self.place / "cache", size_limit="1GB")
        self.model = {}
        self.sure = set()
        self.held = []

    def teardown(self):
        shutil.rmtree(self.place)

    @rule(key=KEYS, value=st.integers(), digests=st.sets(st.sampled_from(sorted(BLOBS)), max_size=4))
    def store(self, key, value, digests):
        assert self.cache.store(key, {"value": value}, {d: BLOBS[d] for d in digests}, about={"value": value})
        self.model[key] = (value, digests)
        self.sure.add(key)

    @rule(key=KEYS)
    def lookup(self, key):
        entry = self.cache.lookup(key)
        assert entry is not None or key not in self.sure
        if entry is not None:
            self.check(key, entry, self.model[key])
            self.sure.add(key)
            self.held.append((key, entry, self.model[key]))

    @rule(key=KEYS)
    def peek(self, key):
        entry = self.cache.peek(key)
        assert entry is not None or key not in self.sure
        if entry is not None:
            try:
                self.check(key, entry, self.model[key])
            except CacheEntryError:
                assert key not in self.sure

    def check(self, key, entry, expected):
        value, digests = expected
        assert (entry.key, entry.document, entry.about) == (key, {"value": value}, {"value": value})
        assert entry.digests() == digests
        assert all(bytes(entry.blob(d)) == BLOBS[d] for d in digests)

    @rule(key=KEYS)
    def remove(self, key):
        self.cache.remove(key)
        self.model.pop(key, None)
        self.sure.discard(key)

    @rule(limit=st.sampled_from([0, 20_000, 1_100_000, 10**9]))
    def prune(self, limit):
        report = self.cache.prune(limit)
        assert report.kept == len(self.cache.entries())
        if limit < 10**9:
            self.sure.clear()
            assert report.kept == 0 or report.kept_bytes <= limit

    @rule()
    def clear(self):
        self.cache.clear()
        self.model.clear()
        self.sure.clear()

    @rule(number=st.integers(0, 50), place=st.integers(0, 2**21), how=st.sampled_from(["flip", "cut", "delete"]))
    def damage(self, number, place, how):
        # Only files that hold entries: those that are in use are mapped, and are not written to.
        files = sorted(path for folder in ("entries", "blobs") for path in (self.cache.directory / folder).rglob("*"))
        files = [path for path in files if path.is_file()]
        if not files:
            return
        path = files[number % len(files)]
        data = bytearray(path.read_bytes())
        path.unlink()
        if how == "flip":
            data[place % len(data)] ^= 1 << place % 8
            path.write_bytes(data)
        elif how == "cut":
            path.write_bytes(data[: place % len(data)])
        self.sure.clear()

    @rule()
    def verify(self):
        self.cache.verify()
        assert self.cache.verify().bad == []

    @rule()
    def restart(self):
        self.cache = Cache(self.cache.directory, size_limit="1GB")

    @invariant()
    def what_is_held_stays_right(self):
        for held in self.held[-3:]:
            self.check(*held)


def run(examples, steps):
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_state_machine_as_test(StoreMachine, settings=chosen)


def test_against_a_dictionary():
    """A few hundred steps; a hit is what was stored last, and what was not damaged or pruned is a hit."""
    run(examples=30, steps=30)


@pytest.mark.slow
def test_against_a_dictionary_for_long():
    """Many thousand steps."""
    run(examples=600, steps=50)
