"""Whatever happens to a file of the cache: a lookup gives the right content or nothing, and none raises."""

import importlib.util
import os
import random
import shutil
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import pytest

from etgraph.blobs import digest_of
from etgraph.store import Cache

_spec = importlib.util.spec_from_file_location("store_worker", Path(__file__).with_name("store_worker.py"))
worker = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(worker)

KEYS = ["key0", "key1", "key2"]
PARTS = {"stage": "to_edge", "option a": "1"}

pytestmark = pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")
FILES = ["entry", "read blob", "mapped blob", "secret", "clock", "usage", "record", "cost"]
FILES += ["lock", "store lock"]


def filled(directory):
    """A cache with three entries that share a blob, notes and locks."""
    cache = Cache(directory, size_limit="1GB")
    for key in KEYS:
        assert worker.put(cache, key)
        with cache.building(key):
            pass
    cache.remember("step", PARTS)
    cache.remember("other step", {"a": "b"})
    cache.remember_cost("stage", 2.5)
    cache.remember_cost("other stage", 1.0)
    (directory / "quarantine").mkdir()
    (directory / "quarantine" / "old-1").write_text("x")
    return cache


def blob_file(cache, blob):
    digest = digest_of(blob)
    return cache.directory / "blobs" / digest[:2] / digest[2:]


def medium(key):
    return worker.noise(key + "medium", 40_000 + len(key))


def files_of(cache):
    """One file of each kind, with another of its kind to swap it with; and the keys that need it."""
    runs, costs = (sorted((cache.directory / "records" / sort).iterdir()) for sort in ("runs", "costs"))
    entry = [cache.peek(key).path for key in KEYS]
    locks = sorted(path for path in (cache.directory / "locks").iterdir() if path.name != "store")
    secret, clock, usage = (cache.directory / name for name in ("secret", "clock", "usage"))
    return {
        "entry": (entry[0], entry[1], KEYS[:1]),
        "read blob": (blob_file(cache, medium("key0")), blob_file(cache, medium("key1")), KEYS[:1]),
        "mapped blob": (blob_file(cache, worker.SHARED), blob_file(cache, medium("key0")), KEYS),
        "secret": (secret, entry[0], KEYS),
        "clock": (clock, usage, []),
        "usage": (usage, runs[0], []),
        "record": (runs[0], runs[1], []),
        "cost": (costs[0], costs[1], []),
        "lock": (locks[0], entry[0], []),
        "store lock": (cache.directory / "locks" / "store", entry[0], []),
    }


def flip(position):
    def damage(path, other):
        data = bytearray(path.read_bytes() or b"\0")
        data[position % len(data)] ^= 1 << (position % 8)
        path.write_bytes(data)

    return damage


def cut(where):
    return lambda path, other: os.truncate(path, where(path.stat().st_size))


def append(extra):
    return lambda path, other: path.write_bytes(path.read_bytes() + extra)


def swap(path, other):
    here, there = path.read_bytes(), other.read_bytes()
    path.write_bytes(there)
    other.write_bytes(here)


def copy_over(path, other):
    path.write_bytes(other.read_bytes())


def instead(make):
    def damage(path, other):
        path.unlink()
        make(path, other)

    return damage


def folder(path, other):
    path.mkdir()
    (path / "inside").write_text("x")


