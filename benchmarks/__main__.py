"""Ask every question and print one table; `python -m benchmarks small` to see quickly that they work."""

from __future__ import annotations

import importlib

from benchmarks.common import Figure, show

#: Modules of this package with a function `measure` that returns figures, quick ones first.
QUESTIONS = ("planner", "startup", "warm", "iterate")


def main() -> None:
    """Run them one after the other: two at a time would measure each other."""
    figures: list[Figure] = []
    for name in QUESTIONS:
        print(f"-- {name}", flush=True)
        figures += importlib.import_module(f"benchmarks.{name}").measure()
    show(figures)


if __name__ == "__main__":
    main()
