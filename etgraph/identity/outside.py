"""Library names that bring something in from outside: files, the environment, the clock, chance.

Code that uses them can give another result though nothing that a description holds has changed. The list
cannot be complete; it holds what people use. `id` and `hash` are not in it: they serve as keys, and
dataclasses use them.
"""

from __future__ import annotations

__all__ = ["why_outside"]

#: A whole module, with what is below it.
_MODULES = {
    "importlib": "imports by a name that is made at run time",
    "io": "reads or writes files",
    "os": "asks the operating system",
    "pickle": "loads objects that are not known before",
    "random": "draws random numbers from a shared generator",
    "secrets": "draws random numbers",
    "shelve": "reads files",
    "shutil": "reads or writes files",
    "glob": "lists files",
    "socket": "talks to the network",
    "subprocess": "runs other programs",
    "tempfile": "writes files",
    "time": "reads the clock",
    "urllib": "talks to the network",
    "requests": "talks to the network",
    "uuid": "draws random numbers",
    "pathlib": "may read files",
    "numpy.random": "draws random numbers from a shared generator",
    "torch.hub": "loads files",
    "pkgutil": "reads files",
    "runpy": "runs other files",
    "ctypes": "reaches memory outside of Python",
    "inspect": "looks at code and frames",
}

_NAMES = {
    "builtins.open": "reads or writes files",
    "builtins.input": "asks the user",
    "builtins.exec": "runs code that is made at run time",
    "builtins.eval": "runs code that is made at run time",
    "builtins.compile": "makes code at run time",
    "builtins.globals": "reaches any global by a name that is made at run time",
    "builtins.__import__": "imports by a name that is made at run time",
    "sys.modules": "reaches any module by a name that is made at run time",
    "sys.argv": "reads the command line",
    "sys.path": "depends on where things are installed",
    "sys._getframe": "looks at the caller",
    "datetime.datetime.now": "reads the clock",
    "datetime.datetime.today": "reads the clock",
    "datetime.datetime.utcnow": "reads the clock",
    "datetime.date.today": "reads the clock",
    "json.load": "reads files",
    "numpy.load": "reads files",
    "numpy.loadtxt": "reads files",
    "numpy.genfromtxt": "reads files",
    "numpy.fromfile": "reads files",
    "numpy.memmap": "reads files",
    "torch.load": "reads files",
    "torch.from_file": "reads files",
    "torch.jit.load": "reads files",
    "torch.export.load": "reads files",
}

#: Members of the modules above that bring nothing in, or nothing that a result is made of.
_HARMLESS = frozenset(
    {
        *(f"os.path.{n}" for n in ("join", "basename", "dirname", "split", "splitext", "normpath", "sep")),
        *(f"posixpath.{n}" for n in ("join", "basename", "dirname", "split", "splitext", "normpath", "sep")),
        *(f"time.{n}" for n in ("perf_counter", "perf_counter_ns", "monotonic", "process_time", "sleep")),
        *(f"pathlib.{n}" for n in ("PurePath", "PurePosixPath", "PureWindowsPath")),
        *(f"io.{n}" for n in ("BytesIO", "StringIO")),
        "os.PathLike",
        "os.sep",
        "random.Random",
    }
)

_ALIASES = {
    "posix": "os",
    "nt": "os",
    "posixpath": "os.path",
    "ntpath": "os.path",
    "_io": "io",
    "_random": "random",
}


def why_outside(dotted: str) -> str:
    """Say what a library name brings in from outside, or nothing if it is not known to.

    Args:
        dotted: `module.name` as `time.time`; a module alone is judged by what it mostly holds.
    """
    head, _, rest = dotted.partition(".")
    dotted = _ALIASES.get(head, head) + (f".{rest}" if rest else "")
    if dotted in _HARMLESS:
        return ""
    if dotted in _NAMES:
        return _NAMES[dotted]
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        why = _MODULES.get(".".join(parts[:n]))
        if why:
            return why
    return ""
