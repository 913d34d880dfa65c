"""The plan as a picture: a line through the kinds, what became of each step, and the ways that were refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etgraph.pictures import rendered
from etgraph.words import seconds, size

__all__ = ["draw_way"]

_TOP = 14
_KIND = 30
_STEP = 42
_REFUSED = 21
_LETTER = 7.5
_TEXT = 44


@dataclass
class _Picture:
    """What is to be drawn, with its place from the top in pixels."""

    kinds: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    height: int = _TOP


def draw_way(plan: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = (), failed: str = "") -> str:
    """Draw a plan, and what became of it.

    Args:
        plan: as `Plan.to_dict()` gives it.
        steps: what became of the first of its steps, as `dataclasses.asdict` gives a `Step`.
        failed: what the step after these failed with; empty where none failed.

    Returns:
        an `<svg>` element with a title and a description in words.
    """
    picture = _Picture()
    last = _add_kind(picture, plan["start"], reached=True)
    for number, step in enumerate(plan["steps"]):
        known = steps[number] if number < len(steps) else None
        state = _state(known, bool(failed) and number == len(steps), bool(steps or failed))
        _add_refused(picture, plan, step)
        picture.steps.append(
            {"y": picture.height + 14, "name": step["stage"], "state": state, "about": _about(known, state)}
        )
        picture.height += _STEP
        end = picture.height
        if step["consumes"] != step["produces"]:
            end = _add_kind(picture, step["produces"], reached=state in ("ran", "reused", "planned"))
        picture.lines.append({"from": last, "to": end, "state": state})
        last = end
    width = _width(picture)
    return rendered("way.svg.j2", picture=picture, width=width, words=_words(plan, picture), text=_TEXT)


def _add_kind(picture: _Picture, name: str, *, reached: bool) -> int:
    """Add a kind below all that there is, and return its place."""
    place = picture.height + 8
    picture.kinds.append({"y": place, "name": name, "reached": reached})
    picture.height += _KIND
    return place


def _add_refused(picture: _Picture, plan: Mapping[str, Any], step: Mapping[str, Any]) -> None:
    for choice in plan["choices"]:
        if choice["chosen"] == step["stage"] and choice["subject"] == f"from {step['consumes']}":
            for one in choice["rejected"]:
                label = f"{one['stage']} → {one['produces']}" if one["produces"] else one["stage"]
                picture.refused.append({"y": picture.height + 5, "label": label, "reason": one["reason"]})
                picture.height += _REFUSED


def _state(step: Mapping[str, Any] | None, failed: bool, started: bool) -> str:
    if step is not None:
        return str(step["outcome"])
    if failed:
        return "failed"
    return "unreached" if started else "planned"


def _about(step: Mapping[str, Any] | None, state: str) -> str:
    if step is None:
        return {"failed": "failed", "unreached": "not reached"}.get(state, "")
    parts = [str(step["outcome"]), seconds(step["seconds"])]
    if step["peak_bytes"]:
        parts.append(f"peak {size(step['peak_bytes'])}")
    if step["built_seconds"]:
        parts.append(f"built in {seconds(step['built_seconds'])}")
    return " · ".join(parts)


def _width(picture: _Picture) -> int:
    texts = [
        *(one["name"] for one in picture.kinds),
        *(text for one in picture.steps for text in (one["name"], one["about"])),
        *(f"not {one['label']}" for one in picture.refused),
    ]
    return max(300, int(max(map(len, texts)) * _LETTER) + _TEXT + 24)


def _words(plan: Mapping[str, Any], picture: _Picture) -> str:
    done = "; ".join(
        f"{number}. {one['name']}: {one['about'] or 'planned'}" for number, one in enumerate(picture.steps, 1)
    )
    return f"The way {' → '.join(plan['kinds'])}. {done or 'Nothing to do'}."
