"""What a plan is: the request that it answers, the steps, and the choices with their reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etgraph.artifact import Artifact, Kind, Provenance
from etgraph.declaration import Stage
from etgraph.recipes import Recipe

if TYPE_CHECKING:
    from etgraph.graph import StageGraph

__all__ = ["Choice", "Plan", "PlannedStep", "Request"]


@dataclass(frozen=True)
class PlannedStep:
    """One stage to run: its name, the kinds it goes between, its options, and why it is on the way.

    `for_debug` says that stack traces and the like enter the result of this step or of one after it.
    """

    stage: str
    consumes: Kind
    produces: Kind
    options: Mapping[str, Any] = field(repr=False)
    reason: str
    definition: Stage = field(repr=False, compare=False)
    for_debug: bool = field(default=False, repr=False)

    @property
    def provenance(self) -> Provenance:
        """What the artifact that comes out says about this step; options that are plain enough to be shown."""
        shown = {name: v for name, v in self.options.items() if isinstance(v, bool | int | float | str)}
        return Provenance(self.stage, self.produces, tuple((name, str(v)) for name, v in shown.items()))


@dataclass(frozen=True)
class Choice:
    """A decision of the planner: what was chosen, why, and what was not, each with its reason."""

    subject: str
    chosen: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Request:
    """What is asked of the planner.

    Args:
        start: the kind in hand.
        goal: the kind asked for.
        recipe: what is wanted on the way.
        path: `auto`, or the label of the way that must be taken.
        provenance: what the program in hand went through.
        passed: the kinds that it is known to have passed, its own included.
        supplied: options of the run itself, given to every stage that has an option of that name. Where the recipe
            gives the option too, the recipe's is taken, unless what is supplied has a method `unless_given`, which
            then decides.
        in_hand: returns the program in hand, for stages that must look at it to know whether they are needed.
    """

    start: Kind
    goal: Kind
    recipe: Recipe
    path: str = "auto"
    provenance: tuple[Provenance, ...] = ()
    passed: frozenset[str] = frozenset()
    supplied: Mapping[str, Any] = field(default_factory=dict)
    in_hand: Callable[[], Artifact] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Plan:
    """The chosen way, as data. `run` does exactly these steps."""

    request: Request
    steps: tuple[PlannedStep, ...]
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    graph: StageGraph = field(repr=False)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds on the way, the first and the last included."""
        between = [step.produces for step in self.steps if step.produces != step.consumes]
        return (self.request.start, *between)

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_plan

        return show_plan(self)

    def explain(self) -> str:
        """Say each step, each choice with its reason, and what was rejected."""
        from etgraph.draw import explain

        return explain(self)

    def to_mermaid(self) -> str:
        """Return the stage graph as a Mermaid flowchart, the chosen way drawn thick."""
        from etgraph.draw import to_mermaid

        return to_mermaid(self)

    def to_dot(self) -> str:
        """Return the stage graph in Graphviz's DOT, the chosen way drawn thick."""
        from etgraph.draw import to_dot

        return to_dot(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-able data."""
        from etgraph.draw import to_dict

        return to_dict(self)
