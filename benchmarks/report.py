"""Figures as a table and as JSON, and two sets of them side by side."""

from __future__ import annotations

import datetime
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from benchmarks.figures import Answer, Figure
from benchmarks.machine import in_words, load, machine, versions

#: Of the form of the JSON; raised when an older reader would misread it.
SCHEMA = 1
_WIDTH = 56
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"
_HEADLINES = (
    r"cold: .*, etgraph / by hand: (wall|processor time|peak memory)$",
    r"cold: .* empty cache / no cache: processor time$",
    r"cold: .*, executorch.export / by hand: (wall|peak memory)$",
    r"warm: .*, empty cache / cache off: wall$",
    r"warm: .*, (cold / )?unchanged, into (the same|a new) file: wall$",
    r"warm: .*, unchanged, into the same file: processor time$",
    r"warm: .*, unchanged, etgraph / digest and copy by hand: wall$",
    r"iterate: .* changed (nothing|a comment.*|the memory plan|one weight|one line.*): etgraph / cache off: wall$",
    r"iterate: .* changed (the memory plan|an option.*|one weight): etgraph / by hand: wall$",
    r"store: .* in the cache / weights$",
    r"store: .*, (save|load): exir.serde / etgraph, (wall|peak memory)$",
    r"fingerprint: .* / blake3 alone, all threads: processor time$",
    r"planner: a chain of (1,000|10,000) stages$",
    r"scale: time by (layers|weights), .*power",
    r"startup: etgraph (--help|list stages)$",
)


def document(answer: Answer, *, quick: bool, failed: Sequence[str] = ()) -> dict[str, Any]:
    """Return everything that was measured, with when, where and with which versions."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "quick": quick,
        "machine": machine(),
        "load": load(),
        "versions": versions(),
        "failed": list(failed),
        "figures": [figure.as_json() for figure in answer.figures],
        "series": [series.as_json() for series in answer.series],
    }


def completed(
    new: Mapping[str, Any], old: Mapping[str, Any], asked: Collection[str], *, in_part: bool = False
) -> dict[str, Any]:
    """Return a document of some questions with what an older one, taken alike, says of the others.

    Alike is: on the same machine, with the same versions, of networks of the same size. From another one nothing is
    taken over. `earlier` says when each answer that was taken over was measured.

    Args:
        asked: the questions that the new one answers.
        in_part: it answers parts of them, so that older figures stay where there is no new one.
    """
    if any(old.get(name) != new[name] for name in ("schema", "quick", "machine", "versions")):
        return dict(new)
    fresh = {(one["question"], one.get("what", one.get("title"))) for one in (*new["figures"], *new["series"])}

    def stays(one: Mapping[str, Any]) -> bool:
        if one["question"] not in asked:
            return True
        return in_part and (one["question"], one.get("what", one.get("title"))) not in fresh

    others = {name: [one for one in old[name] if stays(one)] for name in ("figures", "series")}
    dates = {one["question"]: old["date"] for one in others["figures"]} | old.get("earlier", {})
    return {
        **new,
        # A question that failed in one part has not been answered by another part.
        "failed": list(dict.fromkeys([*(n for n in old["failed"] if in_part or n not in asked), *new["failed"]])),
        "earlier": {question: date for question, date in dates.items() if in_part or question not in asked},
        "figures": [*others["figures"], *new["figures"]],
        "series": [*others["series"], *new["series"]],
    }


def figures_of(data: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a document.

    Raises:
        ValueError: it is none, or one of another form.
    """
    if not isinstance(data, Mapping) or "figures" not in data:
        raise ValueError("it holds no figures of these benchmarks")
    if data.get("schema") != SCHEMA:
        raise ValueError(f"it has the form {data.get('schema')}, and this program reads the form {SCHEMA}")
    return [Figure.from_json(one) for one in data["figures"]]


def table(figures: Sequence[Figure]) -> str:
    """Return figures as lines of text: what, median, spread, what is wanted and whether it is so; notes below each."""
    lines = []
    for question in dict.fromkeys(figure.question for figure in figures):
        lines += ["", f"{question}"]
        for figure in (one for one in figures if one.question == question):
            lines += _rows(figure)
    return "\n".join(lines[1:])


