"""`--etrecord` and `--bundled`: files that go with a `.pte`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from etgraph.cli.noise import runtime_log_hidden
from etgraph.cli.output import Output
from etgraph.errors import EtgraphError
from etgraph.records import check_path

if TYPE_CHECKING:
    from etgraph.result import Result

__all__ = ["NOTHING", "Beside"]


@dataclass(frozen=True)
class Beside:
    """The files that were asked for, if any."""

    etrecord: Path | None = None
    bundled: Path | None = None

    @classmethod
    def read(cls, etrecord: str | None, bundled: str | None, to: str) -> Beside:
        """Check the paths before any work."""
        return cls(check_path("--etrecord", etrecord, to), check_path("--bundled", bundled, to))

    def files(self) -> dict[str, Path]:
        """Return the files by what they are."""
        named = {"etrecord": self.etrecord, "bundled": self.bundled}
        return {name: path for name, path in named.items() if path is not None}

    def write(self, output: Output, result: Result) -> dict[str, Path]:
        """Write them; return what was written. What was not is a warning: the program itself is in its file."""
        written = {}
        with runtime_log_hidden(verbose=output.verbose):
            for name, path in self.files().items():
                try:
                    result.save_etrecord(path) if name == "etrecord" else result.save_bundled(path)
                    written[name] = path
                except EtgraphError as error:
                    output.warn(f"{path} was not written: {error}")
        return written


#: No file besides the program.
NOTHING = Beside()
