"""Files that are whole or absent, and whether one has some content already."""

import os

import pytest

from etgraph.errors import ArtifactFileError
from etgraph.files import holds, replace_file


@pytest.mark.parametrize("size", [0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_000])
def test_a_file_holds_what_was_written_in_whatever_pieces(tmp_path, size):
    path, content = tmp_path / "file", os.urandom(size)
    replace_file(path, lambda file: file.write(content))
    assert holds(path, [content])
    assert holds(path, [content[: size // 3], memoryview(content)[size // 3 :]])
    assert not holds(path, [content, b"\0"])
    if size:
        other = bytearray(content)
        other[-1] ^= 1
        assert not holds(path, [bytes(other)])
        assert not holds(path, [content[:-1]])


def test_what_cannot_be_read_holds_nothing(tmp_path):
    assert not holds(tmp_path / "absent", [b""])
    assert not holds(tmp_path, [b""])


def test_a_file_that_fails_to_be_written_is_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(file):
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(ArtifactFileError, match="the disk is full"):
        replace_file(path, fail)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_saving_a_program_over_itself_leaves_the_file_and_gives_it_the_time_of_now(tmp_path):
    from etgraph.artifact import Executorch
    from stages.keeping import save_file

    program = Executorch(methods={"forward": {}}, pieces=[b"ET12", b"rest"])
    path = tmp_path / "model.pte"
    save_file(program, path)
    before = os.stat(path).st_ino
    os.utime(path, (1, 1))
    save_file(program, path)
    assert os.stat(path).st_ino == before
    assert os.stat(path).st_mtime > 1
    save_file(Executorch(methods={"forward": {}}, pieces=[b"ET12", b"REST"]), path)
    assert path.read_bytes() == b"ET12REST"


def test_the_bytes_of_a_program_are_joined_once_and_stay_while_it_lives():
    """The runtime reads them without holding them: bytes that only the caller's expression held would be freed."""
    from etgraph.artifact import Executorch

    program = Executorch(methods={"forward": {}}, pieces=[b"ET12", memoryview(b"rest")])
    assert program.nbytes == 8
    assert program.buffer == b"ET12rest"
    assert program.buffer is program.buffer
    assert program.nbytes == 8
