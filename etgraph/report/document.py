"""What a report says, as plain data that JSON can hold."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from etgraph.errors import EtgraphError, StageError, UsageError
from etgraph.installed import installed_version
from etgraph.planned import Plan, PlannedStep
from etgraph.recipes import Deferred
from etgraph.registry import registry

if TYPE_CHECKING:
    from etgraph.result import Result

__all__ = ["FORMAT", "Told", "document_of", "options_of"]

#: The form of a document; a number higher where something means something else than before.
FORMAT = "etgraph report 1"

#: Distributions whose versions a report gives, where they are installed.
_DISTRIBUTIONS = ("etgraph", "torch", "executorch", "torchao", "coremltools", "openvino", "nncf", "ethos-u-vela")


@dataclass(frozen=True)
class Told:
    """What a report says besides what a run itself knows. All of it is optional.

    Args:
        source: what the run began with, as its user would call it.
        command: the command that was given, as a shell takes it.
        files: path to size in bytes of what was written.
        verification: the check of the outputs, a `Verification` or data of the form that `etgraph run --json` gives.
        numerics: a comparison of every kind on the way, by its `to_json()`.
        check: what backends did not take and why, by its `to_json()`.
        warnings: what was warned of.
        problems: what was to be in the report and could not be had, each in a sentence.
    """

    source: str = ""
    command: str = ""
    files: Mapping[str, int] = field(default_factory=dict)
    verification: Any = None
    numerics: Any = None
    check: Any = None
    warnings: Sequence[str] = ()
    problems: Sequence[str] = ()


def document_of(outcome: Any, told: Told | Mapping[str, Told] | None = None) -> dict[str, Any]:
    """Return all that is known of a run, or of one for several targets.

    Args:
        told: for several targets by the name of each, and under the empty name what is about all of them.
    """
    outcomes = getattr(outcome, "outcomes", None)
    if outcomes is None:
        outcomes = {"": outcome}
    known = told if isinstance(told, Mapping) else dict.fromkeys(outcomes, told)
    runs = [_run(name, one, known.get(name) or Told()) for name, one in outcomes.items()]
    general = known.get("") or Told()
    return {
        "format": FORMAT,
        "created": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "source": general.source or runs[0]["source"],
        "command": general.command,
        "warnings": list(general.warnings) if len(runs) > 1 else [],
        "status": next((run["status"] for run in runs if run["status"] != "done"), "done"),
        "versions": _versions(),
        "host": {"system": platform.platform(), "machine": platform.machine(), "python": platform.python_version()},
        "runs": runs,
    }


def _versions() -> dict[str, str]:
    found = {name: installed_version(name) for name in _DISTRIBUTIONS}
    return {name: version for name, version in found.items() if version is not None}


def _run(target: str, outcome: Result | EtgraphError, told: Told) -> dict[str, Any]:
    if isinstance(outcome, EtgraphError):
        return _of_failure(target, outcome, told)
    if not hasattr(outcome, "artifact") or not hasattr(outcome, "steps"):
        raise UsageError(
            f"a report is about a run, and a {type(outcome).__name__} was given",
            hint="Give a Result, the Results of several targets, or the error that a run ended in.",
        )
    verification = _verification(told.verification)
    problems = list(told.problems)
    return {
        **_common(target, outcome.plan, outcome.steps, told),
        "source": told.source or outcome.held.label,
        "status": "wrong" if verification is not None and verification["passed"] is False else "done",
        "error": None,
        "kind": str(outcome.artifact.kind),
        "methods": list(outcome.artifact.methods),
        "delegation": _asked("delegation", outcome.artifact, problems),
        "sizes": _asked("sizes", outcome.artifact, problems),
        "verification": verification,
        "cache_problems": list(outcome.cache_problems),
        "problems": problems,
    }


def _asked(service: str, artifact: Any, problems: list[str]) -> Any:
    """Ask a plugin about an artifact; what it cannot say is a line of the report, not its end."""
    ask = registry.services.get(service)
    if ask is None:
        return None
    try:
        return ask(artifact)
    except Exception as error:
        problems.append(f"the {service} could not be told: {type(error).__name__}: {error}")
        return None


def _of_failure(target: str, error: EtgraphError, told: Told) -> dict[str, Any]:
    made: Plan | None = error.plan
    stopped = made.steps[len(error.steps)].stage if made is not None and len(error.steps) < len(made.steps) else ""
    address = ("stage", "method", "node", "source_line")
    return {
        **_common(target, made, error.steps, told),
        "source": told.source,
        "status": "failed",
        "error": {
            "type": type(error).__name__,
            "problem": error.problem,
            "hint": error.hint,
            **{name: getattr(error, name) if isinstance(error, StageError) else "" for name in address},
            "stage": error.stage if isinstance(error, StageError) else stopped,
            "resume_command": getattr(error, "resume_command", ""),
        },
        "kind": "",
        "methods": [],
        "delegation": None,
        "sizes": None,
        "verification": None,
        "cache_problems": [],
        "problems": list(told.problems),
    }


def _common(target: str, made: Plan | None, steps: Sequence[Any], told: Told) -> dict[str, Any]:
    return {
        "target": target,
        "recipe": made.request.recipe.name if made is not None else "",
        "plan": made.to_dict() if made is not None else None,
        "steps": [asdict(step) for step in steps],
        "options": [one for step in made.steps for one in options_of(step)] if made is not None else [],
        "files": [{"path": path, "bytes": count} for path, count in told.files.items()],
        "check": _data(told.check),
        "numerics": _data(told.numerics),
        "warnings": list(told.warnings),
    }


def _data(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else value


def options_of(step: PlannedStep) -> list[dict[str, str]]:
    """Return the options of a step, each in a line."""
    return [
        {"stage": step.stage, "option": name, "value": _option_text(name, value)}
        for name, value in sorted(step.options.items())
    ]


def _option_text(name: str, value: Any) -> str:
    """Show an option in one line; one that has no description by its type."""
    from etgraph.keys import describe_option

    if isinstance(value, Deferred):
        # Made once more to be described where that is cheap: where stages ran, their libraries are loaded.
        return _option_text(name, value.make()) if "executorch.exir" in sys.modules else repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    try:
        return describe_option(name, value).text
    except Exception:
        return f"a {type(value).__qualname__}"


def _verification(found: Any) -> dict[str, Any] | None:
    """Return a check of the outputs as data; one that nobody judged has `passed` None."""
    if found is None or "done" in found:
        return None if found is None else dict(found)
    methods = {
        method: {
            "outputs": [
                {"max_absolute_error": a, "max_relative_error": r, "snr": ratio, "passed": None}
                for a, r, ratio in zip(errors, found.relative[method], found.snr[method], strict=True)
            ],
            "samples": found.samples[method],
        }
        for method, errors in found.items()
    }
    return {"done": True, "passed": None, "tolerance": None, "methods": methods, "notes": list(found.notes)}
