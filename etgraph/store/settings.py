"""Where the cache lies and how large it may grow: the argument, else the environment, else a default."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from etgraph.errors import UsageError

__all__ = ["asked_limit", "cache_directory", "default_limit", "parse_size"]

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {
        _letter: 1000**_power,
        f"{_letter}b": 1000**_power,
        f"{_letter}i": 1024**_power,
        f"{_letter}ib": 1024**_power,
    }
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)

#: The default limit in bytes, where the disk has room for it.
LARGEST_DEFAULT = 20 * 1024**3


def cache_directory(given: str | os.PathLike[str] | None) -> Path:
    """The absolute path of the cache: `given`, else `ETGRAPH_CACHE_DIR`, else the user's cache directory.

    Raises:
        UsageError: `given` is neither a path nor None.
    """
    if given is None:
        given = os.environ.get("ETGRAPH_CACHE_DIR") or None
    if given is None:
        import platformdirs

        given = platformdirs.user_cache_dir("etgraph", appauthor=False)
    if not isinstance(given, (str, os.PathLike)) or not isinstance(os.fspath(given), str):
        raise UsageError(
            f"Cache: the directory is a {type(given).__name__}, and a path (str or os.PathLike) was wanted"
        )
    if not os.fspath(given) or "\0" in os.fspath(given):
        raise UsageError(f"Cache: {given!r} is not a path of a directory")
    return Path(os.path.abspath(os.path.expanduser(given)))


def asked_limit(given: int | str | None) -> int | None:
    """The limit in bytes that was asked for by argument or by `ETGRAPH_CACHE_SIZE`; None where neither is.

    Raises:
        UsageError: the value is not a size; the message names where it came from.
    """
    if given is not None:
        return parse_size(given, "Cache: size_limit")
    named = os.environ.get("ETGRAPH_CACHE_SIZE")
    return parse_size(named, "environment variable ETGRAPH_CACHE_SIZE") if named else None


def parse_size(value: int | str, origin: str) -> int:
    """Read a size in bytes: a whole number, or text such as "500MiB" (1024), "10GB" or "10G" (1000).

    Args:
        value: what was given.
        origin: who gave it, for the message.

    Raises:
        UsageError: it is not a size, or is negative.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip().lower())
        if match and match[2] in _UNITS:
            return int(float(match[1]) * _UNITS[match[2]]) if "." in match[1] else int(match[1]) * _UNITS[match[2]]
    raise UsageError(
        f"{origin} is {value!r}, and a size in bytes was wanted",
        hint='Give a whole number of bytes, or a number with a unit: "10GB", "500MiB".',
    )


def default_limit(directory: Path, used: int) -> int:
    """A tenth of the space that the disk of `directory` has for the cache, at most 20 GiB, in bytes.

    Args:
        directory: the cache; need not exist yet.
        used: what the cache takes now in bytes, which counts as free.
    """
    for place in (directory, *directory.parents):
        try:
            return min(LARGEST_DEFAULT, (shutil.disk_usage(place).free + used) // 10)
        except OSError:
            continue
    return LARGEST_DEFAULT
