"""The store as the rest of etgraph sees it: what goes in comes out, within a limit, and is private."""

import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import joblib
import pytest

from etgraph.blobs import digest_of
from etgraph.errors import CacheEntryError, EtgraphWarning, UsageError
from etgraph.store import Cache, parse_size
from etgraph.store.directory import StoreDirectory

ROOT = Path(__file__).resolve().parents[2]
BIG, MIDDLE, TINY = os.urandom(2 * 1024**2), os.urandom(50_000), b"tiny"


def named(*blobs):
    return {digest_of(blob): blob for blob in blobs}


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", size_limit="1GB")


def files(cache, folder):
    return sorted(path for path in (cache.directory / folder).rglob("*") if path.is_file())


def test_what_is_stored_comes_back(cache):
    """Document, description and every blob, whatever its size, in this and in another Cache."""
    blobs = named(BIG, MIDDLE, TINY, b"")
    document = {"nodes": [1, 2.5, None, True, "ä\ud800"], "nan": float("inf")}
    assert cache.lookup("k") is None
    stored = cache.store("k", document, blobs, about={"stage": "to_edge", "seconds": 2.0})
    for entry in (stored, cache.lookup("k"), Cache(cache.directory).lookup("k"), cache.peek("k")):
        assert entry.key == "k"
        assert entry.document == document
        assert entry.about == {"stage": "to_edge", "seconds": 2.0}
        assert entry.digests() == set(blobs)
        assert all(bytes(entry.blob(digest)) == blob for digest, blob in blobs.items())
        assert entry.nbytes > len(BIG) + len(MIDDLE)
    assert cache.problems == []


def test_a_blob_may_come_in_pieces(cache):
    """The pieces of a serializer are written one after the other, whatever their element type."""
    array = memoryview(os.urandom(80_000)).cast("I", (100, 200))
    pieces = [MIDDLE, memoryview(BIG)[10:], array, bytearray(b"x"), b""]
    whole = b"".join(bytes(piece) for piece in pieces)
    cache.store("k", {}, {digest_of(pieces): pieces}, about={})
    assert digest_of(pieces) == digest_of(whole)
    assert bytes(cache.lookup("k").blob(digest_of(whole))) == whole


def test_a_shared_blob_is_on_disk_once(cache):
    """Three entries with one weight keep one file, until the last of the three goes."""
    for key in "abc":
        cache.store(key, {}, named(BIG, key.encode()), about={})
    assert [path.stat().st_size for path in files(cache, "blobs")] == [len(BIG)]
    for key in "ab":
        cache.remove(key)
        cache.prune()
    assert bytes(cache.lookup("c").blob(digest_of(BIG))) == BIG
    cache.remove("c")
    cache.prune(0)
    assert files(cache, "blobs") == []


def test_evicting_one_user_of_a_shared_blob_leaves_it_to_the_other(cache):
    """The entry of the least recent use goes alone, and what is counted as freed is its own."""
    cache.store("a", {}, named(BIG, os.urandom(100_000)), about={})
    cache.store("b", {}, named(BIG), about={})
    report = cache.prune(len(BIG) + 50_000)
    assert (report.removed, report.kept) == (1, 1)
    assert 100_000 <= report.freed_bytes < 200_000
    assert bytes(cache.lookup("b").blob(digest_of(BIG))) == BIG


def test_a_blob_that_was_swept_before_its_entry_was_there_is_written_again(cache, monkeypatch):
    """Another process sweeps at the worst moment: the blob is there, and no entry refers to it yet."""
    write, swept = StoreDirectory.write_temporary, []

    def sweeping(directory, *given, **more):
        made = write(directory, *given, **more)
        if not swept:
            swept.extend(files(cache, "blobs"))
            for path in swept:
                path.unlink()
        return made

    with monkeypatch.context() as patched:
        patched.setattr(StoreDirectory, "write_temporary", sweeping)
        cache.store("k", {}, named(BIG), about={})
    assert len(swept) == 1
    assert bytes(cache.lookup("k").blob(digest_of(BIG))) == BIG
    assert cache.problems == []


