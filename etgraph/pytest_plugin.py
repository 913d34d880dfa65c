"""A pytest plugin for tests of users' own: a cache that is theirs, and assertions whose failures show the table.

    def test_my_model(etgraph_run):
        result = etgraph_run(MyModel().eval(), (torch.randn(1, 3, 32, 32),), target="android-arm64-xnnpack-fp32")
        assert_delegated(result, at_least=0.9)
        assert_matches_eager(result, relative=1e-3)
        assert_size_at_most(result, "2 MB")

    from etgraph.pytest_plugin import assert_delegated, assert_matches_eager, assert_size_at_most

pytest finds it by itself where etgraph is installed; `-p no:etgraph` leaves it out. Loading it imports pytest and
nothing else: torch and etgraph's engine come when a test first uses them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from etgraph.planned import Plan
    from etgraph.result import Result
    from etgraph.store import Cache

__all__ = [
    "assert_delegated", "assert_error_below", "assert_matches_eager", "assert_operators_absent",
    "assert_plan_unchanged", "assert_size_at_most", "etgraph_cache", "etgraph_plan_snapshot", "etgraph_run",
]  # fmt: skip

_UNITS = {"": 1, "b": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that writes plans instead of comparing them."""
    parser.getgroup("etgraph").addoption(
        "--etgraph-update-plans",
        action="store_true",
        help="write the plans that assert_plan_unchanged compares with, instead of comparing",
    )


@pytest.fixture(scope="session")
def etgraph_cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache of this test session: what several tests lower is lowered once, and the user's cache is left alone."""
    from etgraph.store import Cache

    return Cache(tmp_path_factory.mktemp("etgraph_cache"))


@pytest.fixture
def etgraph_run(etgraph_cache: Cache) -> Callable[..., Any]:
    """`etgraph.run` through the cache of this test session; takes the same arguments."""

    def run(*arguments: Any, **named: Any) -> Any:
        import etgraph

        named.setdefault("cache", etgraph_cache)
        return etgraph.run(*arguments, **named)

    return run


