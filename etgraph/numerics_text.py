"""A comparison in words and columns, for terminals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from etgraph.numerics import Comparison, Gap, NodeNumbers, Suspect
from etgraph.words import counted, table, wrapped

__all__ = ["comparison_text"]


def comparison_text(found: Comparison) -> str:
    """Show the outputs at every kind, what is wrong, and the nodes around it."""
    samples = sum(found.samples.values())
    lines = [f"computed on {found.inputs} ({counted(samples, 'sample')})", *_stage_lines(found)]
    for suspect in found.suspects:
        lines += ["", *_suspect_lines(suspect)]
    nodes = _node_lines(found.nodes, found.suspects)
    lines += ["", *nodes] if nodes else []
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines)


def _stage_lines(found: Comparison) -> list[str]:
    rows: list[tuple[str, ...]] = []
    kinds = [stage.kind for stage in found.stages]
    for stage in found.stages:
        if stage.reason:
            continue
        for one in stage.outputs:
            far = not stage.tolerance.holds_for(one.source)
            verdict = "ok" if one.within else "TOO LARGE" if far else "OFF BY THIS STAGE"
            name = stage.kind if kinds.count(stage.kind) == 1 else stage.stage
            rows.append((name, one.method, str(one.output), *_figures(one.source), verdict))
    head = ("", "method", "output", "max error", "relative", "SNR dB", "cosine", "")
    lines = table(rows, header=head, right=(2, 3, 4, 5, 6)).splitlines()
    for stage in found.stages:
        if stage.reason:
            verb = "fails" if stage.failed else "not executed"
            lines += wrapped(f"{stage.kind} (by {stage.stage}) {verb}: {stage.reason}", 0, 2)
    told = dict.fromkeys(
        f"output {one.output} of {one.method}: {one.note}" for s in found.stages for one in s.outputs if one.note
    )
    return [*lines, *told]


def _figures(gap: Gap) -> tuple[str, str, str, str]:
    snr = "inf" if gap.snr == math.inf else "-inf" if gap.snr == -math.inf else f"{gap.snr:.1f}"
    return f"{gap.absolute:.1e}", f"{gap.relative:.1e}", snr, f"{gap.cosine:.5f}"


def _suspect_lines(suspect: Suspect) -> list[str]:
    what = "off inside, outputs within tolerance" if suspect.masked else "first bad"
    lines = [f"{what}: {suspect.kind}, made by {suspect.stage}, method {suspect.method}"]
    lines += wrapped(suspect.words, 2)
    node = suspect.node
    if node is None:
        return lines
    if node.source_line:
        lines.append(f"  model source: {node.source_line}")
    if node.counterpart_call:
        lines += [f"  now:    {node.call}", f"  before: {node.counterpart_call}"]
    if node.scale:
        lines.append(f"  scale {_range(node.scale)}, zero point {_range(node.zero_point)}")
    return lines


def _range(values: tuple[float, ...]) -> str:
    return " to ".join(f"{value:g}" for value in dict.fromkeys(values)) or "none"


def _node_lines(nodes: Iterable[NodeNumbers], suspects: Iterable[Suspect], around: int = 5) -> list[str]:
    """Lay out the nodes around each suspect; all of them are in the JSON form."""
    chosen = [suspect.node for suspect in suspects]
    listed = [
        node for node in nodes if node.gap is not None and (node.operator[:11] != "placeholder" or node in chosen)
    ]
    wanted: set[int] = set()
    for suspect in suspects:
        at = next((i for i, node in enumerate(listed) if node == suspect.node), None)
        if at is not None:
            wanted.update(range(max(0, at - around), min(len(listed), at + around + 1)))
    rows = []
    for i in sorted(wanted):
        node = listed[i]
        assert node.gap is not None
        figures = _figures(node.gap)
        verdict = "ok" if node.within else "OFF"
        first = " <- first" if any(node == suspect.node for suspect in suspects) else ""
        rows.append((_short(node.node, 30), _short(node.counterpart, 22), figures[0], figures[2], verdict + first))
    return table(rows, header=("node", "before", "max error", "SNR dB", ""), right=(2, 3)).splitlines() if rows else []


def _short(name: str, width: int) -> str:
    """Return the end of a name, by which names of nodes differ."""
    last = name.rpartition("/")[2]
    return last if len(last) <= width else f"..{last[2 - width :]}"