def _rows(figure: Figure) -> list[str]:
    words = textwrap.wrap(figure.what, _WIDTH)
    low, high = figure.spread
    spread = f"{number(low)} to {number(high)}" if len(figure.values) > 1 else ""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    first = (
        f"  {words[0]:<{_WIDTH}} {number(figure.median):>8} {figure.unit:<5} {spread:<17} {figure.wanted:<8} {verdict}"
    )
    return [first.rstrip(), *(f"    {word}" for word in words[1:]), *textwrap.wrap(
        figure.note, 100, initial_indent="    ", subsequent_indent="    "
    )]  # fmt: skip


def number(value: float) -> str:
    """Return a number with three digits that mean something."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.1e}"
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:.{digits}f}"


def head(data: Mapping[str, Any]) -> str:
    """Say when, where and with what figures were taken."""
    tools = ", ".join(f"{name} {version}" for name, version in data["versions"].items() if version != "absent")
    busy = f"; load at the end {data['load']}" if data.get("load") is not None else ""
    small = "\nquick: small networks, one round; not for comparing" if data["quick"] else ""
    earlier = "".join(f"\n{question}: measured {date}" for question, date in data.get("earlier", {}).items())
    return f"{data['date']}: {in_words(data['machine'])}{busy}\n{tools}{small}{earlier}"


def markdown(figures: Sequence[Figure]) -> str:
    """Return figures as a table for a document."""
    rows = ["| question | figure | median | spread | wanted | |", "|---|---|---:|---|---|---|"]
    for figure in figures:
        low, high = figure.spread
        spread = f"{number(low)} to {number(high)}" if len(figure.values) > 1 else "once"
        wanted = figure.wanted.replace("<=", "at most").replace(">=", "at least").replace("<", "under")
        verdict = {True: "met", False: "**missed**", None: ""}[figure.met]
        value = f"{number(figure.median)} {figure.unit}".strip()
        rows.append(f"| {figure.question} | {figure.what} | {value} | {spread} | {wanted} | {verdict} |")
    return "\n".join(rows)


def headlines(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures that a README has room for."""
    return [one for one in figures if any(re.search(told, f"{one.question}: {one.what}") for told in _HEADLINES)]


def into_readme(text: str, data: Mapping[str, Any]) -> str:
    """Return the text of a README with the headlines of a document between its two marks.

    Raises:
        ValueError: the marks are not there, or the figures are of a quick run.
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"the README has no {_BEGIN} ... {_END}")
    if data["quick"]:
        raise ValueError("figures of a quick run, on small networks, are not for a README")
    tools = data["versions"]
    words = textwrap.fill(
        f"Measured on {data['date'].split()[0]} on {in_words(data['machine'])}, with torch {tools['torch']} and "
        f"executorch {tools['executorch']}.",
        125,
    )
    return f"{before}{begin}\n{words}\n\n{markdown(headlines(figures_of(data)))}\n{end}{after}"


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, bool]:
    """Compare two documents, figure by figure.

    A change counts where the two spreads do not touch. Returns the text, and whether a figure that was as wanted is
    not so any more.

    Raises:
        ValueError: one of them holds no figures, or one is of quick runs and the other is not.
    """
    before = {(one.question, one.what): one for one in figures_of(old)}
    after = {(one.question, one.what): one for one in figures_of(new)}
    if old["quick"] != new["quick"]:
        raise ValueError("one of them is of a quick run on small networks, and the other is not")
    lines, lost = [], False
    for key, now in after.items():
        then = before.pop(key, None)
        if then is None:
            lines.append(f"  new    {_named(now)}: {number(now.median)} {now.unit}")
            continue
        broken = then.met is True and now.met is False
        lost = lost or broken
        lines.append(_compared(then, now) + (f"  no longer {now.wanted}" if broken else ""))
    lines += [f"  gone   {_named(one)}" for one in before.values()]
    elsewhere = [] if old["machine"] == new["machine"] else ["on another machine: compare ratios only"]
    return "\n".join([f"old: {head(old)}", f"new: {head(new)}", *elsewhere, *lines]), lost


def _compared(then: Figure, now: Figure) -> str:
    apart = now.spread[0] > then.spread[1] or now.spread[1] < then.spread[0]
    several = len(then.values) > 1 and len(now.values) > 1
    word = "as was" if not apart else "higher" if now.median > then.median else "lower"
    if apart and not several:
        word += "?"
    change = f"{(now.median / then.median - 1) * 100:+.1f}%" if then.median else ""
    return f"  {word:<7}{_named(now)}: {number(then.median)} -> {number(now.median)} {now.unit} {change}".rstrip()


def _named(figure: Figure) -> str:
    return f"{figure.question}: {figure.what}"
