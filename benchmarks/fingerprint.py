"""Fingerprints: how fast are weights digested, against blake3 alone and memcpy, and what does a node cost?

Parts: `weights`, `nodes`.
"""

from __future__ import annotations

from benchmarks.asking import Ask, main, say
from benchmarks.figures import Answer, Figure, Series, exponent, ratios
from benchmarks.processes import module

NODES = (250, 1000, 4000)


def measure(ask: Ask) -> Answer:
    """Measure weights in one process, and graphs of growing length in another."""
    answer = Answer()
    rounds = ask.times(5, quick=2)
    if ask.wants("weights"):
        say("fingerprint: weights")
        size = 1 << (24 if ask.quick else 28)
        answer.figures += _weights(module("fingerprint_child", {"bytes": size, "rounds": rounds}).told, ask.quick)
    if ask.wants("nodes"):
        counts = NODES[:2] if ask.quick else NODES
        say(f"fingerprint: graphs of {', '.join(map(str, counts))} nodes")
        answer.add(_nodes(module("fingerprint_child", {"nodes": counts, "rounds": rounds}).told))
    return answer


def _weights(told: dict[str, list[float]], quick: bool) -> list[Figure]:
    size = f"{told['bytes'][0] / 1e6:,.0f} MB"
    speeds = {way: tuple(told["bytes"][0] / seconds / 1e9 for seconds in told[way]) for way in WORDS}
    figures = [Figure("fingerprint", f"{size} of {WORDS[way]}", values, "GB/s") for way, values in speeds.items()]
    speed = ratios(speeds["fingerprint"], speeds["blake3"])
    work = ratios(told["fingerprint_cpu"], told["blake3_cpu"])
    against = f"fingerprint of {size} / blake3 alone, all threads"
    return [
        *figures,
        Figure("fingerprint", f"{against}: speed", speed, "x", "" if quick else ">= 0.8"),
        Figure("fingerprint", f"{against}: processor time", work, "x", "" if quick else "<= 1.25"),
    ]


WORDS = {
    "fingerprint": "weights in an exported program: etgraph.fingerprint",
    "blake3": "the same bytes: blake3 alone, all threads",
    "blake3_one": "the same bytes: blake3 alone, one thread",
    "memcpy": "the same bytes: copied in memory",
}


def _nodes(told: dict[str, list[float]]) -> Answer:
    answer = Answer()
    counts = [int(count) for count in told]
    medians = []
    for count, seconds in told.items():
        figure = Figure("fingerprint", f"a graph of {int(count):,} nodes", tuple(1000 * s for s in seconds), "ms")
        answer.figures.append(figure)
        medians.append(figure.median)
    answer.figures.append(
        Figure(
            "fingerprint",
            "power of the number of nodes that it grows with",
            (exponent(counts, medians),),
            "",
            "<= 1.15",
        )
    )
    lines = {"etgraph.fingerprint": medians}
    x = tuple(map(float, counts))
    answer.series.append(Series("fingerprint", "Fingerprint of a graph", "nodes", "ms of processor time", x, lines))
    return answer


if __name__ == "__main__":
    main(measure, __doc__)