DAMAGES = {
    **{f"flip {position}": flip(position) for position in (0, 1, 17, 40, 49, 57, 200, -1, -100)},
    "cut to 0": cut(lambda n: 0),
    "cut to 1": cut(lambda n: min(n, 1)),
    "cut to half": cut(lambda n: n // 2),
    "cut to n-1": cut(lambda n: max(n - 1, 0)),
    "one byte more": append(b"\0"),
    "a block more": append(b"x" * 4096),
    "zeros": lambda path, other: path.write_bytes(bytes(path.stat().st_size)),
    "swapped": swap,
    "copied over": copy_over,
    "deleted": lambda path, other: path.unlink(),
    "folder": instead(folder),
    "link": instead(lambda path, other: path.symlink_to(other)),
    "dangling link": instead(lambda path, other: path.symlink_to("nowhere")),
    "link to itself": instead(lambda path, other: path.symlink_to(path.name)),
    "pipe": instead(lambda path, other: os.mkfifo(path)),
}


def survives(cache, counts, *, heals=True):
    """Use all of the cache; nothing raises, nothing wrong comes back, and a store makes it whole again."""
    for key in KEYS:
        for entry in (cache.peek(key), cache.lookup(key)):
            if entry is None:
                counts["miss"] += 1
                continue
            try:
                counts["right" if worker.is_right(entry, key) else "WRONG"] += 1
            except worker.CacheEntryError:
                counts["refused late"] += 1
    assert cache.last_parts("step") in (None, PARTS)
    assert cache.cost("stage") in (None, 2.5)
    missed = [key for key in KEYS if cache.lookup(key) is None]
    for key in missed:
        with cache.building(key):
            worker.put(cache, key)
    cache.remember("step", PARTS)
    cache.remember_cost("stage", 2.5)
    if heals:
        for again in (cache, Cache(cache.directory)):
            for key in KEYS:
                assert worker.is_right(again.lookup(key), key)
            assert again.last_parts("step") == PARTS
            assert again.cost("stage") == 2.5
    cache.entries()
    cache.verify()
    cache.prune(10**9)
    assert cache.verify().bad == []
    assert counts["WRONG"] == 0
    return missed


@pytest.mark.parametrize("running", [False, True], ids=["new process", "running process"])
@pytest.mark.parametrize(
    "kind",
    FILES,
)
def test_a_damaged_file(tmp_path, kind, running, record_property):
    """Each kind of file x each damage: right or a miss; the next store heals; a bad entry is noted."""
    filled(tmp_path / "golden")
    counts = Counter()
    for number, (name, damage) in enumerate(DAMAGES.items()):
        place = tmp_path / str(number)
        shutil.copytree(tmp_path / "golden", place)
        cache = Cache(place)
        target, other, needed_by = files_of(cache)[kind]
        damage(target, other)
        cache = cache if running else Cache(place)
        missed = survives(cache, counts)
        if kind in ("entry", "read blob", "mapped blob"):
            assert set(missed) >= set(needed_by), name
            assert cache.problems or (kind, name) == ("entry", "deleted"), name
        counts["cases"] += 1
        shutil.rmtree(place)
    record_property("counts", dict(counts))
    print(kind, dict(counts))


def test_a_bit_flipped_anywhere_in_an_entry(tmp_path):
    """Every byte of the file of an entry, in turn: always noticed."""
    cache = filled(tmp_path / "cache")
    path = cache.peek("key0").path
    good = path.read_bytes()
    noticed = 0
    for position in range(len(good)):
        path.unlink(missing_ok=True)
        path.write_bytes(good[:position] + bytes([good[position] ^ 1 << position % 8]) + good[position + 1 :])
        noticed += cache.lookup("key0") is None
    assert noticed == len(good)
    path.write_bytes(good)
    assert worker.is_right(cache.lookup("key0"), "key0")


def test_bits_flipped_anywhere_in_a_large_blob(tmp_path):
    """A sample of 64 places in a mapped blob: always noticed at lookup, and at first use after a peek."""
    cache = filled(tmp_path / "cache")
    path, places = blob_file(cache, worker.SHARED), random.Random(0)
    good = path.read_bytes()
    digest = digest_of(worker.SHARED)
    for turn in range(64):
        data = bytearray(good)
        data[places.randrange(len(data))] ^= 1 << places.randrange(8)
        path.write_bytes(data)
        if turn % 2:
            assert cache.lookup("key0") is None
        else:
            entry = cache.peek("key0")
            with pytest.raises(worker.CacheEntryError):
                entry.blob(digest)
        assert not path.exists()


FOLDERS = [
    "entries",
    "entries/*",
    "blobs",
    "blobs/*",
    "tmp",
    "locks",
    "records",
    "records/runs",
    "quarantine",
]


@pytest.mark.parametrize("running", [False, True], ids=["new process", "running process"])
def test_a_damaged_folder(tmp_path, running):
    """Each folder deleted, emptied, a file, a link to nowhere: right or a miss, and the next store heals."""
    filled(tmp_path / "golden")
    counts, number = Counter(), 0
    for pattern in FOLDERS:
        for make in (None, Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")):
            place = tmp_path / str(number)
            shutil.copytree(tmp_path / "golden", place)
            cache = Cache(place)
            assert cache.peek("key0")
            for target in list(place.glob(pattern)):
                shutil.rmtree(target)
                if make:
                    make(target)
            survives(cache if running else Cache(place), counts)
            number += 1
    assert number == 36
    print(dict(counts))


def test_the_whole_directory_deleted_while_in_use(tmp_path):
    """Someone runs `rm -r` during a run: misses, and the next store makes it anew."""
    cache = filled(tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    assert cache.lookup("key0") is None
    worker.put(cache, "key0")
    assert worker.is_right(cache.lookup("key0"), "key0")


def test_an_entry_planted_by_someone_else_is_refused(tmp_path):
    """A whole, well-formed entry made under another secret is not authentic."""
    ours, theirs = filled(tmp_path / "ours"), Cache(tmp_path / "theirs")
    theirs.store("key0", {"planted": True}, {}, about={})
    shutil.copy(theirs.peek("key0").path, ours.peek("key0").path)
    assert ours.lookup("key0") is None
    assert "not authentic" in ours.problems[0]


def test_damage_is_found_before_anything_is_parsed(tmp_path, monkeypatch):
    """No JSON of a file that is not authentic reaches the parser."""
    from etgraph.store import entry_file, records

    cache = filled(tmp_path / "cache")
    for path in [cache.peek("key0").path, *(cache.directory / "records" / "runs").iterdir()]:
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    body_flipped = cache.peek("key0")
    parsed = []
    monkeypatch.setattr(entry_file.json, "loads", lambda *args: parsed.append(args))
    monkeypatch.setattr(records.json, "loads", lambda *args: parsed.append(args))
    with pytest.raises(worker.CacheEntryError):
        _ = body_flipped.document
    assert cache.last_parts("step") is None
    assert parsed == []


# -- as a user who is not root ----------------------------------------------------------------------


def as_user(function):
    """Run `function(directory)` in a forked child without root's rights; its traceback fails this test."""
    place = Path(tempfile.mkdtemp(prefix="etgraph-store-"))
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(place / "cache")
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        failure = file.read()
    os.waitpid(child, 0)
    for folder, _, _ in os.walk(place):
        os.chmod(folder, 0o700)
    shutil.rmtree(place)
    assert not failure, failure


def test_unreadable_files():
    """Each kind of file with mode 000: right or a miss, healed by the next store."""

    def check(directory):
        counts = Counter()
        for kind in FILES:
            shutil.rmtree(directory, ignore_errors=True)
            filled(directory)
            target, _, needed_by = files_of(Cache(directory))[kind]
            target.chmod(0)
            cache = Cache(directory)
            missed = survives(cache, counts)
            if kind in ("entry", "read blob", "mapped blob", "secret"):
                assert set(missed) >= set(needed_by), kind
                assert cache.problems, kind

    as_user(check)


def test_unreadable_folders():
    """A folder that cannot be entered: misses and lines in `problems`, no exception."""

    def check(directory):
        counts = Counter()
        for pattern in FOLDERS:
            filled(directory)
            targets = list(directory.glob(pattern))
            for target in targets:
                target.chmod(0)
            survives(Cache(directory), counts, heals=False)
            for folder in directory.glob("**/"):
                folder.chmod(0o700)
            for folder, names, _ in os.walk(directory):
                for name in names:
                    os.chmod(os.path.join(folder, name), 0o700)
            shutil.rmtree(directory)

    as_user(check)


def test_a_read_only_cache_still_serves():
    """Hits are hits, a store gives None, one line says why, and everything else stays calm."""

    def check(directory):
        filled(directory)
        for folder, _, _ in os.walk(directory, topdown=False):
            os.chmod(folder, 0o500)
        cache = Cache(directory)
        for key in KEYS:
            assert worker.is_right(cache.lookup(key), key)
        assert worker.put(cache, "new key") is None
        assert any("could not be kept" in problem for problem in cache.problems), cache.problems
        with cache.building("new key"):
            pass
        assert cache.last_parts("step") == PARTS
        cache.remember("step", {"x": "y"})
        cache.remove("key0")
        cache.clear()
        cache.prune(0)
        cache.verify()
        assert worker.is_right(cache.lookup("key1"), "key1")

    as_user(check)


def test_a_place_where_no_directory_can_be_made():
    """The build goes on without a cache."""

    def check(directory):
        directory.mkdir(mode=0o500)
        cache = Cache(directory / "below")
        assert worker.put(cache, "key0") is None
        assert cache.lookup("key0") is None
        assert "building without a cache" in cache.problems[0]

    as_user(check)


def test_locks_that_cannot_be_made():
    """As on a network disk without locks: it is told, and stores still work."""

    def check(directory):
        cache = filled(directory)
        shutil.rmtree(directory / "locks")
        (directory / "locks").mkdir(mode=0o500)
        with cache.building("new"):
            assert worker.put(cache, "new")
        assert worker.is_right(cache.lookup("new"), "new")
        assert "two processes may build the same" in cache.problems[0]

    as_user(check)


def test_a_child_of_fork_can_use_the_cache(tmp_path):
    """The hash's threads do not exist in a forked child; it must not wait for them."""
    blob = os.urandom(20 * 1024**2)
    cache = Cache(tmp_path / "cache")
    cache.store("k", {}, {digest_of(blob): blob}, about={})
    assert cache.lookup("k")
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(60)
        good = cache.lookup("k") is not None and cache.store("j", {}, {digest_of(blob): blob}, about={})
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.lookup("j") is not None


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_opened(tmp_path, make):
    """A folder, a pipe and a link are named as what is wrong, without waiting."""
    from etgraph.store.files import Damaged, open_regular

    make(tmp_path / "x")
    with pytest.raises(Damaged, match="not a regular file"):
        open_regular(tmp_path / "x")


def test_a_secret_of_another_length_is_not_one(tmp_path):
    """It is set aside and said, and the cache starts again."""
    cache = filled(tmp_path / "cache")
    append(b"x")(cache.directory / "secret", None)
    again = Cache(tmp_path / "cache")
    assert again.lookup("key0") is None
    assert "33 bytes instead of 32" in again.problems[0]
    assert worker.put(again, "key0")
    assert worker.is_right(Cache(tmp_path / "cache").lookup("key0"), "key0")