def test_what_was_set_aside_counts_as_room_that_is_taken(cache):
    cache.store("k", {}, named(BIG), about={})
    (path,) = files(cache, "blobs")
    path.write_bytes(bytes(len(BIG)))
    with pytest.warns(EtgraphWarning, match="damaged"):
        assert cache.lookup("k") is None
    assert files(cache, "blobs") == []
    assert cache.prune().kept_bytes >= len(BIG)


def test_ten_thousand_tiny_blobs_are_one_file(cache):
    """Small blobs lie in the file of their entry."""
    blobs = named(*(str(i).encode() for i in range(10_000)))
    cache.store("k", {}, blobs, about={})
    assert len(files(cache, "entries")) == 1
    assert files(cache, "blobs") == []
    entry = cache.lookup("k")
    assert all(bytes(entry.blob(digest)) == blob for digest, blob in blobs.items())


@pytest.mark.parametrize("blob", [BIG, MIDDLE, TINY], ids=["mapped", "read", "packed"])
def test_writing_to_a_blob_changes_no_file(cache, blob):
    """Memory is private to one lookup: a tensor over it may be written to."""
    digest = digest_of(blob)
    cache.store("k", {}, {digest: blob}, about={})
    first = cache.lookup("k").blob(digest)
    first[0] ^= 255
    assert bytes(cache.lookup("k").blob(digest)) == blob
    assert bytes(Cache(cache.directory).lookup("k").blob(digest)) == blob


def test_packed_blobs_are_aligned(cache):
    """A tensor of any dtype can lie on them: offsets are multiples of 64."""
    blobs = named(*(bytes([i]) * (i + 1) for i in range(20)))
    cache.store("k", {}, blobs, about={})
    entry = cache.lookup("k")
    views = [entry.blob(digest) for digest in blobs]
    base = min(_address(view) for view in views)
    assert {(_address(view) - base) % 64 for view in views} == {0}


def _address(view):
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def test_an_entry_in_use_survives_its_eviction(cache):
    """Who looked an entry up keeps it, though it is removed meanwhile."""
    blobs = named(BIG, MIDDLE, TINY)
    cache.store("k", {"a": 1}, blobs, about={})
    entry = cache.lookup("k")
    cache.clear()
    assert cache.lookup("k") is None
    assert entry.document == {"a": 1}
    assert all(bytes(entry.blob(digest)) == blob for digest, blob in blobs.items())


def test_a_peeked_entry_says_when_it_is_gone(cache):
    """What was not read before the eviction is refused by name, and a lookup is a miss."""
    cache.store("k", {}, named(BIG, TINY), about={})
    entry = cache.peek("k")
    cache.clear()
    with pytest.raises(CacheEntryError, match="can no longer be read"):
        entry.blob(digest_of(BIG))
    with pytest.raises(CacheEntryError, match="can no longer be read"):
        _ = entry.document
    assert cache.problems == []


def test_a_new_store_replaces_the_old(cache):
    """A refreshed key gives the new content; a blob of another entry stays."""
    cache.store("k", {"v": 1}, named(BIG), about={})
    cache.store("other", {}, named(BIG), about={})
    cache.store("k", {"v": 2}, named(MIDDLE), about={})
    cache.prune()
    assert cache.lookup("k").document == {"v": 2}
    assert cache.lookup("k").digests() == {digest_of(MIDDLE)}
    assert cache.lookup("other") is not None
    with pytest.raises(KeyError, match="no blob"):
        cache.lookup("k").blob(digest_of(BIG))


