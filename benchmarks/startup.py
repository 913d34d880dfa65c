"""Start-up: how long do imports take, and the commands that need no torch?

Medians of new processes, in turns; processor time.
"""

from __future__ import annotations

from functools import partial

from benchmarks.asking import Ask, main, say, scratch
from benchmarks.figures import Answer, Figure
from benchmarks.processes import command, interleaved, run

COMMANDS = ("--help", "list recipes", "list stages", "list targets", "list kinds", "cache ls")
IMPORTS = {
    "python itself": "pass",
    "import etgraph": "import etgraph",
    "import torch": "import torch",
    "import executorch.exir": "import executorch.exir",
}


def measure(ask: Ask) -> Answer:
    """Start each several times."""
    with scratch() as folder:
        imports = {words: partial(_import, code) for words, code in IMPORTS.items()}
        commands = {f"etgraph {words}": partial(_command, words.split(), folder / "cache") for words in COMMANDS}
        ways = {words: way for words, way in {**imports, **commands}.items() if ask.wants(words)}
        say(f"startup: {', '.join(ways)}")
        runs = interleaved(ways, ask.times(5, quick=2)) if ways else {}
    answer = Answer()
    for words, measured in runs.items():
        light = words not in ("import torch", "import executorch.exir")
        note = ", ".join(sorted({one.err.strip().splitlines()[-1] for one in measured})) if words in commands else ""
        if words in commands and note != "torch not imported":
            raise RuntimeError(f"{words} imported torch, and needs none")
        cpu = tuple(one.cpu for one in measured)
        answer.figures.append(Figure("startup", words, cpu, "s", "<= 0.6" if light else "", note))
    return answer


def _import(code: str, number: int):
    del number
    return run(["-c", code])


def _command(words: list[str], cache, number: int):
    del number
    return command(*words, cache=cache)


if __name__ == "__main__":
    main(measure, __doc__)
