"""A line per step with a spinner and its seconds, on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etgraph.cli.output import Output
    from etgraph.runner import Event

__all__ = ["Progress"]


def is_terminal() -> bool:
    """Whether somebody may be looking at stderr."""
    return sys.stderr.isatty()


class Progress:
    """An `on_event` callback of `etgraph.run` that shows the steps while the block runs."""

    def __init__(self, output: Output) -> None:
        self._shown = not output.as_json and not output.quiet and is_terminal()
        self._bars: Any = None
        self._current: Any = None

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import Progress as Bars
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bars = Bars(
                SpinnerColumn(finished_text="[green]*[/]"),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._bars.start()
        return self

    def __call__(self, event: Event) -> None:
        """Show that a step began, how far it has come, or that it ended."""
        if self._bars is None:
            return
        text = f"{event.index + 1}/{event.total} {event.planned.stage}"
        text = f"{event.target}: {text}" if event.target else text
        if event.name == "step_started":
            self._current = self._bars.add_task(text, total=1)
        elif event.name == "step_progress":
            of = f"/{event.of}" if event.of is not None else ""
            self._bars.update(self._current, description=f"{text} ({event.done}{of})")
        elif event.name == "step_finished" and event.step is not None:
            self._bars.update(self._current, completed=1, description=f"{text} ({event.step.outcome})")
            self._current = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is None:
            return
        if self._current is not None:
            task = next(task for task in self._bars.tasks if task.id == self._current)
            self._bars.update(self._current, description=f"{task.description} (stopped)")
        # What a run did is printed as a table when it is done; after a failure these lines are all there is.
        self._bars.live.transient = kind is None
        self._bars.stop()