def test_it_goes_through_joblib(cache, monkeypatch):
    """`joblib.Memory` over the registered backend keeps, finds and clears the entries."""
    from etgraph.store.backend import EtgraphStoreBackend, contents

    kept = []
    dump = EtgraphStoreBackend.dump_item
    monkeypatch.setattr(EtgraphStoreBackend, "dump_item", lambda self, *a, **o: (kept.append(a), dump(self, *a, **o)))
    entry = cache.store("k", {"a": 1}, {}, about={"stage": "s"})
    assert [item.key for _, item in kept] == ["k"]
    memory = joblib.Memory(cache.directory, backend="etgraph", verbose=0)
    memorized = memory.cache(contents, ignore=["build"])
    assert not memorized.check_call_in_cache("k", None)
    with memory.store_backend.addressing(entry.name):
        assert memorized.check_call_in_cache("k", None)
        assert memory.store_backend.load_item(("contents", "")).document == {"a": 1}
    memory.clear(warn=False)
    assert cache.lookup("k") is None
    assert not list(cache.directory.rglob("*.pkl"))


def test_what_is_only_read_does_not_import_joblib(cache):
    """joblib brings numpy: together they take as long as a run that reuses everything."""
    cache.store("k", {}, {}, about={})
    code = """
import sys
from etgraph.store import Cache
cache = Cache(sys.argv[1])
assert cache.lookup("k").key == cache.peek("k").key == cache.entries()[0].key == "k" and cache.size_limit
print({"joblib", "numpy"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code, cache.directory], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_joblib_does_not_empty_the_cache(cache, tmp_path, monkeypatch):
    """Not when it takes the text of its function for changed, and not when another cache is cleared."""
    cache.store("k", {}, {}, about={})
    Cache(tmp_path / "other").clear()
    assert cache.lookup("k") is not None
    monkeypatch.setattr(joblib.memory, "get_func_code", lambda function: ("other text", None, -1))
    joblib.memory._FUNCTION_HASHES.clear()
    other = Cache(cache.directory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.lookup("k")
    assert other.lookup("k") is not None
    assert cache.lookup("k") is not None


def test_the_first_lookup_of_a_process_hits(cache):
    """joblib's habit of missing once in each process is not ours."""
    cache.store("k", {}, {}, about={})
    code = "import sys; from etgraph.store import Cache; print(Cache(sys.argv[1]).lookup('k') is not None)"
    done = subprocess.run(
        [sys.executable, "-c", code, cache.directory], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_least_recently_used_goes_first(cache):
    """A lookup and a peek count as use; a listing does not."""
    for key in "abcd":
        cache.store(key, {}, named(os.urandom(100_000)), about={})
    cache.lookup("b")
    cache.peek("a")
    cache.entries()
    cache.verify()
    report = cache.prune(250_000)
    assert (report.removed, report.kept) == (2, 2)
    assert report.freed_bytes > 200_000
    assert [entry.key for entry in cache.entries()] == ["a", "b"]


def test_a_clock_set_back_does_not_turn_the_order(cache, monkeypatch):
    """What is used after the clock went back counts as used later."""
    import time

    for key in "ab":
        cache.store(key, {}, named(os.urandom(100_000)), about={})
    before = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: before - 10**9 * 86400 * 365)
    cache.store("c", {}, named(os.urandom(100_000)), about={})
    assert cache.lookup("a") is not None
    cache.prune(250_000)
    assert [entry.key for entry in cache.entries()] == ["a", "c"]
    assert all(entry.last_used <= time.time() for entry in cache.entries())


def test_the_limit_enforces_itself(tmp_path):
    """After many stores the directory is not larger than the limit, and the newest entry is there."""
    cache = Cache(tmp_path / "cache", size_limit="1MB")
    for number in range(40):
        assert cache.store(f"k{number}", {}, named(os.urandom(100_000)), about={}) is not None
        assert sum(path.stat().st_size for path in cache.directory.rglob("*") if path.is_file()) <= 1_000_000
        assert cache.lookup(f"k{number}") is not None
    assert 5 <= len(cache.entries()) <= 10
    assert cache.problems == []


