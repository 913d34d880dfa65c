"""Where code comes from: an installed distribution, which enters keys by version, or the user, by content.

User code is everything outside the standard library and the site directories: the project's files, editable
installs, `__main__`, notebooks, code made by `exec`. A library edited in place without a new version is not
seen.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import site
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping

from etgraph.installed import installed_version

__all__ = ["library_of", "library_of_class", "library_of_code", "library_of_module", "toolchain"]

_PYTHON = f"python {sys.version_info.major}.{sys.version_info.minor}"

#: Distributions whose version can change what is exported, lowered or emitted.
_TOOLS = (
    "torch", "executorch", "torchao", "etgraph", "sympy",
    # compilers that backends call
    "coremltools", "ethos-u-vela", "nncf", "openvino", "tosa-tools",
)  # fmt: skip


def toolchain(extra: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions that enter every key, by name; nothing of it is imported.

    Args:
        extra: further distributions, such as a backend's compiler; "absent" stands for one not installed.
    """
    found = {"python": f"{platform.python_implementation()} {_PYTHON.removeprefix('python ')}"}
    found["platform"] = f"{sys.platform}-{platform.machine()}"
    for name in (*_TOOLS, *extra):
        found[name] = installed_version(name) or "absent"
    return found


@functools.lru_cache(maxsize=1)
def _site_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    candidates = {paths["purelib"], paths["platlib"], site.getusersitepackages(), *site.getsitepackages()}
    candidates |= {p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")}
    return tuple(sorted({os.path.realpath(c) + os.sep for c in candidates}, key=len, reverse=True))


@functools.lru_cache(maxsize=1)
def _standard_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({os.path.realpath(paths[k]) + os.sep for k in ("stdlib", "platstdlib")})


@functools.lru_cache(maxsize=1)
def _own_directories() -> tuple[str, ...]:
    """Return where etgraph itself lies; in a checkout that is outside of the site directories."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    return tuple(os.path.join(root, package) + os.sep for package in ("etgraph", "stages"))


@functools.lru_cache(maxsize=4096)
def library_of(filename: str) -> str | None:
    """Return "distribution version" for an installed file or one of Python, None for a user's file."""
    if filename.startswith("<frozen "):
        return _PYTHON
    if filename.startswith("<"):
        return None
    real = os.path.realpath(filename)
    if real.startswith(_own_directories()):
        return "etgraph itself"  # its code enters every key whole: see etgraph.owncode
    for directory in _site_directories():
        if real.startswith(directory):
            return _distribution(real[len(directory) :].split(os.sep)[0])
    if any(real.startswith(directory) for directory in _standard_directories()):
        return _PYTHON
    return None


@functools.lru_cache(maxsize=512)
def _distribution(entry: str) -> str | None:
    """Name the distribution that owns a top-level entry of a site directory; None for a stray file."""
    top = entry.split(".")[0]
    try:
        by_name = importlib.metadata.distribution(top)
        # Most have one of their own name; asking all that are installed takes as long as importing numpy.
        if top in (by_name.read_text("top_level.txt") or "").split() or _records(by_name, entry):
            return f"{by_name.metadata['Name']} {by_name.version}"
    except importlib.metadata.PackageNotFoundError:
        pass
    owners = _owners().get(top)
    if not owners:
        return None
    return ", ".join(f"{name} {installed_version(name)}" for name in sorted(set(owners)))


def _records(distribution: importlib.metadata.Distribution, entry: str) -> bool:
    """Whether a distribution that lists no top-level names has this file, or files in the folder of this name."""
    if distribution.read_text("top_level.txt") is not None:
        return False
    record = "\n" + (distribution.read_text("RECORD") or "")
    return f"\n{entry}/" in record or f"\n{entry}," in record


@functools.lru_cache(maxsize=1)
def _owners() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def library_of_module(name: str) -> str | None:
    """Return the library that a module belongs to; None for a user's module, or one that is not known."""
    module = sys.modules.get(name)
    filename = getattr(module, "__file__", None) if isinstance(module, types.ModuleType) else None
    if isinstance(filename, str):
        return library_of(filename)
    if name in sys.builtin_module_names:
        return _PYTHON
    if isinstance(module, types.ModuleType):
        for directory in list(getattr(module, "__path__", ())):  # a namespace package has no file
            return library_of(os.path.join(str(directory), "__init__.py"))
        frozen = getattr(getattr(module, "__spec__", None), "origin", None) in ("built-in", "frozen")
        if frozen:
            return _PYTHON
    parent = name.rpartition(".")[0]
    return library_of_module(parent) if parent and not isinstance(module, types.ModuleType) else None


def library_of_class(cls: type) -> str | None:
    """Return the library that defines a class; None for a user's class."""
    module = cls.__module__
    return library_of_module(module) if isinstance(module, str) else None


def library_of_code(code: types.CodeType, namespace: Mapping[str, object]) -> str | None:
    """Return the library that a function's code belongs to.

    `functools.wraps` copies `__module__`, so it is not asked; code without a file, as dataclasses generate
    it, belongs to the module in whose namespace it was made.
    """
    if not code.co_filename.startswith("<") or code.co_filename.startswith("<frozen "):
        return library_of(code.co_filename)
    filename = namespace.get("__file__")
    return library_of(filename) if isinstance(filename, str) else None
