"""The commands that give a run again, and those that look further into it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

__all__ = ["commands_of"]


def commands_of(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return commands, each with what it does; of a run from Python the call that gives it again."""
    commands = []
    if document["command"]:
        commands.append({"does": "the same run", "text": document["command"]})
    else:
        commands.append({"does": "the same run, from Python", "text": _call(document)})
    for run in document["runs"]:
        resume = run["error"]["resume_command"] if run["error"] else ""
        if resume and resume != document["command"]:
            commands.append({"does": "go on after the failure", "text": resume})
        commands += [
            {"does": "what the file holds", "text": shlex.join(["etgraph", "inspect", one["path"]])}
            for one in run["files"][:1]
        ]
    return commands


def _call(document: Mapping[str, Any]) -> str:
    """Return the call of `etgraph.run` in words of Python; what the program was is known by its name alone."""
    runs = document["runs"]
    plans = [run["plan"] for run in runs if run["plan"]]
    targets = [run["target"] for run in runs if run["target"]]
    arguments = [f"target={targets!r}"] if targets else [f"recipe={run['recipe']!r}" for run in runs if run["recipe"]]
    if plans:
        arguments.append(f"to={plans[0]['goal']!r}")
        if plans[0]["path"] != "auto":
            arguments.append(f"path={plans[0]['path']!r}")
    named = f"  # source: {document['source']}" if document["source"] else ""
    return f"etgraph.run(source, example_inputs, {', '.join(arguments)}){named}"
