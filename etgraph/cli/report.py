"""`--report FILE`: a report of a run, also of one that failed, and never instead of its program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etgraph.cli.output import Output, command_line
from etgraph.errors import EtgraphError

if TYPE_CHECKING:
    from etgraph.many import Results
    from etgraph.report import Told
    from etgraph.result import Result

__all__ = ["ReportFile"]


class ReportFile:
    """The file that a report goes to; does nothing where none was asked for.

    Args:
        given: `--report`.
        source: SOURCE, as its user wrote it.

    Raises:
        UsageError: it cannot be written there, which is known before any work.
    """

    def __init__(self, given: str | None, source: str) -> None:
        self.path: Path | None = None
        self.source = source
        if given is not None:
            from etgraph.report import check_path

            self.path = check_path(given)

    def told(self, output: Output | None = None, **more: Any) -> Told:
        """Return what the command line knows of a run; the warnings of `output` are part of it."""
        from etgraph.report import Told

        warnings = tuple(output.warnings) if output is not None else ()
        return Told(source=self.source, command=command_line(), warnings=warnings, **more)

    def told_of(self, output: Output | None, result: Result, arguments: Mapping[str, Any], **more: Any) -> Told:
        """Return what the command line knows of a run, and why backends did not take what is left of its program.

        Args:
            arguments: those that `etgraph.run` was given, its source as `source`.
        """
        if not _something_is_left(result):
            return self.told(output, **more)
        import etgraph

        unused = ("to", "path", "check_cache", "refresh")
        try:
            given = {name: value for name, value in arguments.items() if name not in unused}
            check = etgraph.check(**given, elsewhere=False)
        except Exception as error:
            why = error.problem if isinstance(error, EtgraphError) else f"{type(error).__name__}: {error}"
            return self.told(output, problems=[f"why backends left operators could not be told: {why}"], **more)
        return self.told(output, check=check, **more)

    def write(self, output: Output, outcome: Result | Results | EtgraphError, told: Told | Mapping[str, Told]) -> bool:
        """Write it after a run, whose program is in its file by then; a warning and False where that fails."""
        from etgraph.report import write_report

        assert self.path is not None
        try:
            write_report(outcome, self.path, told)
        except EtgraphError as error:
            output.warn(f"the report could not be written: {error.problem}")
            return False
        output.note(f"report in {self.path}")
        return True

    def write_failure(self, output: Output, error: EtgraphError) -> None:
        """Write it for a run that failed; where that fails too, the failure of the run is what is told."""
        if self.path is None or error.plan is None:
            return
        self.write(output, error, self.told(output))


def _something_is_left(result: Result) -> bool:
    """Whether a lowered program has operators that none of its recipe's backends took."""
    lowered = str(result.artifact.kind) in ("lowered", "executorch")
    left = lowered and any(found["others"] for found in result.delegation.values())
    return left and bool(result.plan.request.recipe.backends)
