"""A user's module as content: its compiled file and the user's files that it imports; nothing is run.

Used where code names a whole module: an import inside a function, or a module that is passed on as a value.
It says more than is needed (any function of the file counts), and nothing less.
"""

from __future__ import annotations

import dis
import functools
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from blake3 import blake3

from etgraph.identity import origin
from etgraph.identity.description import Description
from etgraph.identity.instructions import code_digest, references

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_files_of", "describe_module_files", "find_module"]


def find_module(name: str, level: int = 0, package: str = "") -> tuple[str, str | None, bool]:
    """Resolve an import statement without importing.

    Returns:
        The absolute name, its library or None for a user's module, and whether there is such a module at all.
    """
    if level:
        parents = package.split(".")[: len(package.split(".")) - level + 1]
        name = ".".join([*parents, name] if name else parents)
    if name in sys.modules:
        return name, origin.library_of_module(name), True
    spec = _spec(name)
    if spec is None:
        return name, None, False
    if spec.origin in ("built-in", "frozen"):
        return name, origin.library_of_module("sys"), True
    places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or ())
    return name, origin.library_of(str(places[0])) if places else None, True


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Ask the finders for a module's spec; unlike importlib.util.find_spec, import no parent."""
    path: list[str] | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    parts = name.split(".")
    for i in range(len(parts)):
        full = ".".join(parts[: i + 1])
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            try:
                spec = find(full, path) if find is not None else None
            except KeyError:
                # A namespace package in a package that is not imported: Python looks up the parent's path.
                spec = _namespace(full, path or [])
            if spec is not None:
                break
        if spec is None or (spec.origin is not None and origin.library_of(spec.origin) is not None):
            return spec
        path = list(spec.submodule_search_locations or ())
    return spec


def _namespace(full: str, parents: list[str]) -> importlib.machinery.ModuleSpec | None:
    folders = [os.path.join(parent, full.rpartition(".")[2]) for parent in parents]
    found = [folder for folder in folders if os.path.isdir(folder)]
    if not found:
        return None
    spec = importlib.machinery.ModuleSpec(full, None, is_package=True)
    spec.submodule_search_locations = found
    return spec


def describe_module_files(walk: Walk, name: str, names: tuple[str, ...] = ()) -> Description:
    """Describe a user's module, with the submodules among `names`, by the files that an import of it runs.

    Raises:
        Undescribable: it has no file, or the file is not what was imported.
    """
    module = sys.modules.get(name)
    if module is not None and _file_of(name) is None and not hasattr(module, "__path__"):
        walk.refuse(
            module,
            f"the module {name} has no file, so its code cannot be read as a whole",
            hint="Name what you use of it, as `module.function`, instead of passing the module on.",
        )
    files: dict[str, str] = {}
    pending = [name, *(f"{name}.{n}" for n in names)]
    while pending:
        current = pending.pop(0)
        for ancestor in _with_parents(current):
            path = _file_of(ancestor)
            if path is None or path in files:
                continue
            try:
                code = _compiled(path, os.stat(path).st_mtime_ns, os.stat(path).st_size)
            except (OSError, SyntaxError, ValueError) as error:
                walk.refuse(module, f"the file of module {ancestor} cannot be compiled: {error}")
            files[path] = code_digest(code) + _loaded_otherwise(walk, ancestor, code)
            pending += [n for n in _imports(code, ancestor, path) if find_module(n)[1:] == (None, True)]
    exact = blake3("".join(files.values()).encode()).hexdigest()  # in order: two files may swap contents
    return Description("files", exact, shown=f"code of {len(files)} files")


def describe_files_of(function: types.FunctionType) -> Description:
    """Describe a function's file with all that the file imports; for code that needs no closer look.

    A library's function is described by its version. Stages of a checkout are described this way: they read
    files and ask for attributes by name as their work, and a change in any file that they import counts.
    """
    from etgraph.identity.code import public_name
    from etgraph.identity.describe import Walk

    library = origin.library_of_code(function.__code__, function.__globals__)
    if library is not None:
        return Description("library", f"{public_name(function)} @ {library}")
    walk = Walk(function.__qualname__)
    child = describe_module_files(walk, function.__module__)
    return Description("function", function.__qualname__, (("(files)", child),))


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for i in range(len(parts)):
        yield ".".join(parts[: i + 1])


