"""Promises of the file container: exact, checked at every byte, whole or absent."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etgraph import container
from etgraph.blobs import MemoryBlobs, digest_of, digest_of_file, map_file
from etgraph.errors import ArtifactFileError

DOCUMENT = {"kind": "edge", "list": [1, 2.5, None, "ü"], "nested": {"a": True}}
BLOBS = [b"", b"a", bytes(range(256)) * 5, b"x" * 70_000, os.urandom(200_001)]


def write(path, blobs=BLOBS, document=DOCUMENT):
    container.write(path, document, {digest_of(blob): blob for blob in blobs})
    return path


def damaged(path, data):
    """Read `data` as a container and give the error; fail when it is taken."""
    other = path.with_suffix(".bad")
    other.write_bytes(data)
    with pytest.raises(ArtifactFileError) as error:
        container.read(other)
    return str(error.value)


def test_document_and_blobs_come_back_as_they_were(tmp_path):
    """Reading gives what was written."""
    opened = container.read(write(tmp_path / "m.edge.etg"))
    assert opened.document == DOCUMENT
    assert [bytes(opened.view(digest_of(b))) for b in BLOBS] == BLOBS
    assert [opened.copy(digest_of(b)) for b in BLOBS] == BLOBS
    assert [bytes(opened.private(digest_of(b))) for b in BLOBS] == BLOBS
    assert list(opened) == [digest_of(b) for b in BLOBS]


def test_kind_and_version_are_read_from_the_first_bytes_without_torch(tmp_path):
    """The header alone tells the kind, and torch is not imported for it."""
    path = write(tmp_path / "m.edge.etg")
    code = f"""
        import sys
        from etgraph import container
        header = container.peek({str(path)!r})
        assert (header.kind, header.format_version) == ("edge", 1)
        assert header.size == {path.stat().st_size}
        assert not {{"torch", "executorch"}} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_each_blob_is_written_once_and_aligned(tmp_path):
    """Small blobs lie at multiples of 64, large ones at multiples of a page."""
    path = write(tmp_path / "m.edge.etg")
    data = path.read_bytes()
    for blob in BLOBS[1:]:
        at = data.index(blob) if len(blob) > 1 else None
        if at is not None:
            assert at % (4096 if len(blob) >= 65536 else 64) == 0
            assert data.count(blob) == 1


def test_blobs_may_come_in_pieces_of_any_buffer_type(tmp_path):
    """A blob in pieces is the same blob as in one."""
    pieces = [b"ab", bytearray(b"cd"), memoryview(b"ef"), memoryview(bytearray(8)).cast("I")]
    digest = digest_of(pieces)
    assert digest == digest_of(b"abcdef" + bytes(8))
    container.write(tmp_path / "p.edge.etg", DOCUMENT, {digest: pieces})
    assert container.read(tmp_path / "p.edge.etg").copy(digest) == b"abcdef" + bytes(8)
    held = MemoryBlobs({digest: pieces})
    assert bytes(held.view(digest)) == held.copy(digest) == bytes(held.private(digest)) == b"abcdef" + bytes(8)


def test_a_flipped_bit_anywhere_is_refused(tmp_path):
    """Every byte of a small file is covered, padding included."""
    path = write(tmp_path / "m.edge.etg", blobs=BLOBS[:3])
    good = path.read_bytes()
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << (at % 8)
        damaged(path, bad)


def test_a_flipped_bit_in_a_large_file_is_refused(tmp_path):
    """Large blobs and the padding before them are covered too."""
    path = write(tmp_path / "m.edge.etg")
    good = path.read_bytes()
    dice = random.Random(0)
    for at in dice.sample(range(len(good)), 150):
        bad = bytearray(good)
        bad[at] ^= 1 << dice.randrange(8)
        damaged(path, bad)


def test_a_cut_or_longer_file_is_refused(tmp_path):
    """Truncated anywhere, or with bytes after its end, a file is not read."""
    path = write(tmp_path / "m.edge.etg")
    good = path.read_bytes()
    for size in (0, 1, 7, 8, 100, 255, 256, 257, len(good) // 2, len(good) - 1):
        damaged(path, good[:size])
    assert "should have" in damaged(path, good + b"\0")
    assert "should have" in damaged(path, good + good)


def test_a_file_of_another_version_says_so(tmp_path):
    """The version is named, and what to do."""
    from blake3 import blake3

    path = write(tmp_path / "m.edge.etg")
    data = bytearray(path.read_bytes())
    data[8:12] = (99).to_bytes(4, "little")
    data[224:256] = blake3(data[:224]).digest()
    assert "format version 99" in damaged(path, data)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"PK\x03\x04" + bytes(300), container.MAGIC])
def test_other_files_are_refused_in_one_clear_error(tmp_path, content):
    """What is no container is not read as one."""
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(ArtifactFileError, match=r"not an etgraph file|damaged"):
        container.read(path)
    with pytest.raises(ArtifactFileError):
        container.peek(path)


def test_folders_and_missing_files_are_named(tmp_path):
    """A folder and a missing file are errors of their own."""
    with pytest.raises(ArtifactFileError, match="is a folder"):
        container.read(tmp_path)
    with pytest.raises(ArtifactFileError, match="No such file"):
        container.read(tmp_path / "absent")
    assert not container.is_container(tmp_path)
    assert not container.is_container(tmp_path / "absent")


