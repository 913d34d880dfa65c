"""The command line of each script, and what it is asked: `python -m benchmarks.QUESTION [--only ..] [--rounds N]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Answer
from benchmarks.report import document, table


@dataclass(frozen=True)
class Ask:
    """What a script is asked.

    Args:
        quick: on small networks, to see that it works; figures of it are not for comparing.
        only: parts to measure, where a script has several; all when empty.
        rounds: how often, instead of the number that the script takes itself.
    """

    quick: bool = False
    only: tuple[str, ...] = ()
    rounds: int | None = None

    def times(self, usual: int, quick: int = 1) -> int:
        """Return how many rounds to go."""
        return self.rounds or (quick if self.quick else usual)

    def wants(self, part: str) -> bool:
        """Whether a part is to be measured: it, or something in its name, was named, or nothing was."""
        return not self.only or any(one in part for one in self.only)


class PartsFailed(Exception):
    """Some parts of a question failed.

    Args:
        answer: what was measured of the others.
        parts: the failed ones, each with what went wrong.
    """

    def __init__(self, answer: Answer, parts: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{part}: {why}" for part, why in parts.items()))
        self.answer = answer


Measure = Callable[[Ask], Answer]


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what every script takes."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="small networks, one round: to see that it works")
    made.add_argument("--only", action="append", default=[], metavar="PART", help="measure only parts with this name")
    made.add_argument("--rounds", type=positive, metavar="N", help="how often each way is measured")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    return made


def main(measure: Measure, description: str | None, arguments: Sequence[str] | None = None) -> None:
    """Ask one question, print its table, and write the JSON where that was asked for."""
    given = parser(description).parse_args(arguments)
    ask = Ask(given.quick, tuple(given.only), given.rounds)
    failure = None
    try:
        answer = measure(ask)
    except PartsFailed as error:
        answer, failure = error.answer, error
    if failure is None and not answer.figures:
        sys.exit(f"error: nothing here is called {', '.join(ask.only)}")
    print(table(answer.figures))
    if given.json:
        write_json(given.json, document(answer, quick=ask.quick))
    if failure is not None:
        sys.exit(f"failed: {failure}")


def write_json(path: Path, data: object) -> None:
    """Write a document, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(data, indent=1) + "\n")
    partial.replace(path)


def say(text: str) -> None:
    """Tell, on stderr, what is being measured."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder for the files of one question; it goes with the block."""
    with tempfile.TemporaryDirectory(prefix="etgraph-bench-") as folder:
        yield Path(folder)


def positive(text: str) -> int:
    """Read a whole number of at least 1 from a command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("give a whole number of at least 1")
    return value
