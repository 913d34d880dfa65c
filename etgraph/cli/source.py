"""SOURCE on the command line: `file.py:name`, `package.module:name`, or a file."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import os
import re
import sys
import types
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from etgraph.cli.blame import user_traceback
from etgraph.errors import UsageError
from etgraph.recipes import closest

__all__ = [
    "Reference",
    "called",
    "is_to_be_called",
    "load_object",
    "parse_source",
    "program_stem",
    "read_reference",
    "value_of",
]

_FORMS = "SOURCE is file.py:name, package.module:name, or a file that holds a program (.etg, .pt2, .pte)."
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Reference:
    """Where a source is: a file that holds a program, or a name inside Python code.

    Args:
        given: as it was written.
        path: the file of a program, or the Python file; None for a module by its dotted name.
        module: the dotted name of a module; empty where `path` is given.
        name: the object's name inside the code, dots allowed; empty for a file that is no code.
        what: what it is called on the command line.
        forms: what it may be.
    """

    given: str
    path: Path | None = None
    module: str = ""
    name: str = ""
    what: str = "SOURCE"
    forms: str = field(default=_FORMS, repr=False)

    @property
    def shown(self) -> str:
        """How messages name it."""
        return f"{self.what} {self.given}"

    @property
    def is_program_file(self) -> bool:
        """Whether it is a file that holds a program, not code."""
        return not self.name

    @property
    def stem(self) -> str:
        """What files made from it are called: the object's name, or the file's without suffixes of ours."""
        if self.name:
            return self.name.rpartition(".")[2]
        assert self.path is not None
        return program_stem(self.path)


def program_stem(path: Path) -> str:
    """Return a file's name without its suffix and without the kind before it: `m` for `m.edge.etg`."""
    from etgraph.artifact import KINDS

    before, _, kind = path.stem.rpartition(".")
    return before if before and kind in KINDS else path.stem


def parse_source(given: str) -> Reference:
    """Read what a user wrote for SOURCE; nothing is imported.

    What exists as a file under the whole text is that file, so that a colon in a path does not confuse it.
    """
    return read_reference(Reference(given), "model")


def read_reference(empty: Reference, wanted: str) -> Reference:
    """Fill in where a reference points, from what was given; `wanted` is what it should be the name of."""
    given = empty.given
    if not given:
        raise UsageError(f"{empty.what} is empty", hint=empty.forms)
    path = Path(given)
    if path.is_dir():
        raise UsageError(f"{empty.shown} is a folder", hint=empty.forms)
    if path.exists():
        if path.suffix == ".py":
            raise UsageError(
                f"{empty.shown} is a Python file, and does not say which {wanted} in it is meant", hint=_names_in(path)
            )
        return replace(empty, path=path)
    place, colon, name = given.rpartition(":")
    if colon and place and _DOTTED.fullmatch(name) and not _is_drive(place):
        return _in_code(empty, place, name)
    if place.endswith(".py"):
        problem = f"{empty.shown} has {name!r} after the colon, which cannot be a name in Python"
        hint = _names_in(Path(place)) if Path(place).is_file() else empty.forms
        raise UsageError(problem, hint=hint)
    if not colon and _DOTTED.fullmatch(given) and _module_exists(given):
        raise UsageError(
            f"{empty.shown} is a module, and does not say which {wanted} in it is meant", hint=f"Write {given}:NAME."
        )
    raise UsageError(f"{empty.shown} does not exist{_neighbour(path)}", hint=empty.forms)


def _in_code(empty: Reference, place: str, name: str) -> Reference:
    path = Path(place)
    if path.suffix == ".py" or path.is_file():
        if not path.is_file():
            raise UsageError(f"{empty.shown}: there is no file {place}{_neighbour(path)}", hint=empty.forms)
        return replace(empty, path=path, name=name)
    if _DOTTED.fullmatch(place):
        return replace(empty, module=place, name=name)
    raise UsageError(f"{empty.shown}: {place} is neither a file nor the name of a module", hint=empty.forms)


def _is_drive(place: str) -> bool:
    return os.name == "nt" and len(place) == 1 and place.isalpha()


def _module_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _neighbour(path: Path) -> str:
    try:
        return closest(path.name, (other.name for other in path.parent.iterdir()))
    except OSError:
        return f", nor does the folder {path.parent}"