def test_stores_do_not_walk_the_tree(cache, monkeypatch):
    """The running total is kept in a note; the files are counted once in many stores."""
    from etgraph.store import sweep

    walks = []
    real = sweep.sweep
    monkeypatch.setattr(sweep, "sweep", lambda *args: walks.append(1) or real(*args))
    for number in range(60):
        cache.store(f"k{number}", {}, {}, about={})
    assert len(walks) == 1


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path):
    """It would push out everything else and itself; the user is told."""
    cache = Cache(tmp_path / "cache", size_limit="1MB")
    cache.store("small", {}, {}, about={})
    with pytest.warns(EtgraphWarning, match="limit of the cache is 1000000"):
        assert cache.store("k", {}, named(BIG), about={"stage": "to_edge"}) is None
    assert cache.lookup("small") is not None
    assert files(cache, "blobs") == []


def test_leftovers_are_swept(cache):
    """Old temporary files, idle locks and blobs that nobody refers to go; young ones stay."""
    cache.store("k", {}, named(BIG), about={})
    with cache.building("k"):
        pass
    young, old = cache.directory / "tmp" / "young", cache.directory / "tmp" / "old"
    orphans = [cache.directory / "blobs" / "ab" / (letter * 62) for letter in "01"]
    orphans[0].parent.mkdir()
    for path in (young, old, *orphans):
        path.write_bytes(b"x")
    long_ago = old.stat().st_mtime - 7 * 86400
    for path in (old, orphans[1], *files(cache, "locks")):
        os.utime(path, (long_ago, long_ago))
    cache.prune()
    assert files(cache, "tmp") == [young]
    assert [path.name for path in files(cache, "locks")] == ["store"]
    assert orphans[0].exists()
    assert not orphans[1].exists()
    cache.prune(0)
    assert files(cache, "blobs") == []


def test_everything_is_private(tmp_path):
    """A new directory is 0700, files are 0600 whatever the umask."""
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "cache")
        cache.store("k", {}, named(BIG, TINY), about={})
        cache.remember("s", {"a": "b"})
    finally:
        os.umask(before)
    for path in [cache.directory, *cache.directory.rglob("*")]:
        if path.name != "store":  # filelock sets the mode of a lock
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_not_used(tmp_path, mode):
    """The build goes on without a cache, and the message says what to do."""
    directory = tmp_path / "cache"
    directory.mkdir()
    directory.chmod(mode)
    cache = Cache(directory)
    with pytest.warns(EtgraphWarning, match="chmod 700"):
        assert cache.lookup("k") is None
    assert cache.store("k", {}, {}, about={}) is None
    with cache.building("k"):
        pass
    cache.remember("s", {"a": "b"})
    cache.remember_cost("s", 1.0)
    cache.remove("k")
    cache.clear()
    cache.prune()
    assert cache.peek("k") is cache.last_parts("s") is cache.cost("s") is None
    assert cache.entries() == []
    assert cache.verify().bad == cache.problems
    assert len(cache.problems) == 1
    assert list(directory.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_someone_else_is_not_used(tmp_path):
    """Another user could have planted what is in it."""
    (tmp_path / "cache").mkdir(mode=0o700)
    os.chown(tmp_path / "cache", 12345, 12345)
    with pytest.warns(EtgraphWarning, match="belongs to user 12345"):
        assert Cache(tmp_path / "cache").lookup("k") is None


def test_a_readable_directory_of_ours_is_made_private(tmp_path):
    """An empty folder made under the usual umask becomes 0700; one with other files is left alone."""
    for name, inside in (("empty", False), ("used", True)):
        (tmp_path / name).mkdir(mode=0o755)
        if inside:
            (tmp_path / name / "thesis.txt").write_text("mine")
        cache = Cache(tmp_path / name)
        cache.store("k", {}, {}, about={})
        assert cache.lookup("k") is not None
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == (0o755 if inside else 0o700)
        assert stat.S_IMODE((tmp_path / name / "entries").stat().st_mode) == 0o700
    cache.clear()
    assert (tmp_path / "used" / "thesis.txt").exists()


def test_a_file_where_the_directory_should_be(tmp_path):
    """It is told, and nothing is cached."""
    (tmp_path / "cache").write_text("x")
    with pytest.warns(EtgraphWarning, match="File exists"):
        assert Cache(tmp_path / "cache").lookup("k") is None
    assert (tmp_path / "cache").read_text() == "x"


def test_warnings_as_errors_do_not_fail_a_build(tmp_path):
    """Under `-W error` a cache that cannot be used is still only a line in `problems`."""
    (tmp_path / "cache").write_text("x")
    cache = Cache(tmp_path / "cache")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.store("k", {}, {}, about={}) is None
    assert len(cache.problems) == 1


def test_where_and_how_large(tmp_path, monkeypatch):
    """An argument wins over the environment, which wins over the default."""
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path / "env"))
    monkeypatch.setenv("ETGRAPH_CACHE_SIZE", "500MiB")
    assert Cache().directory == tmp_path / "env"
    assert Cache().size_limit == 500 * 1024**2
    assert Cache(tmp_path / "arg", size_limit="10GB").directory == tmp_path / "arg"
    assert Cache(size_limit="10GB").size_limit == 10 * 10**9
    assert Cache(size_limit=0).size_limit == 0
    assert not (tmp_path / "env").exists()
    monkeypatch.delenv("ETGRAPH_CACHE_SIZE")
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", "")
    assert 0 < Cache(tmp_path / "arg").size_limit <= 20 * 1024**3
    assert Cache().directory.name == "etgraph"


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), (" 7 ", 7), ("1.5 KiB", 1536), ("2k", 2000), ("1TB", 10**12), ("3b", 3)]
)
def test_sizes(text, size):
    """Units of 1000 and of 1024, in any case."""
    assert parse_size(text, "x") == size


