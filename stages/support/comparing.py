"""The same inputs through every form of a program, and the node where the numbers first go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from etgraph.artifact import Artifact, Executorch, Inputs
from etgraph.errors import EtgraphError, UsageError
from etgraph.numerics import (
    QUANTIZED_SNR,
    Comparison,
    NodeNumbers,
    StageNumbers,
    Suspect,
    Tolerance,
)

if TYPE_CHECKING:
    from stages.support.node_values import Compared
    from stages.support.output_numbers import Outputs

#: Two forms of a quantized program may round differently here and there, and lie this much closer in dB than it lies
#: to the program before it was quantized.
_CLOSER = 10.0
#: Above this relative error nothing of an output is right.
_AS_A_WHOLE = 0.5
#: Below this relative error two forms of a program compute the same, and differ in the order of sums at most.
_EXACT = 1e-5

__all__ = ["ComparedStages"]

Samples = Mapping[str, Sequence[Inputs]]


class ComparedStages:
    """Programs that are forms of one another, executed on the same inputs.

    Args:
        stages: the programs in order, each with what made it; the first is what all are compared with.
        samples: method to inputs.
        snr: the signal-to-noise ratio in dB that is fit for the precision of the last program.
    """

    def __init__(self, stages: Sequence[tuple[str, Artifact]], samples: Samples, snr: float | None) -> None:
        from stages.support.executing import in_order_of_export

        self.stages = stages
        source = stages[0][1]
        self.samples = {m: in_order_of_export(given, source, m) for m, given in samples.items()}
        self.snr = snr
        self.notes: list[str] = []
        self.evaluating = any(
            step.stage == "torch_export" and ("eval_mode", "True") in step.options for step in stages[-1][1].provenance
        )

    def comparison(self, inputs: str) -> Comparison:
        """Compare the outputs of all, and look inside of the first that is off; `inputs` are they in words."""
        from stages.support.output_numbers import numbers

        wanted = self._outputs(self.stages[0][1], first=True)
        found: list[StageNumbers] = []
        previous = wanted
        before: Artifact | None = None
        suspects: list[Suspect] = []
        nodes: list[NodeNumbers] = []
        for stage, artifact in self.stages:
            entry = StageNumbers(stage, str(artifact.kind), **self._tolerances(artifact))
            try:
                got = wanted if not found else self._outputs(artifact)
            except Exception as error:
                entry = _not_executed(entry, error)
                found.append(entry)
                if entry.failed and artifact.kind != "executorch" and all(one.masked for one in suspects):
                    suspects += self._where_it_fails(entry, artifact)
                continue
            entry = replace(entry, outputs=tuple(numbers(entry, wanted, previous, got)))
            self._note_tiny(entry)
            found.append(entry)
            if before is not None and not entry.within and all(one.masked for one in suspects):
                more, listed = self._look_inside(entry, before, artifact, previous, got)
                suspects, nodes = [*suspects, *more], [*nodes, *listed]
            elif before is not None and not suspects and artifact.kind != "executorch":
                suspects, nodes = self._look_for_masked(entry, before, artifact)
            previous, before = got, artifact
        return Comparison(
            stages=tuple(found),
            inputs=inputs,
            samples={method: len(given) for method, given in self.samples.items()},
            nodes=tuple(nodes),
            suspects=tuple(suspects),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _note_tiny(self, entry: StageNumbers) -> None:
        """Say of outputs that are off as a whole that they pass because they are tiny."""
        for one in entry.outputs:
            if one.within and one.source.relative > _AS_A_WHOLE and one.source.absolute > 0.0:
                self.notes.append(
                    f"output {one.output} of method {one.method!r} at {entry.kind} is off by as much as its largest "
                    f"value, and within tolerance only because that is {one.source.absolute:.1e}: try other inputs"
                )

    # -- tolerance -----------------------------------------------------------------------------------------------------

    def _tolerances(self, artifact: Artifact) -> dict[str, Tolerance]:
        """Say what is allowed against the source, and against the stage before."""
        from stages.support.output_numbers import is_quantized

        in_runtime = artifact.kind == "executorch"
        if is_quantized(artifact) or (in_runtime and any(is_quantized(one) for _, one in self.stages)):
            far = self.snr if self.snr is not None else QUANTIZED_SNR
            close = far if in_runtime or not is_quantized(self._before(artifact)) else far + _CLOSER
            own = close if is_quantized(self.stages[0][1]) else far
            return {"tolerance": Tolerance(snr=own), "step_tolerance": Tolerance(snr=close)}
        runtime = Tolerance(snr=self.snr) if in_runtime else Tolerance()
        return {"tolerance": runtime, "step_tolerance": runtime}

    def _before(self, artifact: Artifact) -> Artifact:
        position = next(i for i, (_, one) in enumerate(self.stages) if one is artifact)
        return self.stages[max(0, position - 1)][1]

    # -- outputs -------------------------------------------------------------------------------------------------------

    def _outputs(self, artifact: Artifact, *, first: bool = False) -> Outputs:
        from stages.support.executing import check_layout, in_python

        if isinstance(artifact, Executorch):
            return self._outputs_in_runtime(artifact)
        found: Outputs = {}
        for method, given in self.samples.items():
            call = in_python(artifact, method, eval_mode=self.evaluating)
            last = self.stages[-1][1]
            if isinstance(last, Executorch) and first:
                for sample in given:
                    check_layout(method, sample, last)
            try:
                found[method] = [call(sample) for sample in given]
            except Exception as error:
                if not first or isinstance(error, EtgraphError):
                    raise
                raise UsageError(
                    f"method {method!r} of the program at {artifact.kind} fails on these inputs: {_first_line(error)}",
                    hint="Give inputs that it takes: inputs=(...), of the sizes and dtypes that it was made for.",
                ) from error
        return found

    def _outputs_in_runtime(self, program: Executorch) -> Outputs:
        from stages.support.executing import InRuntime
        from stages.support.runtime import check_host

        check_host(program)
        runner = InRuntime(program)
        found: Outputs = {}
        for method, given in self.samples.items():
            roles = [output.get("role", "output") for output in program.methods[method]["outputs"]]
            mutated = sum(role != "output" for role in roles)
            if mutated:
                self.notes.append(f"method {method!r} of the .pte returns {mutated} more, inputs that it writes into")
            found[method] = [runner(method, sample)[mutated:] for sample in given]
        return found

    def _where_it_fails(self, entry: StageNumbers, artifact: Artifact) -> list[Suspect]:
        """Name the node that raises an error, in the first method that has one."""
        from stages.support.interpreting import failing_step
        from stages.support.node_words import failing_node

        for method, samples in self.samples.items():
            for sample in samples:
                found = failing_step(artifact.methods[method], sample)
                if found is not None:
                    node = failing_node(artifact.methods[method], found.key, method)
                    words = f"node {node.node} ({node.operator}) ends in {_first_line(found.error)}"
                    return [Suspect(entry.stage, entry.kind, method, words, node)]
        return []

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _look_inside(
        self, entry: StageNumbers, before: Artifact, after: Artifact, previous: Outputs, got: Outputs
    ) -> tuple[list[Suspect], list[NodeNumbers]]:
        from stages.support.output_numbers import worst_sample

        suspects: list[Suspect] = []
        nodes: list[NodeNumbers] = []
        for method in self.samples:
            wrong = [one.output for one in entry.outputs if one.method == method and not one.within]
            if not wrong:
                continue
            sample = self.samples[method][worst_sample(previous[method], got[method], wrong)]
            try:
                compared = self._compared(before, after, method, sample)
            except Exception as error:
                # The figures of the outputs stand; only the search inside of the program failed.
                words = f"its nodes cannot be compared with those of {before.kind}: {_first_line(error)}"
                suspects.append(Suspect(entry.stage, entry.kind, method, words))
                continue
            suspect, listed = _suspect(entry, before, method, compared, wrong)
            suspects.append(_about_start_values(suspect, before, after, method))
            nodes.extend(listed)
        return suspects, nodes

    def _look_for_masked(
        self, entry: StageNumbers, before: Artifact, after: Artifact
    ) -> tuple[list[Suspect], list[NodeNumbers]]:
        """Look for nodes that are off in a program whose outputs are within tolerance, and not exactly right."""
        from stages.support.first_bad import Found, first_off_inside
        from stages.support.node_words import node_numbers, words
        from stages.support.output_numbers import is_quantized

        tolerance = entry.step_tolerance
        if is_quantized(after) and not is_quantized(before) and tolerance.snr is not None:
            # Single nodes of a program of few bits are noisier than its outputs.
            tolerance = replace(tolerance, snr=tolerance.snr - _CLOSER)
        for method, samples in self.samples.items():
            if all(one.previous.relative < _EXACT for one in entry.outputs if one.method == method):
                continue
            try:
                compared = self._compared(before, after, method, samples[0])
            except Exception:  # nothing is wrong with the outputs, and nobody has asked about the nodes
                continue
            right = {key: tolerance.holds_for(gap) for key, gap in compared.gaps.items()}
            key = first_off_inside(compared.after, right)
            if key is not None:
                numbers = node_numbers(compared, method, tolerance)
                said = words(compared, numbers, Found(key), (str(before.kind), entry.kind))
                return [Suspect(entry.stage, entry.kind, method, said, numbers.get(key), masked=True)], [
                    *numbers.values()
                ]
        return [], []

    def _compared(self, before: Artifact, after: Artifact, method: str, sample: Inputs) -> Compared:
        from stages.support.executing import in_python
        from stages.support.node_values import compare_captured, compare_with_eager
        from stages.support.runtime_values import compare_in_runtime

        if before.kind == "executorch" or after.kind == "module":
            raise UsageError(f"a program at {before.kind} shows no values of nodes that {after.kind} could be held to")
        if isinstance(after, Executorch):
            if before.kind not in ("edge", "lowered"):
                raise UsageError(f"it was made from an edge program, and a program at {before.kind} is given")
            return compare_in_runtime(before.methods[method], after, method, sample)
        if before.kind == "module":
            call = in_python(before, method, eval_mode=self.evaluating)
            return compare_with_eager(before, method, after.methods[method], call, sample)
        return compare_captured(before.methods[method], after.methods[method], sample)


def _suspect(
    entry: StageNumbers, before: Artifact, method: str, compared: Compared, wrong: list[int]
) -> tuple[Suspect, list[NodeNumbers]]:
    from stages.support.first_bad import first_bad
    from stages.support.node_words import node_numbers, words

    tolerance = entry.step_tolerance
    numbers = node_numbers(compared, method, tolerance)
    right = {key: tolerance.holds_for(gap) for key, gap in compared.gaps.items()}
    found = first_bad(compared.after, right, compared.groups, wrong)
    said = words(compared, numbers, found, (str(before.kind), entry.kind))
    node = numbers.get(found.key) if found.key is not None else None
    return Suspect(entry.stage, entry.kind, method, said, node), list(numbers.values())


def _about_start_values(suspect: Suspect, before: Artifact, after: Artifact, method: str) -> Suspect:
    """Say which buffer starts from another value in a `.pte`, where the first bad node reads one that is updated."""
    if not isinstance(after, Executorch):
        return suspect
    from stages.support.emitted import buffers_with_start_value

    program = before.methods[method]
    signature = program.graph_signature
    started = []
    for name in sorted(set(signature.buffers_to_mutate.values())):
        value = program.state_dict.get(name, program.constants.get(name))
        if value is not None and bool(value.detach().ne(0).any()):
            started.append(name)
    if not started or buffers_with_start_value(after.buffer, method) >= len(started):
        return suspect
    lost = f"buffer {', '.join(started)} does not start at zero in {before.kind}, and the .pte keeps no start value"
    return replace(suspect, words=f"{suspect.words}. {lost}")


def _not_executed(entry: StageNumbers, error: Exception) -> StageNumbers:
    """Say why; an operator without a kernel here, or a backend that this host lacks, is nobody's fault."""
    if isinstance(error, EtgraphError):
        # What the runtime itself raises is the cause of such an error.
        return replace(entry, reason=error.problem, failed=isinstance(error.__cause__, RuntimeError))
    # torch raises NotImplementedError for an operator that has no kernel on this host.
    return replace(entry, reason=_first_line(error), failed=not isinstance(error, NotImplementedError))


def _first_line(error: BaseException) -> str:
    said: Any = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
