"""Pictures as inline SVG, and pages from templates: plain data in, text out. Nothing is loaded from a network.

Pictures are as wide as the page that they are in: horizontal places are in percent, vertical ones and letters in
pixels, so that letters keep their size on a telephone. A label is shown where the page is wide enough for it
(`need-N` in style.css), and whatever is drawn stands in a table too.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from etgraph import words

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["NEEDS", "need", "rendered"]

#: The widths of a page, in pixels, from which labels are shown.
NEEDS = (240, 320, 420, 560, 720, 960)
#: Width of a letter of a label, in pixels; labels are set in 12 pixels.
_LETTER = 7.3


def rendered(template: str, **data: Any) -> str:
    """Fill in a template of `etgraph/templates`; in HTML and SVG whatever is put in is escaped."""
    return _environment().get_template(template).render(**data)


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("etgraph", "templates"),
        autoescape=lambda name: name is None or not name.endswith((".md.j2", ".css")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters.update(
        size=words.size, seconds=words.seconds, counted=words.counted, cell=_cell, error=_error, decibel=_decibel
    )
    environment.globals["percent"] = words.percent
    return environment


def need(text: str, fraction: float) -> str:
    """Return the class of a label that is shown where its part of a page is wide enough; `need-none` for nowhere."""
    wanted = (len(text) * _LETTER + 12) / fraction if fraction else math.inf
    return next((f"need-{width}" for width in NEEDS if wanted <= width), "need-none")


def _cell(value: object) -> str:
    """Make text safe in a table of Markdown: no new cell, no new line, no tag, no emphasis."""
    text = " ".join(str(value).split())
    for mark, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\\", "&#92;"), ("|", "&#124;")):
        text = text.replace(mark, safe)
    for mark in "`*[]":
        text = text.replace(mark, f"\\{mark}")
    return text


def _error(value: float | str) -> str:
    """Show an error; JSON has infinities and NaN as text."""
    return f"{float(value):.1e}"


def _decibel(value: float | str) -> str:
    return "exact" if math.isinf(float(value)) and float(value) > 0 else f"{float(value):.1f} dB"