def _names_in(path: Path) -> str:
    """Name what a Python file defines, without running it."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return f"Write {path}:NAME."
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names.extend(target.id for target in targets if isinstance(target, ast.Name))
    public = [name for name in names if not name.startswith("_")]
    return f"Write {path}:NAME; it defines {', '.join(public) or 'nothing'}."


def load_object(reference: Reference) -> Any:
    """Import the code and return the program in it: a module, an `etgraph.Source`, or whatever `run` takes.

    A function or a class is called, without arguments; a pair is `(module, example_inputs)`.

    Raises:
        UsageError: the code cannot be imported, the name is not there or is no program, or the call failed.
    """
    value = value_of(reference)
    if is_to_be_called(value):
        value = called(value, reference)
    return _checked(value, reference)


def value_of(reference: Reference) -> Any:
    """Import the code and return what the name stands for."""
    holder = _import_file(reference) if reference.path is not None else _import_module(reference)
    return _attribute(holder, reference)


def _import_file(reference: Reference) -> types.ModuleType:
    assert reference.path is not None
    path = reference.path.resolve()
    # As for `python file.py`: its folder is the first place where it finds its neighbours.
    sys.path.insert(0, str(path.parent))
    stem = path.stem
    taken = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    name = "_etgraph_source_" + re.sub(r"\W", "_", stem) if taken else stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{reference.shown}: {path.name} is not a Python file", hint=reference.forms)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _users_fault(f"{reference.path} cannot be imported", error) from error
    return module


def _import_module(reference: Reference) -> types.ModuleType:
    # As for `python -m`: modules in the current folder count.
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(reference.module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if reference.module == missing or reference.module.startswith(f"{missing}."):
            raise UsageError(
                f"{reference.shown}: there is no module {missing!r} here, and no file of that name",
                hint=f"{reference.forms} Modules are looked for in the current folder and where Python finds packages.",
            ) from None
        raise _users_fault(f"module {reference.module} cannot be imported", error) from error
    except (Exception, SystemExit) as error:
        raise _users_fault(f"module {reference.module} cannot be imported", error) from error


def _users_fault(what: str, error: BaseException) -> UsageError:
    said = str(error)
    shown = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return UsageError(f"{what}: {shown}", hint=user_traceback(error))


def _attribute(holder: types.ModuleType, reference: Reference) -> Any:
    value: Any = holder
    for part in reference.name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            where = "it" if value is holder else f"{type(value).__name__} {reference.name.partition('.')[0]}"
            names = _own_names(holder) if value is holder else [n for n in dir(value) if not n.startswith("_")]
            raise UsageError(
                f"{reference.shown}: {where} has no {part!r}{closest(part, names)}",
                hint=f"It defines {', '.join(names)}." if value is holder and names else "",
            ) from None
    return value


def _own_names(module: types.ModuleType) -> list[str]:
    """Public names that a module defines itself, imported modules and classes of others left out."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def is_to_be_called(value: Any) -> bool:
    """Whether it gives what is meant when it is called, and is not itself what is meant."""
    torch = sys.modules.get("torch")
    if inspect.ismethod(value) and torch is not None and isinstance(value.__self__, torch.nn.Module):
        return False
    return inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, functools.partial)


def called(function: Any, reference: Reference) -> Any:
    """Call a function or class without arguments.

    Raises:
        UsageError: it needs some, or failed.
    """
    needed = _needed(function)
    if needed:
        what = "class" if inspect.isclass(function) else "callable"
        short = reference.name.rpartition(".")[2]
        raise UsageError(
            f"{reference.shown}: the {what} {reference.name} needs arguments ({', '.join(needed)}), and "
            f"a {reference.what.lstrip('-')} is called without any",
            hint=f"Write a function without arguments beside it: def make(): return {short}(...), and give that.",
        )
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _users_fault(f"{reference.shown}: calling {reference.name}() failed", error) from error


def _needed(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]


def _checked(value: Any, reference: Reference) -> Any:
    from etgraph.api import detect
    from etgraph.artifact import Source

    if isinstance(value, tuple):
        if len(value) != 2:
            raise UsageError(
                f"{reference.shown} gives a tuple of {len(value)}, and (module, example_inputs) was wanted",
                hint="Return the model with its example inputs: return model, (x,).",
            )
        value = Source(model=value[0], example_inputs=value[1])
    given = value.model if isinstance(value, Source) else value
    if isinstance(given, str | os.PathLike):
        return value
    try:
        detect(value)
    except UsageError as error:
        raise UsageError(f"{reference.shown}: {error.problem}", hint=error.hint) from error
    return value
