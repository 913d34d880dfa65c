"""Cold: what does `etgraph.run` cost against the calls that a user would write by hand, and against executorch.export?

From a module to a `.pte` for XNNPACK, fp32 and int8 (static PT2E), each way in a fresh process, taking turns. Before a
figure is given, the `.pte` of every way is executed on this host and compared with the model; int8 must lose no more
than the calls by hand.

Parts: NETWORK/PRECISION, such as `--only vit_base/fp32`, `--only int8`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.asking import Ask, PartsFailed, main, say, scratch
from benchmarks.figures import Answer, Figure, ratios
from benchmarks.networks import NAMES
from benchmarks.processes import Run, interleaved, module

HAND, ETGRAPH, EMPTY, SESSION = "by_hand", "with_etgraph", "empty_cache", "with_export_session"

#: Part to how often; int8 takes minutes in upstream's observers.
PARTS = {
    "mobilenet_v2/fp32": 3,
    "resnet_50/fp32": 2,
    "vit_base/fp32": 2,
    "bert_base/fp32": 2,
    "mobilenet_v2/int8": 1,
    "resnet_50/int8": 1,
    "vit_base/int8": 1,
    "bert_base/int8": 1,
}
QUICK = {"vit_small/fp32": 1}
#: One more way of these would take as long as all of fp32, and says what MobileNetV2 says.
WITHOUT_SESSION = ("resnet_50/int8", "vit_base/int8", "bert_base/int8")
WITH_EMPTY_CACHE = ("mobilenet_v2/fp32", "vit_small/fp32")

#: Of the error relative to the largest output in fp32: rounding in another order.
TOLERANCE = 1e-3


def measure(ask: Ask) -> Answer:
    """Measure each network and precision that is asked for."""
    known = QUICK if ask.quick else PARTS
    answer, failed = Answer(), {}
    for part, usual in known.items():
        if ask.wants(part):
            try:
                answer.add(_part(part, ask.times(usual)))
            except RuntimeError as error:
                failed[part] = str(error)
    if failed:
        raise PartsFailed(answer, failed)
    return answer


def _part(part: str, rounds: int) -> Answer:
    network, precision = part.split("/")
    ways = [HAND, ETGRAPH]
    # What an empty cache costs with large weights, `warm` answers.
    ways += [EMPTY] if part in WITH_EMPTY_CACHE else []
    ways += [SESSION] if part not in WITHOUT_SESSION else []
    with scratch() as folder:
        runs = interleaved(
            {way: partial(_run, way, network, precision, folder) for way in ways}, rounds, once=[SESSION]
        )
        checked = module("pte_check", {"network": network, "files": {way: str(folder / f"{way}.pte") for way in ways}})
        same = (folder / f"{HAND}.pte").read_bytes() == (folder / f"{ETGRAPH}.pte").read_bytes()
        errors = {way: found["relative"] for way, found in checked.told.items()}
        # What int8 loses on random weights is whatever it is by hand; another program loses something else.
        limit = TOLERANCE if precision == "fp32" else errors[HAND] * 1.05
        for way, error in errors.items():
            if not error <= limit:
                raise RuntimeError(f"the .pte of {way} is off by {error:.2g} of the largest output, not {limit:.2g}")
    return Answer(_figures(NAMES[network], precision, runs, _verdict(same, checked.told)))


def _run(way: str, network: str, precision: str, folder: Path, number: int) -> Run:
    say(f"cold: {network} {precision} {way}, round {number + 1}")
    job: dict[str, Any] = {"way": way, "network": network, "precision": precision, "out": str(folder / f"{way}.pte")}
    if way == EMPTY:
        job |= {"way": ETGRAPH, "cache": str(folder / f"cache{number}")}
    return module("child", job)


def _verdict(same: bool, checked: Mapping[str, Any]) -> str:
    error = max(found["relative"] for found in checked.values())
    words = (
        "byte for byte the .pte of the calls by hand" if same else "another .pte than by hand, which was executed too"
    )
    return f"{words}; all executed: error at most {error:.1g} of the largest output"


def _figures(name: str, precision: str, runs: Mapping[str, list[Run]], verdict: str) -> list[Figure]:
    figures = []

    def add(way: str, words: str, quantity: str, wanted: str, note: str = "") -> None:
        values = ratios(_values(runs[way], quantity), _values(runs[HAND][: len(runs[way])], quantity))
        figures.append(Figure("cold", f"{name} {precision}, {words}: {_WORDS[quantity]}", values, "x", wanted, note))

    for quantity, wanted in (("wall", "<= 1.03"), ("cpu", "<= 1.03"), ("all_wall", ""), ("all_cpu", "")):
        add(ETGRAPH, "etgraph / by hand", quantity, wanted, verdict if quantity == "wall" else "")
    add(ETGRAPH, "etgraph / by hand", "peak", "<= 1.05")
    own = tuple(1 - run.told["upstream_cpu"] / run.told["cpu"] for run in runs[ETGRAPH])
    figures.append(
        Figure(
            "cold",
            f"{name} {precision}: etgraph's own share of its time",
            tuple(100 * share for share in own),
            "%",
            "<= 3",
            f"{run_seconds(runs[ETGRAPH]):.2f} s of processor time outside of upstream's calls",
        )
    )
    if EMPTY in runs:
        for quantity in ("wall", "cpu"):
            values = ratios(_values(runs[EMPTY], quantity), _values(runs[ETGRAPH], quantity))
            what = f"{name} {precision}, empty cache / no cache: {_WORDS[quantity]}"
            figures.append(Figure("cold", what, values, "x", "<= 1.10"))
    for quantity in ("wall", "cpu", "peak") if SESSION in runs else ():
        add(SESSION, "executorch.export / by hand", quantity, "")
    for way, words in ((HAND, "by hand"), (ETGRAPH, "etgraph")):
        figures.append(Figure("cold", f"{name} {precision}, {words}: wall", _values(runs[way], "wall"), "s"))
        peaks = tuple(run.peak / 1e6 for run in runs[way])
        figures.append(Figure("cold", f"{name} {precision}, {words}: peak memory", peaks, "MB"))
    return figures


_WORDS = {
    "wall": "wall",
    "cpu": "processor time",
    "all_wall": "wall with imports",
    "all_cpu": "processor time with imports",
    "peak": "peak memory",
}


def _values(runs: list[Run], quantity: str) -> tuple[float, ...]:
    if quantity in ("wall", "cpu"):
        return tuple(float(run.told[quantity]) for run in runs)
    return tuple(float(getattr(run, quantity.removeprefix("all_"))) for run in runs)


def run_seconds(runs: list[Run]) -> float:
    """Return the smallest processor time outside of upstream's calls, in seconds."""
    return min(run.told["cpu"] - run.told["upstream_cpu"] for run in runs)


if __name__ == "__main__":
    main(measure, __doc__)