@pytest.mark.parametrize("bad", ["", "ten", "-1", "10XB", "1e9", "10GB extra", "٣"])
def test_a_bad_size_names_its_origin(monkeypatch, bad):
    """The variable, or the argument."""
    with pytest.raises(UsageError, match=r"size_limit is .* and a size in bytes was wanted"):
        Cache("x", size_limit=bad)
    if bad:
        monkeypatch.setenv("ETGRAPH_CACHE_SIZE", bad)
        with pytest.raises(UsageError, match="ETGRAPH_CACHE_SIZE"):
            Cache("x")


@pytest.mark.parametrize("bad", [-1, True, 1.5, [1]])
def test_a_size_of_a_wrong_type_is_refused(bad):
    """No silent rounding."""
    with pytest.raises(UsageError, match="size in bytes was wanted"):
        Cache("x", size_limit=bad)


@pytest.mark.parametrize("bad", [7, b"bytes", "", "a\0b"])
def test_a_bad_directory_is_refused(bad):
    """A path is wanted."""
    with pytest.raises(UsageError, match="Cache"):
        Cache(bad)


@pytest.mark.parametrize(
    "arguments",
    [
        ("", {}, {}),
        (7, {}, {}),
        ("k", {"a": b"bytes"}, {}),
        ("k", {}, {"../../x": b""}),
        ("k", {}, {"ab": b""}),
        ("k", {}, {"0" * 64: 7}),
        ("k", {}, {"0" * 64: [b"x", 7]}),
        ("k", {}, {"0" * 64: memoryview(b"abcd")[::2]}),
    ],
)
def test_a_wrong_call_is_refused(cache, arguments):
    """That is a fault of the caller, not of the disk."""
    with pytest.raises(UsageError):
        cache.store(*arguments, about={})
    assert files(cache, "entries") == []


def test_a_wrong_digest_is_never_served(cache):
    """`store` trusts its caller; `lookup` does not."""
    cache.store("k", {}, {"0" * 64: MIDDLE}, about={})
    with pytest.warns(EtgraphWarning, match="another digest"):
        assert cache.lookup("k") is None


def test_an_exception_of_the_document_stores_nothing_and_locks_nothing(cache):
    """The cache is usable afterwards."""
    with pytest.raises(UsageError), cache.building("k"):
        cache.store("k", {"a": object()}, named(BIG), about={})
    cache.store("k", {"a": 1}, named(BIG), about={})
    assert cache.lookup("k").document == {"a": 1}


