"""Which inputs numbers are looked at with: the user's own first, noise only where there are no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from etgraph.artifact import Artifact, Inputs
from etgraph.calibration import Calibration
from etgraph.errors import UsageError
from etgraph.inputs import samples_by_method
from etgraph.registry import registry

__all__ = ["Probe", "chosen_inputs", "precision_of"]

#: Of calibration inputs, which may be thousands, as many samples are looked at.
_CALIBRATION_SAMPLES = 8


@dataclass(frozen=True)
class Probe:
    """Inputs for each method, and in words where they come from."""

    samples: Mapping[str, Sequence[Inputs]]
    words: str


def chosen_inputs(artifacts: Sequence[Artifact], inputs: Any = None, calibration: Calibration | None = None) -> Probe:
    """Choose inputs for the methods of programs that are forms of one another.

    Args:
        artifacts: the programs; the first that has example inputs gives them.
        inputs: what the user gave for the purpose, as `example_inputs` of `etgraph.run`.
        calibration: used for methods without example inputs.

    Raises:
        UsageError: the inputs are in no form that is known, or there are none and none can be made up.
    """
    methods = list(artifacts[0].methods)
    if inputs is not None:
        return Probe(samples_by_method(inputs, methods), "the inputs given")
    samples: dict[str, Sequence[Inputs]] = {}
    words: list[str] = []
    for method in methods:
        found, word = _of_method(method, artifacts, calibration)
        samples[method] = found
        words.append(word)
    return Probe(samples, " and ".join(dict.fromkeys(words)))


def _of_method(
    method: str, artifacts: Iterable[Artifact], calibration: Calibration | None
) -> tuple[Sequence[Inputs], str]:
    for artifact in artifacts:
        if artifact.example_inputs.get(method):
            return artifact.example_inputs[method], "the example inputs"
    if calibration is not None and calibration.given and method not in calibration.missing():
        # A generator may have been read up by the run.
        with contextlib.suppress(UsageError):
            found = tuple(islice(calibration.samples(method), _CALIBRATION_SAMPLES))
            return found, f"the first {len(found)} calibration inputs"
    for artifact in artifacts:
        made: Inputs | None = registry.service("noise_inputs")(artifact, method)
        if made is not None:
            return (made,), "random numbers, as no inputs were given"
    raise UsageError(
        f"there are no inputs for method {method!r}, and what it takes is not known either",
        hint="Give inputs=(...), or example_inputs with the model.",
    )


def precision_of(name: str) -> float | None:
    """Return the signal-to-noise ratio in dB that is fit for a target, or for a recipe that a target goes by."""
    registry.load_plugins()
    name = name.partition("(")[0]
    if name in registry.targets:
        return registry.targets[name].snr
    entry = registry.recipes.get(name)
    found = [target.snr for target in registry.targets.values() if entry is not None and target.build is entry.build]
    return min(found, default=None)