def _file_of(name: str) -> str | None:
    """The source file of a user's module; None for a library's, a namespace package's, or none at all."""
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if module is None:
        spec = _spec(name)
        path = spec.origin if spec is not None and spec.has_location else None
    if not isinstance(path, str) or origin.library_of(path) is not None:
        return None
    return path


@functools.lru_cache(maxsize=1024)
def _compiled(path: str, mtime_ns: int, size: int) -> types.CodeType:
    """Compile a source file; an extension module stands for its bytes."""
    del mtime_ns, size  # parts of the cache's key
    with open(path, "rb") as file:
        content = file.read()
    if not path.endswith((".py", ".pyw")):
        return compile(repr(blake3(content).hexdigest()), "<binary>", "eval", dont_inherit=True)
    return compile(content, path, "exec", dont_inherit=True)


def _imports(code: types.CodeType, name: str, path: str) -> Iterator[str]:
    package = name if os.path.basename(path) == "__init__.py" else name.rpartition(".")[0]
    for level, module, names in references(code).imports:
        absolute, library, exists = find_module(module, level, package)
        if exists and library is None:
            yield absolute
            yield from (f"{absolute}.{n}" for n in names if n != "*" and _spec(f"{absolute}.{n}") is not None)


def _loaded_otherwise(walk: Walk, name: str, code: types.CodeType) -> str:
    """Digest what a module was made of where that is not what its file compiles to, as in tests of pytest.

    Raises:
        Undescribable: it was edited after it was imported: the file is not what would run.
    """
    module = sys.modules.get(name)
    if module is None:
        return ""
    loaded = {function.__code__ for function in _functions_of(module)}
    if not isinstance(getattr(module, "__loader__", None), (importlib.machinery.SourceFileLoader, type(None))):
        return blake3("".join(sorted(one.co_qualname + code_digest(one) for one in loaded)).encode()).hexdigest()
    _refuse_stale(walk, module, code, loaded)
    return ""


def _functions_of(holder: types.ModuleType | type) -> Iterator[types.FunctionType]:
    """Functions that a module or class holds and that were defined in its file, those of its classes included."""
    file = getattr(sys.modules.get(getattr(holder, "__module__", "")), "__file__", None)
    file = getattr(holder, "__file__", None) if isinstance(holder, types.ModuleType) else file
    for value in list(vars(holder).values()):
        if isinstance(value, type):
            if value.__module__ == getattr(holder, "__module__", getattr(holder, "__name__", None)) and value != holder:
                yield from _functions_of(value)
            continue
        parts = (value.fget, value.fset, value.fdel) if isinstance(value, property) else ()
        for part in parts or (getattr(value, "__func__", value),):
            while part is not None:
                if isinstance(part, types.FunctionType) and part.__code__.co_filename == file:
                    yield part
                # What a decorator has wrapped, a stage among them.
                part = getattr(part, "__dict__", {}).get("__wrapped__")


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_in(constant)


def _refuse_stale(walk: Walk, module: types.ModuleType, code: types.CodeType, loaded: Iterable[types.CodeType]) -> None:
    fresh: dict[str, set[str]] = {}
    for one in _codes_in(code):
        fresh.setdefault(one.co_qualname, set()).add(code_digest(one))
    for one in loaded:
        if code_digest(one) not in fresh.get(one.co_qualname, ()):
            _refuse_changed(walk, module, one.co_qualname)
    for key, constant in _plain_assignments(code).items():
        loaded_constant = vars(module).get(key, constant)
        if type(loaded_constant) is not type(constant) or repr(loaded_constant) != repr(constant):
            _refuse_changed(walk, module, key)


def _refuse_changed(walk: Walk, module: types.ModuleType, name: str) -> None:
    walk.refuse(
        module,
        f"{name} of module {module.__name__} is not what its file says; one was changed after the import",
        hint="Start a new process, or import the module again.",
    )


def _plain_assignments(code: types.CodeType) -> dict[str, object]:
    """Names that a module assigns once, at its top level, from a number or text."""
    found: dict[str, list[object]] = {}
    previous: dis.Instruction | None = None
    for item in dis.get_instructions(code):
        if item.opname in ("STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"):
            constant = previous is not None and previous.opname == "LOAD_CONST"
            found.setdefault(item.argval, []).append(previous.argval if constant and previous else ...)
        previous = item
    kinds = (bool, int, float, complex, str, bytes, type(None))
    once = {name: values[0] for name, values in found.items() if len(values) == 1}
    return {name: value for name, value in once.items() if isinstance(value, kinds) and name[:2] != "__"}
