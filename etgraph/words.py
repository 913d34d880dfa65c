"""Text as people read it: numbers, wrapped lines and tables, the same on terminals, in reports and in notebooks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

__all__ = ["WIDTH", "counted", "percent", "reason_lines", "seconds", "size", "table", "wrapped"]

#: Columns of a terminal that everything must fit.
WIDTH = 80


def size(count: int) -> str:
    """Show a number of bytes in decimal units, as disks and app stores count."""
    from rich import filesize

    return filesize.decimal(count)


def seconds(value: float) -> str:
    """Show a duration, at a precision that means something."""
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `1,024 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(part: float, whole: float) -> str:
    """Return a share in percent; 100 % and 0 % only where it is all or nothing; empty where there is no whole."""
    if not whole:
        return ""
    share = 100 * part / whole
    if part == whole or not part:
        return f"{share:.0f} %"
    return f"{min(max(share, 0.1), 99.9):.{0 if 1 <= share <= 99 else 1}f} %"


def reason_lines(reason: str) -> list[str]:
    """Split what is said of a step into lines: one for each part of its key that changed."""
    return re.split(r"; (?!it was )|\n\s*", reason)


def wrapped(text: str, indent: int = 0, further: int | None = None, width: int = WIDTH) -> list[str]:
    """Break a text into lines of a terminal, at spaces alone: names and paths stay whole.

    Args:
        indent: spaces before the first line.
        further: spaces before the others; as many when not given.
        width: columns that a line may take.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent if further is None else further),
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Lay out rows of text in columns.

    Args:
        right: the columns that are set flush right, as numbers are.
    """
    every = [row for row in (header, *rows) if row]
    count = max(map(len, every), default=0)
    filled = [[*row, *[""] * (count - len(row))] for row in every]
    widths = [max(map(_cells, column)) for column in zip(*filled, strict=True)]

    def laid(cell: str, number: int) -> str:
        space = " " * (widths[number] - _cells(cell))
        return space + cell if number in right else cell + space

    return "\n".join("  ".join(map(laid, row, range(count))).rstrip() for row in filled)


def _cells(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
