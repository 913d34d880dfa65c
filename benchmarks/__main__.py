"""Ask every question, print one table, write JSON and plots; or compare two such files.

python -m benchmarks [--quick] [--only QUESTION [--part PART]] [--out FOLDER]
python -m benchmarks compare OLD.json NEW.json
python -m benchmarks table FILE.json [--markdown]
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.asking import Ask, PartsFailed, positive, say, write_json
from benchmarks.figures import Answer
from benchmarks.report import comparison, completed, document, figures_of, head, into_readme, markdown, table

#: Modules of this package with a function `measure`, quick ones first.
QUESTIONS = ("planner", "startup", "fingerprint", "store", "warm", "iterate", "scale", "cold")
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Do what the command line says; 0 done, 1 a figure lost what was wanted or a question failed, 2 wrong use."""
    if sys.argv[1:2] == ["compare"]:
        return _compare(sys.argv[2:])
    if sys.argv[1:2] == ["table"]:
        return _show(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small networks, one round: to see that all work")
    parser.add_argument(
        "--only",
        action="append",
        choices=QUESTIONS,
        help="ask this question, and keep what was measured of others on the same day; can be repeated",
    )
    parser.add_argument(
        "--part",
        action="append",
        default=[],
        help="with one --only: measure this part of it, and keep what was measured of other parts",
    )
    parser.add_argument(
        "--rounds", type=positive, help="how often each way is measured, instead of what a script takes"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="where JSON and plots go")
    given = parser.parse_args()
    if given.part and len(given.only or ()) != 1:
        parser.error("--part goes with one --only")
    return _ask_all(given)


def _ask_all(given: argparse.Namespace) -> int:
    """Ask one question after the other: two at a time would measure each other."""
    answer, failed, began = Answer(), [], time.perf_counter()
    stem = time.strftime("%Y-%m-%d") + ("-quick" if given.quick else "")
    path = given.out / f"{stem}.json"
    before = _read(path) if given.only and path.exists() else None
    data: dict[str, Any] = {}
    for number, name in enumerate(asked := given.only or QUESTIONS, 1):
        say(f"-- {name}, after {(time.perf_counter() - began) / 60:.1f} min")
        ask = Ask(given.quick, tuple(given.part), given.rounds)
        try:
            answer.add(importlib.import_module(f"benchmarks.{name}").measure(ask))
        except PartsFailed as error:
            answer.add(error.answer)
            failed.append(name)
            say(f"failed: {error}")
        except Exception:
            failed.append(name)
            say(traceback.format_exc())
        data = document(answer, quick=given.quick, failed=failed)
        if before is not None:
            data = completed(data, before, asked[:number], in_part=bool(given.part))
        # After each: what was measured is kept if the next one is interrupted.
        write_json(path, data)
    print(f"{head(data)}\n\n{table(figures_of(data))}\n\nwrote {path}")
    try:
        for drawn in plots.draw(data, given.out, stem):
            print(f"wrote {drawn}")
    except ImportError:
        print(plots.MISSING)
    if failed:
        print(f"failed: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


def _compare(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare", description="What changed, figure by figure.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args(arguments)
    try:
        text, lost = comparison(_read(given.old), _read(given.new))
    except ValueError as error:
        print(f"error: these cannot be compared: {error}", file=sys.stderr)
        return 2
    print(text)
    return 1 if lost else 0


def _show(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks table", description="The table of an earlier run.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--markdown", action="store_true", help="as a table in Markdown")
    parser.add_argument("--readme", type=Path, help="write the headlines between the marks of this file")
    given = parser.parse_args(arguments)
    try:
        data = _read(given.file)
        figures = figures_of(data)
        if given.readme:
            given.readme.write_text(into_readme(given.readme.read_text(), data))
            return 0
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(markdown(figures) if given.markdown else f"{head(data)}\n\n{table(figures)}")
    return 0


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} is no JSON: {error}") from None
    figures_of(data)
    return data


if __name__ == "__main__":
    sys.exit(main())
