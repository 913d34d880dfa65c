"""The code of etgraph itself, as a part of every key."""

import shutil
import sys
import time

import pytest

import etgraph.keys
from etgraph import owncode
from etgraph.errors import Undescribable


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A copy of a loaded module's file that may be edited, in the module's place."""
    path = tmp_path / "keys.py"
    shutil.copy2(etgraph.keys.__file__, path)
    monkeypatch.setattr(sys.modules["etgraph.keys"], "__file__", str(path))
    description, written = owncode._own_code()
    monkeypatch.setattr(owncode, "_own_code", lambda: (description, dict(written)))
    monkeypatch.setattr(etgraph, "_imported_at", time.time())
    written[str(path)] = path.stat().st_mtime_ns
    yield path
    del written[str(path)]


def test_it_is_described_by_the_content_of_its_files(loaded):
    described = owncode.describe_own_code()
    assert described == owncode.describe_own_code()
    assert "files of etgraph" in described.head


def test_a_module_that_was_edited_after_the_process_began_makes_it_undescribable(loaded):
    """What runs is not what was read: nothing may be kept under its key."""
    owncode.describe_own_code()
    loaded.write_text(loaded.read_text() + "\n")
    with pytest.raises(Undescribable, match=r"etgraph\.keys was edited after this process began"):
        owncode.describe_own_code()


def test_every_source_file_counts():
    _, written = owncode._own_code()
    assert {path.rpartition("/")[2] for path in written} >= {"keys.py", "memo.py", "to_edge.py", "artifacts.py"}
