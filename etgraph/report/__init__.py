"""Reports of runs: one file that a person reads, as HTML or Markdown, or that a program reads, as JSON.

All three are made of one document of plain data (`etgraph.report.document`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from etgraph.errors import UsageError
from etgraph.files import check_writable, replace_file
from etgraph.pictures import rendered
from etgraph.plain_data import plain
from etgraph.report.document import Told, document_of
from etgraph.report.page import page_of

__all__ = ["Told", "check_path", "document_of", "write_document", "write_report"]


def write_report(outcome: Any, path: str | os.PathLike[str], told: Told | Mapping[str, Told] | None = None) -> Path:
    """Write what became of a run to a file, whole or not at all.

    Args:
        outcome: a `Result`, the `Results` of several targets, or the error that a run ended in.
        path: a file whose suffix says the form: `.html`, `.md` or `.json`.
        told: what is known besides, such as a check of the numbers; for several targets by the name of each, and
            under the empty name what is about all of them.

    Raises:
        UsageError: the suffix is none of these, or the folder is not there.
        ArtifactFileError: the file could not be written.
    """
    file = check_path(path)
    write_document(document_of(outcome, told), file)
    return file


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return the file that a report is to be written to; refuse, before any work, one that cannot be."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"a report cannot be written to a {type(path).__name__}", hint="Give a path: 'report.html'.")
    file = Path(path)
    if file.suffix.lower() not in _FORMS:
        raise UsageError(
            f"a report cannot be written to {file}: {file.suffix or 'no suffix'} is not one of {', '.join(_FORMS)}",
            hint=f"Name it {file.with_suffix('.html')}.",
        )
    check_writable(file, f"report {file}")
    return file


def write_document(document: Mapping[str, Any], file: Path) -> None:
    """Write a document in the form that the file's suffix says."""
    content = _FORMS[file.suffix.lower()](document).encode("utf-8", "replace")

    def fill(to: IO[bytes]) -> None:
        to.write(content)

    replace_file(file, fill)


def _html(document: Mapping[str, Any]) -> str:
    return rendered("report.html.j2", **page_of(document))


def _markdown(document: Mapping[str, Any]) -> str:
    return rendered("report.md.j2", **page_of(document)).rstrip() + "\n"


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"


_FORMS: dict[str, Callable[[Mapping[str, Any]], str]] = {".html": _html, ".md": _markdown, ".json": _json}
