"""Iterate: what does one change cost?

A network in a Python file, from there to a `.pte` for XNNPACK on one cache; each run is a new process that meets one
change. Compared with the same run without a cache, and with a script by hand that saves with upstream's functions
(torch.export.save, exir.serde, the `.pte`) and goes on from the last file that the change leaves good: a script
cannot know which that is, so it is told. Which steps ran and which were reused is checked in every run, and the `.pte`
of changes that keep the outputs is executed once. etgraph's own code must not be edited meanwhile: it is in every key.

Parts: NETWORK (MobileNetV2 when none is named), and what changed, such as `--only vit_base --only weight`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.asking import Ask, main, say, scratch
from benchmarks.figures import Answer, Figure, ratios
from benchmarks.networks import NAMES
from benchmarks.processes import Run, interleaved, module

NET = """
import torch
from benchmarks import networks

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = networks.make("{network}")[0]

    def forward(self, image):
        # a comment
        return self.net(image).logits

def make():
    return Net().eval(), networks.make("{network}")[1]
"""

STEPS = ("torch_export", "to_edge", "to_backend", "to_executorch")


@dataclass(frozen=True)
class Change:
    """One change: what is edited or set, how many of the steps are reused, and what a script by hand goes on from.

    Args:
        reused: how many steps from the front; the others run.
        by_hand: the file that is still good: `lowered`, `exported`, or `nothing`; empty where a script has nothing to
            do once it is told that nothing changed.
        same_outputs: whether the program still computes what the network does.
    """

    words: str
    setting: str
    reused: int
    by_hand: str = ""
    same_outputs: bool = True


CHANGES = (
    Change("nothing", "", 4),
    Change("a comment in the model's file", "comment", 4),
    Change("the memory plan", "memory", 3, "lowered"),
    Change("an option of the partitioner (per_op_mode)", "partitioner", 2, "exported"),
    Change("one weight", "weight", 0, "nothing"),
    Change("one line of the model", "line", 0, "nothing", same_outputs=False),
)


def measure(ask: Ask) -> Answer:
    """Measure each network; a part can name a network or a change."""
    answer = Answer()
    networks = {"vit_small": 1} if ask.quick else {"mobilenet_v2": 2}
    named = [one for one in ask.only if one in NAMES]
    changes = tuple(one for one in ask.only if one not in NAMES)
    for network, usual in networks.items() if not named else ((one, 1) for one in named):
        chosen = [one for one in CHANGES if not changes or any(word in one.words for word in changes)]
        if chosen:
            answer.figures += _network(network, chosen, ask.times(usual))
    return answer


def _network(network: str, changes: list[Change], rounds: int) -> list[Figure]:
    with scratch() as folder:
        runs: dict[str, list[Run]] = {}
        for number in range(rounds):
            for name, run in _round(network, changes, folder / str(number), number).items():
                runs.setdefault(name, []).append(run)
    figures = [
        Figure("iterate", f"{NAMES[network]}, cache off: wall", tuple(run.wall for run in runs["off"]), "s"),
        *_pair(f"{NAMES[network]}, filling the cache / cache off", runs["empty"], runs["off"], "<= 1.10"),
        *_pair(f"{NAMES[network]}, by hand, saving all / cache off", runs["by hand"], runs["off"]),
    ]
    for change in changes:
        here = runs[change.words]
        name = f"{NAMES[network]}, changed {change.words}"
        figures += _pair(f"{name}: etgraph / cache off", here, runs["off"], note=_steps(here[0]))
        if change.by_hand:
            figures += _pair(f"{name}: etgraph / by hand", here, runs[f"by hand, {change.words}"])
    return figures


def _round(network: str, changes: list[Change], folder: Path, number: int) -> dict[str, Run]:
    """Go once through all changes, on a cache and on files of this round's own."""
    folder.mkdir()
    net = folder / "net.py"
    net.write_text(NET.format(network=network))
    say(f"iterate: {network}, round {number + 1}")
    ways: dict[str, Callable[[int], Run]] = {
        "off": partial(_etgraph, folder, Change("", "", 0), cached=False),
        "empty": partial(_etgraph, folder, Change("", "", 0)),
        "by hand": partial(_by_hand, folder, Change("", "", 0, "nothing")),
    }
    runs = {name: done[0] for name, done in interleaved(ways, 1).items()}
    for change in changes:
        say(f"iterate: {network}, round {number + 1}, changed {change.words}")
        before = net.read_text()
        if change.setting == "comment":
            net.write_text(before.replace("# a comment", "# another comment\n        # and one more"))
        elif change.setting == "line":
            net.write_text(before.replace("logits", "logits * 2.0"))
        runs[change.words] = _etgraph(folder, change)
        files = {"etgraph": str(folder / "etgraph.pte")}
        if change.by_hand == "nothing":
            # All over again: that has been measured.
            runs[f"by hand, {change.words}"] = runs["by hand"]
        elif change.by_hand:
            runs[f"by hand, {change.words}"] = _by_hand(folder, change)
            files["by hand"] = str(folder / "by_hand.pte")
        net.write_text(before)
        if change.same_outputs and number == 0:
            checked = module("pte_check", {"network": network, "files": files}).told
            for way, found in checked.items():
                _check_outputs(change, way, found["relative"])
    return runs


def _check_outputs(change: Change, way: str, relative: float) -> None:
    if not relative <= 1e-3:
        raise RuntimeError(f"changed {change.words}, {way}: the .pte is off by {relative:.2g} of the largest output")


def _etgraph(folder: Path, change: Change, number: int = 0, *, cached: bool = True) -> Run:
    del number
    run = module("iteration", {"setting": change.setting, "folder": str(folder), "cached": cached})
    wanted = ["reused"] * change.reused + ["ran"] * (len(STEPS) - change.reused)
    found = [outcome for _, outcome, _ in run.told["steps"]]
    if found != wanted:
        reasons = "; ".join(run.told["reasons"])
        raise RuntimeError(f"changed {change.words or 'nothing yet'}: the steps {found}, not {wanted}: {reasons}")
    return run


def _by_hand(folder: Path, change: Change, number: int = 0) -> Run:
    del number
    return module("iteration_by_hand", {"setting": change.setting, "folder": str(folder), "from": change.by_hand})


def _pair(what: str, above: list[Run], below: list[Run], wanted: str = "", note: str = "") -> list[Figure]:
    wall = ratios([run.wall for run in above], [run.wall for run in below])
    cpu = ratios([run.cpu for run in above], [run.cpu for run in below])
    return [
        Figure("iterate", f"{what}: wall", wall, "x", wanted, note),
        Figure("iterate", f"{what}: processor time", cpu, "x", wanted),
    ]


def _steps(run: Run) -> str:
    return f"{run.wall:.1f} s: " + ", ".join(f"{stage} {word} {sec:.2f}" for stage, word, sec in run.told["steps"])


if __name__ == "__main__":
    main(measure, __doc__)
