"""Where the time and the memory of a `.pte` go in the runtime of this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs

if TYPE_CHECKING:
    from etgraph.profiles import KernelTime, MethodProfile, Profile
    from stages.support.record_lines import Lines


@etgraph.service("profile")
def profile_program(
    program: Executorch,
    samples: Mapping[str, Sequence[Inputs]],
    *,
    inputs: str,
    runs: int,
    etrecord: Path | None = None,
    edge: Artifact | None = None,
) -> Profile:
    """Time every method that there are inputs for, on the first sample of each.

    Args:
        etrecord: says which lines of the model kernels stand for.
        edge: says the same, where the program was made in this process: the program before it was lowered.

    Raises:
        BackendUnavailableError: this host's runtime lacks something; said before the program is loaded.
        ArtifactFileError: the ETRecord cannot be read.
    """
    from executorch.exir._serialize._program import deserialize_pte_binary

    from etgraph.profiles import Profile
    from stages.support.record_lines import Lines, lines_of_programs, read_lines
    from stages.support.runtime import check_host

    check_host(program)
    if edge is not None:
        lines = lines_of_programs(edge.methods, program.debug.get("debug_handle_map") or {})
    else:
        lines = read_lines(Path(etrecord), list(program.methods)) if etrecord is not None else Lines()
    plans = {plan.name: plan for plan in deserialize_pte_binary(program.buffer).program.execution_plan}
    methods = {
        method: _method(program, plans[method], method, given[0], runs, lines) for method, given in samples.items()
    }
    return Profile(methods, program.nbytes, runs, inputs, tuple(_notes(program, methods, samples, lines, etrecord)))


def _method(program: Executorch, plan: Any, method: str, sample: Inputs, runs: int, lines: Lines) -> MethodProfile:
    from etgraph.profiles import MethodProfile
    from stages.support.executing import check_layout
    from stages.support.memory_plan import arenas_of, instruction_names
    from stages.support.timings import time_method

    check_layout(method, sample, program)
    times = time_method(program, method, sample, runs, instruction_names(plan))

    def lines_of(instruction: int) -> tuple[str, ...]:
        return lines.of(method, instruction)[1]

    kernels = tuple(_traced(kernel, method, lines) for kernel in times.kernels)
    return MethodProfile(method, times.load, times.run, kernels, arenas_of(plan, lines_of))


def _traced(kernel: KernelTime, method: str, lines: Lines) -> KernelTime:
    """Say what a kernel call stands for; kernels inside of a delegate share what the delegate stands for."""
    if kernel.inside:
        return kernel
    operators, source_lines = lines.of(method, kernel.instruction)
    return replace(kernel, operators=operators, source_lines=source_lines)


def _notes(
    program: Executorch,
    methods: Mapping[str, MethodProfile],
    samples: Mapping[str, Sequence[Inputs]],
    lines: Lines,
    etrecord: Path | None,
) -> list[str]:
    notes = []
    if etrecord is None and not lines.handles:
        notes.append("a .pte has no debug information of its own: --etrecord FILE traces kernels to lines of the model")
    elif etrecord is not None and not _fits(methods, lines):
        notes.append(f"{Path(etrecord).name} seems to be of another program: its operators are not those that ran")
    backends = sorted({kernel.inside for method in methods.values() for kernel in method.kernels if kernel.inside})
    used = sorted({backend for method in methods for backend in program.methods[method].get("backends", ())})
    if used:
        notes.append(f"{', '.join(used)} keeps memory of its own, which is not in the plan")
    silent = sorted(set(used) - set(backends))
    if silent:
        notes.append(f"{', '.join(silent)} does not time its kernels, only calls as a whole")
    if any(len(given) > 1 for given in samples.values()):
        notes.append("of several samples the first was run")
    left_out = sorted(set(program.methods) - set(methods))
    if left_out:
        notes.append(f"no inputs were given for {', '.join(left_out)}, which was not run")
    return notes


def _fits(methods: Mapping[str, MethodProfile], lines: Lines) -> bool:
    """Whether a record is of this program: it knows most kernels that ran, and mostly by the operators that they are.

    Some have no counterpart in the edge program, such as copies back into buffers, and some stand for another operator.
    """
    native = [one for method in methods.values() for one in method.kernels if "::" in one.name]
    known = [one for one in native if one.operators]
    alike = [one for one in known if any(_base(one.name) in operator for operator in one.operators)]
    if not native:
        return set(methods) <= set(lines.handles)
    return 3 * len(known) >= len(native) and 2 * len(alike) >= len(known)


def _base(kernel: str) -> str:
    return kernel.partition("::")[2].partition(".")[0].removesuffix("_copy")
