"""Timing a method of a `.pte` in the runtime, from the ETDump that it records."""

from __future__ import annotations

import logging
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etgraph.artifact import Executorch, Inputs
from etgraph.errors import UsageError
from etgraph.profiles import KernelTime
from stages.support.executing import cloned, leaves_of, one_data_file, refused

#: What the runtime records around kernels: the call with what the interpreter adds, and the run as a whole.
_DELEGATE, _RUN, _LOAD = "DELEGATE_CALL", "Method::execute", "Program::load_method"
_NATIVE = "native_call_"


@dataclass(frozen=True)
class Timings:
    """Milliseconds to load a method, of a run, and of each kernel call."""

    load: float
    run: float
    kernels: tuple[KernelTime, ...]


def time_method(program: Executorch, method: str, sample: Inputs, runs: int, names: list[str]) -> Timings:
    """Run a method once, and then `runs` times, of which the times are taken.

    Args:
        names: what each instruction calls.

    Raises:
        UsageError: the runtime refuses the inputs, or records nothing.
    """
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    buffer = program.buffer  # the module does not hold on to it
    module = _load_for_executorch_from_buffer(buffer, data_map_buffer=one_data_file(program), enable_etdump=True)
    try:
        for _ in range(runs + 1):
            module.run_method(method, tuple(leaves_of(cloned(sample))))
    except RuntimeError as error:
        raise refused(program, method, error) from error
    blocks = _blocks(module)
    load = [event for block in blocks for event in block.events if event.name == _LOAD]
    events = [event for block in blocks if block.name == "Execute" for event in block.events]
    if not events:
        raise UsageError(
            "the runtime of this host records no events",
            hint="Install an executorch whose runtime was built with the event tracer; the wheels are.",
        )
    whole = next(event for event in events if event.name == _RUN)
    return Timings(
        load=_median(load[0]) if load else 0.0,
        run=_median(whole),
        kernels=tuple(_kernels(events, names, program.methods[method])),
    )


def _blocks(module: Any) -> list[Any]:
    from executorch.devtools import Inspector

    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = str(Path(folder) / "etdump")
        module.write_etdump_result_to_file(path)
        return list(Inspector(etdump_path=path).event_blocks)


@contextmanager
def _quiet() -> Iterator[None]:
    """The inspector warns that values were not recorded."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _kernels(events: list[Any], names: list[str], about: Mapping[str, Any]) -> Iterator[KernelTime]:
    calls = [event for event in events if event.name == _DELEGATE or event.name.startswith(_NATIVE)]
    total = sum(_median(event) for event in calls) or 1.0
    inside = [event for event in events if event.is_delegated_op]
    for event in calls:
        at = event._instruction_id
        name = names[at] if at < len(names) else event.name.removeprefix(_NATIVE)
        yield _kernel(event, at, name, "", _median(event) / total)
        if event.name == _DELEGATE:
            for one in inside:
                if one._instruction_id == at:
                    yield _kernel(one, at, one.name, name, None)


def _kernel(event: Any, instruction: int, name: str, inside: str, share: float | None) -> KernelTime:
    times = _times(event)
    return KernelTime(instruction, name, inside, statistics.median(times), min(times), max(times), share)


def _times(event: Any) -> list[float]:
    """Return the times of an event in milliseconds, the first run left out where there are more."""
    times = [float(one) for one in event.perf_data.raw] if event.perf_data is not None else [0.0]
    return times[1:] or times


def _median(event: Any) -> float:
    return statistics.median(_times(event))