def test_notes_come_back_and_are_bounded(cache, monkeypatch):
    """The parts of a step's last run keep their order; the oldest notes go."""
    from etgraph.store import records

    parts = {"stage": "to_edge", "option b": "False", "option a": "True"}
    assert cache.last_parts("model.py:net/to_edge") is None
    cache.remember("model.py:net/to_edge", parts)
    assert list(Cache(cache.directory).last_parts("model.py:net/to_edge").items()) == list(parts.items())
    cache.remember_cost("to_edge", 4.25)
    assert cache.cost("to_edge") == 4.25
    assert cache.cost("other") is None
    monkeypatch.setattr(records, "KEPT", 20)
    for number in range(50):
        cache.remember(f"step{number}", {"n": str(number)})
    assert len(files(cache, "records/runs")) <= 20
    assert cache.last_parts("step49") == {"n": "49"}
    assert cache.last_parts("step0") is None


def test_verify_finds_what_is_bad(cache):
    """A good cache has nothing to report; then each damaged part is named, and is gone the next time."""
    for key in "abc":
        cache.store(key, {}, named(key.encode() * 100_000, key.encode()), about={})
    report = cache.verify()
    assert (report.entries, report.blobs, report.bad) == (3, 3, [])
    blob = cache.directory / "blobs" / digest_of(b"a" * 100_000)[:2] / digest_of(b"a" * 100_000)[2:]
    blob.write_bytes(b"b" * 100_000)
    with open(cache.peek("b").path, "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"???")
    with pytest.warns(EtgraphWarning):
        report = cache.verify()
    assert report.entries == 1
    assert len(report.bad) == 3  # the blob, the entry that needs it, the other entry
    assert cache.verify().bad == []
    assert cache.lookup("c") is not None


def test_quarantine_is_bounded(cache, monkeypatch):
    """A disk that keeps failing does not fill itself with evidence."""
    for number in range(50):
        cache.store("k", {"n": number}, {}, about={})
        cache.peek("k").path.write_bytes(b"x" * 1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert cache.lookup("k") is None
    assert 1 <= len(files(cache, "quarantine")) <= 32


def test_threads_share_a_cache(cache):
    """Stores and lookups of one Cache from several threads do not mix."""
    wrong = []

    def work(number):
        for turn in range(20):
            key = f"{number}-{turn}"
            cache.store(key, {"key": key}, named(key.encode(), key.encode() * 9000), about={})
            entry = cache.lookup(key)
            if entry is None or entry.document != {"key": key}:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.problems == []
    assert len(cache.entries()) == 80


def test_building_excludes_other_threads_and_may_nest(cache):
    """A second builder waits and is told that it does; the same builder may ask twice."""
    order, waited = [], []
    inside, leave = threading.Event(), threading.Event()

    def first():
        with cache.building("k"), cache.building("k"), cache.building("other"):
            inside.set()
            leave.wait(30)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(30)

    def told():
        waited.append(1)
        leave.set()

    with cache.building("k", on_wait=told):
        order.append("second")
    thread.join()
    assert (order, waited) == (["first", "second"], [1])


def test_a_cache_travels_to_another_process(cache):
    """It is pickled by where it is and how large it may be."""
    cache.store("k", {"a": 1}, {}, about={})
    other = pickle.loads(pickle.dumps(cache))
    assert (other.directory, other.size_limit) == (cache.directory, 10**9)
    assert other.lookup("k").document == {"a": 1}


def test_importing_and_using_the_store_needs_no_torch(tmp_path):
    """A warm run reads its file without torch."""
    code = """
import json, sys
from etgraph.store import Cache
cache = Cache(sys.argv[1])
cache.store("k", {}, {}, about={})
assert cache.lookup("k")
print(json.dumps([name for name in ("torch", "executorch") if name in sys.modules]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "c")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []
    assert done.stderr == ""
