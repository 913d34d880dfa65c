"""Numbers as people read them, the same in tables, reports and notebooks."""

from __future__ import annotations

import re

__all__ = ["counted", "percent", "reason_lines", "seconds", "size"]


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
