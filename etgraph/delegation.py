"""What backends would take of a program and why not the rest, as values; `etgraph.check` gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # For types only: a stage that builds these values loads without the runner.
    from etgraph.runner import Step

__all__ = ["REASONS", "BackendCheck", "DelegationCheck", "MethodCheck", "Operator", "Untaken"]

#: What the code of a reason means.
REASONS: Mapping[str, str] = {
    "unknown_operator": "the backend does not have the operator",
    "dtype": "a dtype that the backend does not compute in there",
    "dynamic_shape": "sizes that are known only when the program runs",
    "arguments": "an argument, a shape or a neighbour that the backend does not support",
    "branch": "inside a control-flow branch, where the partitioner does not look",
    "grouping": "the backend could take it, but it was left out when delegates were formed",
    "unexplained": "the partitioner refused it and gave no reason",
}


@dataclass(frozen=True)
class Operator:
    """One call of an operator in an edge or lowered program.

    Args:
        node: the node's name; inside a control-flow branch with the branch's name before it.
        operator: as `aten.convolution.default`.
        value: dtype and shape of what it gives, as `float32[1, 8, s0, 4]`.
        source_line: the line of the model that it comes from, where that is known.
    """

    node: str
    operator: str
    value: str
    source_line: str


@dataclass(frozen=True)
class Untaken:
    """Operators that a backend was offered and does not take, for one reason.

    Args:
        code: one of `REASONS`.
        reason: the reason in words.
        quoted: whether these are the partitioner's own words.
        operators: which operators, in graph order.
        helps: what would get them taken. Each was tried on this program, unless it begins with "perhaps".
    """

    code: str
    reason: str
    quoted: bool
    operators: tuple[Operator, ...]
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackendCheck:
    """What one backend would take of a method.

    Args:
        backend: the backend's id, or the name of an operator library.
        partitioner: the class of the partitioner; for an operator library the stage that rewrites.
        taken: the operators that it takes.
        delegates: in how many delegates; 0 for an operator library.
        untaken: the operators that it was offered and does not take, by reason, the most frequent first.
        rewritten: of an operator library, how often each of its operators is used.
    """

    backend: str
    partitioner: str
    taken: tuple[Operator, ...]
    delegates: int
    untaken: tuple[Untaken, ...]
    rewritten: Mapping[str, int] | None = None

    @property
    def offered(self) -> int:
        """How many operators it was asked about."""
        return len(self.taken) + sum(len(group.operators) for group in self.untaken)


@dataclass(frozen=True)
class MethodCheck:
    """What becomes of the operators of one method.

    Args:
        backends: in the order in which they are asked: each is offered what those before it left.
        left: the operators that no backend takes.
        without_kernel: of those left, the operators for which this host's runtime has no kernel in its libraries.
        taken_before: backend id to how many operators were in its delegates already, for a lowered program.
    """

    method: str
    backends: tuple[BackendCheck, ...]
    left: tuple[Operator, ...]
    without_kernel: tuple[Operator, ...] = ()
    taken_before: Mapping[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> int:
        """How many operators backends take, or have taken."""
        return sum(len(one.taken) for one in self.backends) + sum(self.taken_before.values())

    @property
    def operators(self) -> int:
        """How many operators there are."""
        return self.taken + len(self.left)


@dataclass(frozen=True)
class DelegationCheck:
    """What a recipe's backends would take of a program, and why not the rest. Nothing was compiled for a backend.

    Args:
        kind: the kind that the source is at.
        recipe: the recipe's name, or the target's.
        methods: method name to what becomes of it.
        steps: what was run, or reused, to come to the edge program.
        notes: what else should be known.
    """

    kind: str
    recipe: str
    methods: Mapping[str, MethodCheck]
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The part of all operators that backends take, from 0 to 1; 0 for a program without operators."""
        whole = sum(method.operators for method in self.methods.values())
        return sum(method.taken for method in self.methods.values()) / whole if whole else 0.0

    @property
    def delegation(self) -> dict[str, Any]:
        """The same counts as `Result.delegation` has after the run: method name to `backends` and `others`."""
        return {name: _counts(method) for name, method in self.methods.items()}

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold."""
        return {
            "kind": self.kind,
            "recipe": self.recipe,
            "share": self.share,
            "methods": {name: _method_json(method) for name, method in self.methods.items()},
            "steps": [{"stage": s.stage, "outcome": s.outcome, "seconds": s.seconds} for s in self.steps],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_check

        return show_check(self)

    def __str__(self) -> str:
        from etgraph.delegation_text import explain

        return explain(self)


def counted_operators(operators: Iterable[Operator]) -> dict[str, int]:
    """Count calls by operator, the most frequent first."""
    counts = Counter(one.operator for one in operators)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _counts(method: MethodCheck) -> dict[str, Any]:
    backends = [{"name": name, "delegates": 0, "nodes": nodes} for name, nodes in method.taken_before.items() if nodes]
    backends += [
        {"name": one.backend, "delegates": one.delegates, "nodes": len(one.taken)}
        for one in method.backends
        if one.taken
    ]
    return {"backends": backends, "others": len(method.left)}


def _method_json(method: MethodCheck) -> dict[str, Any]:
    return {
        "operators": method.operators,
        "taken": method.taken,
        "taken_before": dict(method.taken_before),
        "backends": [
            {
                "backend": one.backend,
                "partitioner": one.partitioner,
                "offered": one.offered,
                "delegates": one.delegates,
                "taken": _operators_json(one.taken),
                "rewritten": dict(one.rewritten) if one.rewritten is not None else None,
                "untaken": [
                    {
                        "code": group.code,
                        "reason": group.reason,
                        "quoted": group.quoted,
                        "operators": _operators_json(group.operators),
                        "helps": list(group.helps),
                    }
                    for group in one.untaken
                ],
            }
            for one in method.backends
        ],
        "left": _operators_json(method.left),
        "without_kernel": _operators_json(method.without_kernel),
    }


def _operators_json(operators: Sequence[Operator]) -> list[dict[str, str]]:
    return [{"node": o.node, "operator": o.operator, "value": o.value, "source_line": o.source_line} for o in operators]
