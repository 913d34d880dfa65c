"""`etgraph.profile`: a `.pte` in the runtime of this host, timed kernel by kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etgraph import api
from etgraph.artifact import Executorch
from etgraph.errors import UsageError
from etgraph.probe import chosen_inputs
from etgraph.profiles import Profile
from etgraph.records import programs_before_lowering
from etgraph.registry import registry
from etgraph.runner import OnEvent
from etgraph.targets import Target

__all__ = ["profile"]


def profile(
    source: Any,
    inputs: Any = None,
    *,
    runs: int = 20,
    etrecord: str | os.PathLike[str] | None = None,
    example_inputs: Any = None,
    recipe: Any = None,
    target: str | Target | None = None,
    path: str = "auto",
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    calibration_inputs: Any = None,
    cache: Any = True,
    trust: bool = False,
    on_event: OnEvent | None = None,
) -> Profile:
    """Run a program on this host, and say where its time and its memory go.

    Args:
        source: a `.pte` or `.bpte`; or anything else that `etgraph.run` takes, which is run to a `.pte` first.
        inputs: as `example_inputs` of `etgraph.run`. When not given, the example inputs, else random numbers.
        runs: how many runs are timed, after one that is not.
        etrecord: the ETRecord of a `.pte`, by which kernels are traced to lines of the model. Of a source that is run
            to a `.pte` here, there is no need of one.
        example_inputs, recipe, target, path, dynamic_shapes, constant_methods, calibration_inputs, cache, trust,
            on_event: as `etgraph.run` takes them.

    Raises:
        UsageError: the request is wrong.
        BackendUnavailableError: this host's runtime lacks a backend or a kernel; said before anything is loaded.
    """
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise UsageError(f"runs is {runs!r}", hint="Give how many runs are to be timed, 1 or more.")
    if etrecord is not None and not Path(etrecord).is_file():
        raise UsageError(f"there is no ETRecord {etrecord}", hint="`etgraph run ... --etrecord FILE` writes one.")
    result = api.run(
        source,
        example_inputs,
        recipe,
        target=target,
        path=path,
        dynamic_shapes=dynamic_shapes,
        constant_methods=constant_methods,
        calibration_inputs=calibration_inputs,
        cache=cache,
        on_event=on_event,
        trust=trust,
    )
    program = result.artifact
    assert isinstance(program, Executorch)
    probe = chosen_inputs([result.source, program], inputs)
    edge = None
    if etrecord is None and result.held.kind != "executorch":
        programs = programs_before_lowering(result)
        edge = programs["transformed"] or programs["edge"]
    measure = registry.service("profile")
    found: Profile = measure(program, probe.samples, inputs=probe.words, runs=runs, etrecord=etrecord, edge=edge)
    return found
