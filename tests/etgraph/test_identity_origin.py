"""Which code is a library's, which is the user's, and which versions enter every key."""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from etgraph.identity import describe, origin
from etgraph.installed import installed_version

ROOT = pathlib.Path(__file__).parents[2]
SITE = pathlib.Path(pytest.__file__).parents[1]


def test_the_toolchain_names_versions_without_importing_anything() -> None:
    """Python, platform and the distributions that make programs; a missing one is said to be absent."""
    code = (
        "import sys, json; from etgraph.identity import toolchain, describe; "
        "describe([1, 'a', {2: len}])\n"
        "def stage(x):\n"
        "    from executorch.exir.dialects._ops import ops\n"
        "    import executorch.backends.xnnpack.partition.xnnpack_partitioner\n"
        "describe(stage)\n"
        "print(json.dumps([toolchain(['no-such-thing']), "
        "[m for m in ('torch', 'executorch', 'numpy', 'torchao') if m in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    versions, imported = json.loads(done.stdout)
    assert imported == []
    assert versions["torch"] == importlib.metadata.version("torch")
    assert versions["executorch"] == importlib.metadata.version("executorch")
    assert versions["python"] == f"CPython {sys.version_info.major}.{sys.version_info.minor}"
    assert versions["no-such-thing"] == "absent"
    assert set(versions) >= {"torchao", "etgraph", "platform"}


@pytest.mark.parametrize(
    ("filename", "library"),
    [
        (json.__file__, f"python {sys.version_info.major}.{sys.version_info.minor}"),
        ("<frozen importlib._bootstrap>", f"python {sys.version_info.major}.{sys.version_info.minor}"),
        (pytest.__file__, f"pytest {pytest.__version__}"),
        (str(SITE / "functorch" / "__init__.py"), f"torch {importlib.metadata.version('torch')}"),
        (str(SITE / "stray_file_of_nobody.py"), None),
        (__file__, None),
        ("<string>", None),
        ("<ipython-input-1>", None),
        ("/nowhere/model.py", None),
    ],
)
def test_a_file_is_a_librarys_or_the_users(filename: str, library: str | None) -> None:
    assert origin.library_of(filename) == library


def test_builtin_modules_are_pythons_and_unknown_ones_the_users() -> None:
    assert origin.library_of_module("sys") == origin.library_of_module("builtins")
    assert (origin.library_of_module("sys") or "").startswith("python ")
    assert origin.library_of_module("no_such_module") is None


def test_a_new_version_of_a_distribution_is_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version stands in the description of everything that the distribution defines."""

    def told() -> str:
        origin.library_of.cache_clear()
        origin._distribution.cache_clear()
        installed_version.cache_clear()
        return describe(pytest.approx(1)).digest

    real: Any = importlib.metadata.distribution("pytest")
    before = told()
    newer = type("Newer", (), {"version": "999", "metadata": real.metadata, "read_text": real.read_text})
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: newer)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "999")
    after = told()
    monkeypatch.undo()
    assert told() == before != after


def test_a_wrapper_that_takes_a_librarys_name_is_still_the_users() -> None:
    """`functools.wraps` copies `__module__`; the code decides."""
    import functools

    @functools.wraps(json.dumps)
    def mine(value: Any) -> str:
        return str(value)

    assert mine.__module__ == "json"
    assert describe(mine).kind == "function"


def test_a_distribution_is_found_by_its_own_name_without_asking_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy and typing_extensions list no top-level names; their records of files say what is theirs."""
    entries = {"executorch": "executorch", "numpy": "numpy", "typing_extensions.py": "typing_extensions"}
    owners = {entry: origin._owners()[entry.split(".")[0]] for entry in entries}
    origin._distribution.cache_clear()

    def refuse() -> None:
        raise AssertionError("all installed distributions were asked")

    monkeypatch.setattr(origin, "_owners", refuse)
    for entry, name in entries.items():
        assert origin._distribution(entry) == f"{name} {importlib.metadata.version(name)}"
        assert owners[entry] == [name]
    origin._distribution.cache_clear()


def test_a_name_alone_makes_nobody_the_owner() -> None:
    """The files decide: a package that has the name of a distribution need not be in it."""
    assert origin._records(importlib.metadata.distribution("numpy"), "numpy")
    assert not origin._records(importlib.metadata.distribution("numpy"), "num")
    assert not origin._records(importlib.metadata.distribution("typing_extensions"), "typing_extensions")
