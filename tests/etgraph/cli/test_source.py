"""SOURCE: every form of it, and every way to get it wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from etgraph.cli.source import load_object, parse_source
from etgraph.errors import UsageError


def refused(given: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load_object(parse_source(given))
    assert caught.value.exit_code == 2
    return caught.value


@pytest.fixture(autouse=True)
def path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_name_in_python_file(folder: Path) -> None:
    reference = parse_source("net.py:make")
    assert (reference.path, reference.name, reference.stem) == (Path("net.py"), "make", "make")
    assert not reference.is_program_file


def test_name_in_module() -> None:
    reference = parse_source("package.module:Outer.inner")
    assert (reference.module, reference.name, reference.stem) == ("package.module", "Outer.inner", "inner")


def test_program_file_is_named_without_its_kind(folder: Path) -> None:
    for name, stem in (("m.edge.etg", "m"), ("m.pt2", "m"), ("v1.2.pt2", "v1.2"), ("edge.etg", "edge")):
        (folder / name).touch()
        reference = parse_source(name)
        assert reference.is_program_file
        assert reference.stem == stem


def test_existing_file_wins_over_a_colon_in_its_name(folder: Path) -> None:
    (folder / "model:v2").touch()
    assert parse_source("model:v2").path == Path("model:v2")


def test_colon_in_a_folder_is_no_separator(folder: Path) -> None:
    (folder / "a:b").mkdir()
    (folder / "a:b" / "net.py").write_text("x = 1")
    assert parse_source("a:b/net.py:x").name == "x"


def test_windows_path_is_split_at_its_last_colon(folder: Path) -> None:
    assert "there is no file C:\\models\\net.py" in refused("C:\\models\\net.py:make").problem
    assert "does not exist" in refused("C:\\models\\net.pt2").problem


@pytest.mark.parametrize("callable_", ["make", "pair", "Net", "Holder.make", "instance", "source", "later"])
def test_every_form_of_object(folder: Path, callable_: str) -> None:
    """Callables are called, everything else is taken as it is, pairs become sources."""
    with (folder / "net.py").open("a") as file:
        file.write(
            "\npair = make()\ninstance = Net()\n"
            "class Holder:\n    @staticmethod\n    def make():\n        return make()\n"
            "import etgraph, functools\ndef source():\n    return etgraph.Source(Net(), (torch.ones(1, 3, 8, 8),))\n"
            "later = functools.partial(lambda n: Net(), 3)\n"
        )
    loaded = load_object(parse_source(f"net.py:{callable_}"))
    model = getattr(loaded, "model", loaded)
    assert type(model).__name__ == "Net"
    has_inputs = callable_ in ("make", "pair", "Holder.make", "source")
    assert (getattr(loaded, "example_inputs", None) is not None) == has_inputs


def test_bound_method_of_a_module_is_a_program_and_not_called(folder: Path) -> None:
    with (folder / "net.py").open("a") as file:
        file.write("\nencoder = Net()\n")
    assert load_object(parse_source("net.py:encoder.forward")).__name__ == "forward"


def test_neighbours_of_the_file_can_be_imported(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "layers_beside.py").write_text("import torch\nlayer = torch.nn.Linear(2, 2)")
    (folder / "sub" / "top.py").write_text("from layers_beside import layer as model")
    assert load_object(parse_source("sub/top.py:model")).in_features == 2


def test_file_with_the_name_of_a_library_does_not_replace_it(folder: Path) -> None:
    import torch

    (folder / "torch.py").write_text("raise SystemExit")
    (folder / "random.py").write_text("import torch\nmodel = torch.nn.ReLU()")
    load_object(parse_source("random.py:model"))
    assert sys.modules["torch"] is torch
    assert sys.modules["random"].__file__ != str(folder / "random.py")


def test_module_in_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_package_x").mkdir()
    (folder / "own_package_x" / "nets.py").write_text("import torch\nmodel = torch.nn.ReLU()")
    assert type(load_object(parse_source("own_package_x.nets:model"))).__name__ == "ReLU"


@pytest.mark.parametrize(
    ("given", "problem", "hint"),
    [
        ("", "SOURCE is empty", "SOURCE is file.py:name"),
        (".", "is a folder", "SOURCE is file.py:name"),
        ("nett.py:make", "no file nett.py; did you mean 'net.py'?", "SOURCE is file.py:name"),
        ("net.py", "does not say which model", "defines Net, make, Broken, broken"),
        ("net.py:", "cannot be a name in Python", "defines Net"),
        ("net.py:1x", "cannot be a name in Python", "defines Net"),
        ("net.py:mak", "has no 'mak'; did you mean 'make'?", "It defines Net, make"),
        ("net.py:Net.x.y", "Net has no 'x'", ""),
        ("model.pt2", "SOURCE model.pt2 does not exist", "SOURCE is file.py:name"),
        ("no/such/model.pt2", "nor does the folder no/such", ""),
        ("nopackage.x:y", "there is no module 'nopackage'", "no file of that name"),
        ("json.nothing:y", "there is no module 'json.nothing'", ""),
        ("json", "is a module, and does not say which model", "json:NAME"),
        ("a b:c", "neither a file nor the name of a module", ""),
        ("net.py:torch", "a builtins.module is not a program", "Accepted: an nn.Module"),
        ("net.py:NUMBER", "a builtins.int is not a program", "Accepted"),
        ("net.py:needs", "needs arguments (width, depth)", "without arguments"),
        ("net.py:Sized", "class Sized needs arguments (width)", "return Sized(...)"),
        ("net.py:three", "a tuple of 3, and (module, example_inputs) was wanted", "return model, (x,)"),
        ("net.py:nothing", "a builtins.NoneType is not a program", "Accepted"),
    ],
)
def test_wrong_source_is_refused_with_what_to_do(folder: Path, given: str, problem: str, hint: str) -> None:
    with (folder / "net.py").open("a") as file:
        file.write(
            "\nNUMBER = 3\ndef needs(width, depth, *, bias=True): ...\ndef three(): return 1, 2, 3\n"
            "def nothing(): ...\nclass Sized(torch.nn.Module):\n    def __init__(self, width): ...\n"
        )
    error = refused(given)
    assert problem in error.problem + error.hint
    assert hint in error.problem + error.hint


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_error_in_the_users_file_shows_their_lines_and_not_ours(folder: Path, code: str, said: str) -> None:
    (folder / "bad.py").write_text(f"x = 1\n{code}\n")
    error = refused("bad.py:make")
    assert error.problem.startswith("bad.py cannot be imported: ")
    assert said in error.problem
    assert 'bad.py", line 2' in error.hint
    assert "etgraph/cli" not in error.hint
    assert "importlib" not in error.hint
    assert "bad" not in sys.modules


def test_error_inside_the_callable_shows_its_lines(folder: Path) -> None:
    (folder / "bad_call.py").write_text("def make():\n    return {}['weights']\n")
    error = refused("bad_call.py:make")
    assert "calling make() failed: KeyError: 'weights'" in error.problem
    assert "line 2, in make" in error.hint
    assert "etgraph/cli" not in error.hint


def test_error_inside_a_package_that_exists_is_not_taken_for_a_missing_module(folder: Path) -> None:
    (folder / "pkg_with_error.py").write_text("import not_there_at_all")
    assert "module pkg_with_error cannot be imported: ModuleNotFoundError" in refused("pkg_with_error:x").problem
