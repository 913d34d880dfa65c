"""Modules that code names as a whole are described by their files, none of which is run."""

import importlib
import importlib.util
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from etgraph.identity import Undescribable, code_of, describe, describe_files_of

FILES = {
    "proj/__init__.py": "",
    "proj/stage.py": "def f(x):\n  from proj.inner import tool\n  from . import lazy\n  return tool.run(x)\n",
    "proj/whole.py": "from proj import lazy\ndef f(x):\n  return use(lazy)\ndef use(m):\n  return m\n",
    "proj/inner/__init__.py": "",
    "proj/inner/tool.py": "import proj.deep\nimport json\ndef run(x):\n    return x\n",
    "proj/deep.py": "VALUE = 1\n",
    "proj/lazy.py": "def g(x):\n    return x\nraise_if_run = 1 / 1\n",
    "proj/pair.py": "def f(x):\n  from proj import both\n  return both.run(x)\n",
    "proj/both.py": "from proj import one, two\ndef run(x):\n  return one.go(two.go(x))\n",
    "proj/one.py": "def go(x):\n  return x + 1\n",
    "proj/two.py": "def go(x):\n  return x * 2\n",
    "proj/other.py": "NOT = 'imported'\n",
}


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget()


def forget() -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "proj"]:
        del sys.modules[name]


def stage(name: str = "proj.stage") -> Any:
    forget()
    importlib.invalidate_caches()
    return importlib.import_module(name).f


@pytest.mark.parametrize(
    "file", ["proj/stage.py", "proj/inner/tool.py", "proj/deep.py", "proj/lazy.py", "proj/__init__.py"]
)
@pytest.mark.parametrize("say", [code_of, describe_files_of])
def test_an_import_inside_a_function_counts_with_all_that_it_imports(
    project: pathlib.Path, file: str, say: Any
) -> None:
    before = say(stage()).digest
    path = project / file
    path.write_text(path.read_text() + ("ADDED = 1\n" if file != "proj/stage.py" else ""))
    if file == "proj/stage.py":
        path.write_text(path.read_text().replace("tool.run(x)", "tool.run(x + 1)"))
    assert say(stage()).digest != before


@pytest.mark.parametrize("say", [code_of, describe_files_of])
def test_a_file_that_is_not_imported_and_a_comment_do_not_count(project: pathlib.Path, say: Any) -> None:
    before = say(stage()).digest
    (project / "proj/other.py").write_text("NOT = 'this either'\n")
    for name in ("proj/deep.py", "proj/stage.py"):
        (project / name).write_text("# a comment\n" + FILES[name])
    assert say(stage()).digest == before


def test_describing_imports_nothing(project: pathlib.Path) -> None:
    function = stage()
    describe_files_of(function)
    code_of(function)
    assert [n for n in sys.modules if n.startswith("proj.")] == ["proj.stage"]


def test_it_is_the_same_once_the_modules_are_imported(project: pathlib.Path) -> None:
    function = stage()
    before = code_of(function)
    function(1)
    assert "proj.inner.tool" in sys.modules
    assert code_of(function) == before


def test_two_files_that_swap_their_contents_are_a_change(project: pathlib.Path) -> None:
    """All contents are as before, and another file holds each."""
    before = code_of(stage("proj.pair")).digest
    (project / "proj/one.py").write_text(FILES["proj/two.py"])
    (project / "proj/two.py").write_text(FILES["proj/one.py"])
    assert code_of(stage("proj.pair")).digest != before


def test_a_module_passed_on_as_a_value_counts_as_a_whole(project: pathlib.Path) -> None:
    before = code_of(stage("proj.whole")).digest
    (project / "proj/lazy.py").write_text(FILES["proj/lazy.py"].replace("return x", "return x + 1"))
    assert code_of(stage("proj.whole")).digest != before


def test_a_file_edited_after_its_import_is_refused(project: pathlib.Path) -> None:
    """What is imported would run, what is on disk would be described: neither is a basis."""
    function = stage()
    function(1)
    (project / "proj/lazy.py").write_text(FILES["proj/lazy.py"].replace("return x", "return x + 1"))
    with pytest.raises(Undescribable, match="not what its file says"):
        code_of(function)


def test_a_constant_that_was_set_after_the_import_is_refused(project: pathlib.Path) -> None:
    function = stage()
    function(1)
    sys.modules["proj.deep"].VALUE = 2  # type: ignore[attr-defined]
    with pytest.raises(Undescribable, match=r"VALUE of module proj\.deep is not what its file says"):
        code_of(function)


def test_a_file_that_does_not_compile_is_refused(project: pathlib.Path) -> None:
    function = stage()
    (project / "proj/lazy.py").write_text("def (:")
    with pytest.raises(Undescribable, match="cannot be compiled"):
        code_of(function)


def test_a_module_without_a_file_is_refused() -> None:
    import types

    bare = types.ModuleType("made_by_hand")
    sys.modules["made_by_hand"] = bare
    try:
        with pytest.raises(Undescribable, match="has no file"):
            describe(bare)
    finally:
        del sys.modules["made_by_hand"]


def test_library_modules_are_described_by_version() -> None:
    import json

    assert describe(json).own.startswith("json @ python 3.")
    assert describe_files_of(json.dumps).kind == "library"