@pytest.fixture
def etgraph_plan_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`assert_plan_unchanged` with a file beside the test, named after it; `--etgraph-update-plans` writes it."""
    update = bool(request.config.getoption("--etgraph-update-plans"))
    node = request.node

    def compare(plan: Any, name: str = "") -> None:
        __tracebackhide__ = True
        stem = re.sub(r"[^\w.-]+", "_", name or node.name).strip("_")
        assert_plan_unchanged(plan, node.path.parent / "plans" / f"{stem}.json", update=update)

    return compare


# -- assertions ------------------------------------------------------------------------------------------------------


def assert_delegated(result: Result, at_least: float = 1.0, backend: str | None = None) -> None:
    """Fail when backends took a smaller share of the operators of any method.

    Args:
        at_least: the share, from 0 to 1.
        backend: count only what this one took, as `XnnpackBackend`.
    """
    __tracebackhide__ = True
    if not 0 <= at_least <= 1:
        raise ValueError(f"at_least={at_least}: a share is from 0 to 1, as 0.9 for nine operators of ten")
    delegation = result.delegation
    if not delegation:
        _fail(f"what was delegated is not known of a program at {result.artifact.kind}", [])
    known = dict.fromkeys(one["name"] for found in delegation.values() for one in found["backends"])
    short, rows = [], []
    for method, found in delegation.items():
        taken = sum(one["nodes"] for one in found["backends"] if backend in (None, one["name"]))
        whole = sum(one["nodes"] for one in found["backends"]) + found["others"]
        share = taken / whole if whole else 1.0
        if share < at_least:
            short.append(f"{method} {share:.1%}")
        counts = {one["name"]: one["nodes"] for one in found["backends"]}
        shown = [str(counts.get(name, 0)) for name in known]
        rows.append((method, *shown, str(found["others"]), f"{share:.1%}", "" if share >= at_least else "too little"))
    if short:
        by = backend or "backends"
        _fail(
            f"{by} took too little: {', '.join(short)}, and at least {at_least:.1%} is wanted",
            [("method", *known, "portable", "share", ""), *rows],
            "`etgraph check` says why the rest was left.",
        )


def assert_operators_absent(result: Result, *patterns: str) -> None:
    """Fail when an operator outside of delegates matches one of these regular expressions, anywhere in its name.

    Args:
        patterns: as `r"aten\\.sort"` or `"dequantize"`. Operators are named as in the program at its kind: of a
            lowered program as `aten.add.Tensor`, of a `.pte` as `aten::add.out`.
    """
    __tracebackhide__ = True
    if not patterns:
        raise ValueError("give at least one operator that is to be absent, as r'aten\\.sort'")
    rows = []
    for method, operators in _operators(result).items():
        rows += [
            (method, name, str(count)) for name, count in operators.items() if any(re.search(p, name) for p in patterns)
        ]
    if rows:
        _fail(
            f"operators that match {', '.join(patterns)} are in the program at {result.artifact.kind}",
            [("method", "operator", "calls"), *rows],
        )


def assert_matches_eager(
    result: Result, inputs: Any = None, *, relative: float = 1e-3, absolute: float = 1e-4, snr: float | None = None
) -> None:
    """Fail when an output of the `.pte`, executed on this host, differs from the source by more than is allowed.

    Args:
        inputs: as `example_inputs` of `etgraph.run`; the example inputs when not given.
        relative, absolute: an output is right when its largest error is within one of the two: of its largest value,
            or absolute.
        snr: or when its signal-to-noise ratio reaches this, in dB; for programs of int8.
    """
    __tracebackhide__ = True
    from etgraph.numerics import Tolerance

    _compare(result, inputs, Tolerance(absolute, relative, snr).holds, f"{relative:g} relative or {absolute:g} absolute"
             + (f" or {snr:g} dB" if snr is not None else ""))  # fmt: skip


def assert_error_below(result: Result, limit: float, inputs: Any = None) -> None:
    """Fail when the largest absolute error of an output against the source is not below a limit."""
    __tracebackhide__ = True
    _compare(result, inputs, lambda absolute, relative, snr: absolute < limit, f"an absolute error below {limit:g}")


def assert_size_at_most(result: Result, limit: int | str) -> None:
    """Fail when the program, with its data files, is larger.

    Args:
        limit: in bytes, or as `"2 MB"` (a million bytes each) or `"2 MiB"`.
    """
    __tracebackhide__ = True
    from etgraph.registry import registry
    from etgraph.words import size

    allowed = _bytes(limit)
    parts = registry.service("sizes")(result.artifact)
    whole = sum(part["bytes"] for part in parts)
    if whole > allowed:
        rows = [(part["name"], part["section"], part["method"] or "all", size(part["bytes"])) for part in parts[:10]]
        _fail(
            f"the program takes {size(whole)} ({whole:,} bytes), and at most {size(allowed)} ({allowed:,}) is wanted",
            [("the largest parts", "what it is", "method", "size"), *rows],
        )


def assert_plan_unchanged(plan: Any, snapshot: str | Path, *, update: bool = False) -> None:
    """Fail when a plan takes another way, or gives another option, than the one in a file.

    Args:
        plan: a `Plan`, or a `Result` for its plan.
        snapshot: a JSON file; the fixture `etgraph_plan_snapshot` names one after the test.
        update: write the file instead.
    """
    __tracebackhide__ = True
    made = getattr(plan, "plan", plan)
    now = _steps(made)
    file = Path(snapshot)
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(now, indent=2) + "\n")
        return
    if not file.exists():
        _fail(f"there is no plan in {file} yet", [], "pytest --etgraph-update-plans writes it.")
    before = json.loads(file.read_text())
    if now != before:
        import difflib

        lines = difflib.unified_diff(_lines(before), _lines(now), "before", "now", lineterm="", n=99)
        _fail(
            f"the plan is not the one in {file}",
            [(line,) for line in lines][2:],
            "Where that is meant: pytest --etgraph-update-plans writes the new one.",
        )


# -- what they are made of -------------------------------------------------------------------------------------------


def _fail(what: str, rows: Sequence[Sequence[str]], hint: str = "") -> NoReturn:
    __tracebackhide__ = True
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    pytest.fail("\n".join([what, *(f"  {line}" for line in lines), *([hint] if hint else [])]), pytrace=False)


def _operators(result: Result) -> Mapping[str, Mapping[str, int]]:
    from etgraph.registry import registry

    methods = registry.service("inspect")(result.artifact)["methods"]
    return {method: _counted(about.get("operators") or {}) for method, about in methods.items()}


def _counted(operators: Mapping[str, int] | Iterable[str]) -> Mapping[str, int]:
    """Return calls by operator; a `.pte` names its operators and does not count calls."""
    return operators if isinstance(operators, Mapping) else dict.fromkeys(operators, 1)


def _compare(result: Result, inputs: Any, holds: Callable[[float, float, float], bool], wanted: str) -> None:
    __tracebackhide__ = True
    found = result.verify(inputs)
    rows, wrong = [], 0
    for method, errors in found.items():
        figures = zip(errors, found.relative[method], found.snr[method], strict=True)
        for output, (absolute, relative, snr) in enumerate(figures):
            right = holds(absolute, relative, snr)
            wrong += not right
            verdict = "ok" if right else "too large"
            rows.append((method, str(output), f"{absolute:.1e}", f"{relative:.1e}", f"{snr:.1f} dB", verdict))
    if wrong:
        _fail(
            f"{wrong} of {len(rows)} outputs differ from the source by more than is allowed: {wanted} is wanted",
            [("method", "output", "largest error", "relative", "signal to noise", ""), *rows],
            "`etgraph.compare` names the first node that is off.",
        )


def _bytes(limit: int | str) -> int:
    if isinstance(limit, int):
        return limit
    found = re.fullmatch(r"\s*([\d_.]+)\s*([a-zA-Z]*)\s*", limit)
    if found is None or found[2].lower() not in _UNITS:
        raise ValueError(f"{limit!r} is no size: give bytes, or as '2 MB' or '512 KiB'")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _steps(plan: Plan) -> dict[str, Any]:
    """Return what a plan does, without the words for why; calibration inputs are no part of it."""
    from etgraph.report.document import options_of

    steps = [
        {
            "stage": step.stage,
            "consumes": str(step.consumes),
            "produces": str(step.produces),
            "options": {
                one["option"]: one["value"] for one in options_of(step) if one["option"] != "calibration_inputs"
            },
        }
        for step in plan.steps
    ]
    return {"recipe": plan.request.recipe.name, "kinds": [str(kind) for kind in plan.kinds], "steps": steps}


def _lines(plan: Mapping[str, Any]) -> list[str]:
    lines = [f"recipe {plan['recipe']}", " -> ".join(plan["kinds"])]
    for step in plan["steps"]:
        lines.append(f"{step['stage']} ({step['consumes']} -> {step['produces']})")
        lines += [f"    {name} = {value}" for name, value in step["options"].items()]
    return lines
