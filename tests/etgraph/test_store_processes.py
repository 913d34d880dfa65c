"""Several processes on one cache: killed midway, on a full disk, building the same, sweeping meanwhile."""

import contextlib
import importlib.util
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from etgraph.store import Cache

WORKER = Path(__file__).with_name("store_worker.py")
_spec = importlib.util.spec_from_file_location("store_worker", WORKER)
worker = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(worker)

pytestmark = pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")


def start(*arguments):
    """A worker process of its own."""
    command = [sys.executable, "-W", "ignore", str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    """Wait until something is so; a test that never gets there fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def kill_writers(directory, rounds):
    """Kill writing and sweeping processes while others read; the readers' hits, misses and wrong entries."""
    chance = random.Random(rounds)
    stop = directory.with_name("stop")
    Cache(directory, size_limit="3MiB").prune()
    readers = [start("read", directory, stop) for _ in range(2)]
    for number in range(rounds):
        before = _stores(directory)
        writers = [start("write", directory, f"{number}-{i}") for i in range(2)]
        # Killed at a moment that hangs on nothing but chance, after it has begun to store.
        wait_for(lambda before=before: _stores(directory) != before)
        time.sleep(chance.random() * 0.15)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
    stop.touch()
    counts = [0, 0, 0]
    for reader in readers:
        out, err = reader.communicate(timeout=60)
        assert reader.returncode == 0, err
        hits, misses, wrong, _, *problems = out.splitlines()
        counts = [total + int(n) for total, n in zip(counts, (hits, misses, wrong), strict=True)]
        assert problems == []
    return counts


def _stores(directory):
    return [
        (path.name, path.stat().st_mtime_ns)
        for path in sorted((directory / "entries").rglob("*"))
        if path.exists() and path.is_file()
    ]


@pytest.mark.parametrize("rounds", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_kill_9_at_any_moment(tmp_path, rounds):
    """Writers die midway; readers see right entries or none; nothing is damaged, leftovers are swept."""
    directory = tmp_path / "cache"
    hits, misses, wrong = kill_writers(directory, rounds)
    print(f"{rounds} rounds, 2 writers killed in each: {hits} hits, {misses} misses, {wrong} wrong")
    assert wrong == 0
    assert hits > 0
    cache = Cache(directory)
    assert cache.verify().bad == []
    assert cache.problems == []
    found = [key for key in map("key{}".format, range(worker.KEYS)) if cache.lookup(key)]
    assert found
    assert all(worker.is_right(cache.lookup(key), key) for key in found)
    for path in (directory / "tmp").iterdir():
        os.utime(path, (0, 0))
    cache.prune(0)
    assert not any((directory / "tmp").iterdir())
    assert not any(path.is_file() for path in (directory / "blobs").rglob("*"))


def test_six_processes_build_one_key_once(tmp_path):
    """One builds, five wait and reuse."""
    log = tmp_path / "log"
    processes = [start("build", tmp_path / "cache", "key", log) for _ in range(6)]
    for process in processes:
        assert process.communicate(timeout=120)[1] == ""
        assert process.returncode == 0
    assert len(log.read_text().splitlines()) == 1


def test_the_lock_of_a_killed_builder_is_free(tmp_path):
    """The system releases it; the next builder does not wait for ever."""
    log, waited = tmp_path / "log", []
    holder = start("hold", tmp_path / "cache", "key", log)
    try:
        wait_for(log.exists)

        def kill():
            waited.append(1)
            holder.send_signal(signal.SIGKILL)

        with Cache(tmp_path / "cache").building("key", on_wait=kill):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert waited == [1]


def test_a_stuck_builder_is_not_waited_for_without_end(tmp_path, monkeypatch):
    """After the time that one waits at most, it is built here too, and told."""
    from etgraph.store import cache as module

    monkeypatch.setattr(module, "PATIENCE", 0.2)
    log = tmp_path / "log"
    holder = start("hold", tmp_path / "cache", "key", log)
    try:
        wait_for(log.exists)
        cache = Cache(tmp_path / "cache")
        with cache.building("key"):
            assert worker.put(cache, "key")
        assert "building it here too" in cache.problems[0]
    finally:
        holder.kill()
        holder.communicate()


def test_sweeping_meanwhile_costs_at_most_a_miss(tmp_path):
    """Every blob taken away just before an entry is published: the writer puts it back."""
    from etgraph.store.directory import StoreDirectory

    directory = tmp_path / "cache"
    cache, other = Cache(directory), Cache(directory)
    worker.put(other, "key0")
    swept = []
    real = StoreDirectory.write_temporary

    def swept_before(self, pieces, **options):
        written = real(self, pieces, **options)
        if self is cache._entries.directory and not swept and b"key1" in written.read_bytes():
            swept.append(other.prune(0))
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoreDirectory, "write_temporary", swept_before)
        worker.put(cache, "key1")
    assert swept[0].removed == 1
    assert not any(path.is_file() for path in (directory / "tmp").iterdir())
    assert worker.is_right(cache.lookup("key1"), "key1")
    assert cache.problems == []


def test_an_entry_swept_between_manifest_and_blobs_is_a_miss(tmp_path):
    """A reader that lost the race misses, and nothing is called damaged."""
    cache, other = Cache(tmp_path / "cache"), Cache(tmp_path / "cache")
    worker.put(cache, "key0")
    peeked = cache.peek("key0")
    other.clear()
    with pytest.raises(worker.CacheEntryError):
        peeked.blob(next(iter(peeked.manifest.blobs)))
    worker.put(other, "key0")
    assert worker.is_right(cache.lookup("key0"), "key0")
    assert cache.problems == []


# -- full disks --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 100, 4096, 39_999, 700_000, 1024**2])
def test_a_limit_on_file_size(tmp_path, limit):
    """RLIMIT_FSIZE, at each file of a store in turn: the store gives None, and is noted; old ones serve."""
    cache = Cache(tmp_path / "cache")
    worker.put(cache, "key0")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                document = {"padding": "x" * 5000}
                blob = worker.noise("new", 2 * 1024**2)
                stored = cache.store("new", document, {worker.digest_of(blob): blob}, about={"stage": "s"})
                good = worker.is_right(cache.lookup("key0"), "key0")
                named = any("could not be kept" in problem for problem in cache.problems)
            cache.remember("step", {"a": "b"})
            status = 0 if stored is None and good and named else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not any((tmp_path / "cache" / "tmp").iterdir())
    assert Cache(tmp_path / "cache").lookup("new") is None
    assert Cache(tmp_path / "cache").verify().bad == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", str(place)], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(small_disk):
    """Stores until nothing fits: the ones that were kept are right, the others are misses, and it is told."""
    cache = Cache(small_disk / "cache", size_limit="1GB")
    blobs = {key: worker.noise(key, 400_000) for key in map(str, range(12))}
    kept = []
    for key, blob in blobs.items():
        if cache.store(key, {"key": key}, {worker.digest_of(blob): blob}, about={"stage": "to_edge"}):
            kept.append(key)
    assert 3 <= len(kept) < 12
    assert any("No space left" in problem for problem in cache.problems)
    for key, blob in blobs.items():
        entry = Cache(small_disk / "cache").lookup(key)
        assert (entry is not None) == (key in kept)
        assert entry is None or bytes(entry.blob(worker.digest_of(blob))) == blob
    assert not any((small_disk / "cache" / "tmp").iterdir())
    cache.prune(0)
    assert cache.store("0", {}, {worker.digest_of(blobs["0"]): blobs["0"]}, about={})


def test_a_disk_without_a_byte(small_disk):
    """Where not even the directory's secret can be written, the build goes on without a cache."""
    with open(small_disk / "ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    cache = Cache(small_disk / "cache")
    assert worker.put(cache, "key0") is None
    assert cache.lookup("key0") is None
    assert any("No space left" in problem for problem in cache.problems)


def test_a_disk_mounted_read_only(small_disk):
    """Hits are served, stores are not kept, nothing raises."""
    assert worker.put(Cache(small_disk / "cache", size_limit="1GB"), "key0")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    cache = Cache(small_disk / "cache")
    assert worker.is_right(cache.lookup("key0"), "key0")
    with cache.building("key1"):
        assert worker.put(cache, "key1") is None
    cache.remember("step", {"a": "b"})
    cache.remove("key0")
    cache.prune(0)
    cache.clear()
    assert worker.is_right(cache.lookup("key0"), "key0")
    assert any("Read-only" in problem for problem in cache.problems)


def test_out_of_open_files(tmp_path):
    """With no descriptor left a lookup is a miss, the entry is not thrown away, and it serves again later."""
    cache = Cache(tmp_path / "cache")
    worker.put(cache, "key0")
    out, err = start("short", tmp_path / "cache").communicate(timeout=60)
    assert out == "right\n", err
    assert worker.is_right(cache.lookup("key0"), "key0")