def test_writing_to_a_private_blob_reaches_neither_file_nor_other_maps(tmp_path):
    """Loaded tensors may be written in place; the file stays as it was."""
    path = write(tmp_path / "m.edge.etg")
    before = path.read_bytes()
    opened = container.read(path)
    digest = digest_of(BLOBS[3])
    one, two = opened.private(digest), opened.private(digest)
    one[0] ^= 255
    assert bytes(two) == BLOBS[3] == bytes(opened.view(digest))
    assert path.read_bytes() == before


def test_maps_outlive_the_container_and_the_file(tmp_path):
    """A view stays good when the container is gone and the file was replaced."""
    path = write(tmp_path / "m.edge.etg")
    view = container.read(path).view(digest_of(BLOBS[4]))
    write(path, blobs=[b"other"])
    path.unlink()
    assert bytes(view) == BLOBS[4]


def test_a_document_that_names_a_missing_blob_is_damaged(tmp_path):
    """A blob that is not there is an error with the file's name."""
    path = write(tmp_path / "m.edge.etg")
    with pytest.raises(ArtifactFileError, match=r"m\.edge\.etg is damaged"):
        container.read(path).view("00" * 32)


def test_a_failed_write_leaves_what_was_there_and_nothing_else(tmp_path):
    """The old file survives an error in the middle of writing, and no temporary file stays."""
    path = write(tmp_path / "m.edge.etg")
    before = path.read_bytes()

    class Breaks(list):
        def __iter__(self):
            yield b"a" * 5_000_000
            if len(os.listdir(tmp_path)) > 1:
                raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        container.write(path, DOCUMENT, {"11" * 32: Breaks()})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_full_disk_is_a_clear_error_and_leaves_what_was_there(tmp_path):
    """The system's limit on file size stands for a full disk: it fails in the middle of a write."""
    path = write(tmp_path / "m.edge.etg")
    before = path.read_bytes()
    code = f"""
        import resource, signal
        from etgraph import container
        from etgraph.blobs import digest_of
        from etgraph.errors import ArtifactFileError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
        blob = bytes(9_000_000)
        try:
            container.write({str(path)!r}, {{"kind": "edge"}}, {{digest_of(blob): blob}})
        except ArtifactFileError as e:
            assert "cannot be written" in str(e), e
        else:
            raise SystemExit("it was written")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_a_clear_error(tmp_path):
    """Nothing is written where writing is not permitted."""
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(ArtifactFileError, match="does not permit"):
            write(tmp_path / "m.edge.etg")
    finally:
        tmp_path.chmod(0o700)


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    """The reason is said, and nothing is made."""
    with pytest.raises(ArtifactFileError, match="does not exist"):
        write(tmp_path / "absent" / "m.edge.etg")
    (tmp_path / "taken.etg").mkdir()
    with pytest.raises(ArtifactFileError, match="a folder has that name"):
        write(tmp_path / "taken.etg")
    assert os.listdir(tmp_path) == ["taken.etg"]


def test_permissions_follow_the_umask(tmp_path):
    """A saved file is readable for others when the umask lets it, unlike a temporary file."""
    old = os.umask(0o022)
    try:
        path = write(tmp_path / "m.edge.etg")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_offsets_beyond_four_gibibytes_work(tmp_path):
    """A map and a digest of a part that begins after 4 GiB, in a sparse file."""
    path = tmp_path / "sparse"
    offset = (5 << 30) + 17
    with open(path, "wb") as file:
        file.truncate(offset)
        file.seek(offset)
        file.write(b"after four gibibytes")
    with open(path, "rb") as file:
        assert bytes(map_file(file.fileno(), offset, 20)) == b"after four gibibytes"
        assert bytes(map_file(file.fileno(), offset, 20, private=True)) == b"after four gibibytes"
        assert digest_of_file(file.fileno(), offset, 20) == digest_of(b"after four gibibytes")


@pytest.mark.slow
def test_a_container_beyond_four_gibibytes_comes_back(tmp_path):
    """A real file larger than 4 GiB is written, verified, and its last blob read."""
    piece = bytes(1 << 20)
    large, last = [piece] * 4100, b"the last blob"
    digest = digest_of(large)
    path = tmp_path / "large.edge.etg"
    container.write(path, DOCUMENT, {digest: large, digest_of(last): last})
    assert path.stat().st_size > 1 << 32
    opened = container.read(path)
    assert opened.copy(digest_of(last)) == last
    assert opened.view(digest).nbytes == 4100 << 20


def test_verification_does_not_keep_the_file_in_memory(tmp_path):
    """Reading a large file with verification adds little resident memory."""
    path = write(tmp_path / "m.edge.etg", blobs=[os.urandom(1 << 20) * 200])
    code = f"""
        import resource
        from etgraph import container
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        opened = container.read({str(path)!r})
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 40_000, grown
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=300), unique=True, max_size=6), st.dictionaries(st.text(max_size=5), st.integers()))
def test_any_blobs_and_document_round_trip(tmp_path_factory, blobs, extra):
    """Any set of blobs and any JSON document come back."""
    path = tmp_path_factory.mktemp("c") / "x.etg"
    write(path, blobs, {**extra, "kind": "lowered"})
    opened = container.read(path)
    assert opened.document == {**extra, "kind": "lowered"}
    assert [opened.copy(digest_of(blob)) for blob in blobs] == blobs
