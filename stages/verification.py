"""Execute a `.pte` in the ExecuTorch runtime of this host and compare it with the program that it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs, Prepared
from etgraph.errors import UsageError
from etgraph.inputs import samples_by_method
from etgraph.result import Verification


@etgraph.service("verify")
def verify(program: Executorch, source: Artifact, inputs: Any = None) -> Verification:
    """Compare a `.pte` with its source on inputs; the example inputs when none are given.

    Raises:
        BackendUnavailableError: this host's runtime lacks a backend or a kernel that the program needs.
        UsageError: there is nothing to compare with, or no inputs to do it on.
    """
    if isinstance(source, Executorch | Prepared):
        raise UsageError(
            f"the run began with a program at {source.kind}, so there is nothing to compare its outputs with",
            hint="Run from the module, or from an exported, quantized, edge or lowered program.",
        )
    from stages.support.runtime import check_host

    samples = _samples(program, source, inputs)
    check_host(program)
    errors: dict[str, tuple[float, ...]] = {}
    relative: dict[str, tuple[float, ...]] = {}
    snr: dict[str, tuple[float, ...]] = {}
    notes: list[str] = []
    runner = _Runner(program)
    for method, given in samples.items():
        reference = _reference(source, method, program)
        pairs = [_compared(method, sample, reference, runner, program, notes) for sample in given]
        errors[method] = tuple(max(column) for column in zip(*(p[0] for p in pairs), strict=True))
        relative[method] = tuple(max(column) for column in zip(*(p[1] for p in pairs), strict=True))
        snr[method] = tuple(min(column) for column in zip(*(p[2] for p in pairs), strict=True))
    return Verification(
        errors,
        relative=relative,
        snr=snr,
        samples={method: len(given) for method, given in samples.items()},
        notes=tuple(dict.fromkeys(notes)),
    )


def _samples(program: Executorch, source: Artifact, inputs: Any) -> dict[str, tuple[Inputs, ...]]:
    given: Mapping[str, tuple[Inputs, ...]]
    if inputs is not None:
        given = samples_by_method(inputs, program.methods)
    else:
        given = source.example_inputs or program.example_inputs
    missing = sorted(set(program.methods) - set(given)) if inputs is None else []
    if missing or not given:
        raise UsageError(
            f"there are no example inputs for {', '.join(missing) or 'any method'} to verify with",
            hint="Give inputs: result.verify(inputs), or example_inputs to etgraph.run.",
        )
    return {method: _ordered(samples, source, method) for method, samples in given.items()}


def _ordered(samples: Sequence[Inputs], source: Artifact, method: str) -> tuple[Inputs, ...]:
    """Put keyword inputs into the order that they were exported with; a `.pte` takes inputs by position."""
    exported = source.example_inputs.get(method)
    if not exported:
        return tuple(samples)
    order = list(exported[0].kwargs)
    ordered = []
    for sample in samples:
        if set(sample.kwargs) != set(order) or len(sample.args) != len(exported[0].args):
            raise UsageError(
                f"method {method!r} was exported with {exported[0]!r} and is to be verified with {sample!r}",
                hint="Give the same positional and keyword inputs as at export.",
            )
        ordered.append(Inputs(*sample.args, **{name: sample.kwargs[name] for name in order}))
    return tuple(ordered)


class _Runner:
    """Loads the program when asked, again for each sample of a method that keeps state."""

    def __init__(self, program: Executorch) -> None:
        self.program = program
        self.buffer = program.buffer
        self.loaded: dict[str, Any] = {}

    def __call__(self, method: str, inputs: Sequence[Any]) -> list[Any]:
        stateful = self.program.methods[method].get("mutates_buffers", True)
        execute = None if stateful else self.loaded.get(method)
        if execute is None:
            execute = self.loaded[method] = self._load(method)
        try:
            return list(execute(inputs))
        except RuntimeError as error:
            described = "; ".join(map(_input_words, self.program.methods[method]["inputs"]))
            raise UsageError(
                f"the runtime refuses these inputs of method {method!r} ({error}); it takes {described}",
                hint="Dynamic sizes have bounds, and a plain number is fixed at export: give inputs like those at "
                "export. The runtime's own log says which it was.",
            ) from error

    def _load(self, method: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
        if self.program.data_pieces:
            return self._load_with_data(method)
        from executorch.runtime import Runtime

        loaded = Runtime.get().load_program(self.buffer).load_method(method)
        if loaded is None:
            raise UsageError(f"the runtime cannot load method {method!r} of this program")
        return loaded.execute

    def _load_with_data(self, method: str) -> Callable[[Sequence[Any]], Sequence[Any]]:
        from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

        files = self.program.data_files
        if len(files) > 1:
            raise UsageError(
                f"this program keeps its weights in {len(files)} data files ({', '.join(files)}), and the Python "
                "runtime takes one",
                hint="Verify with one external file, or on the device.",
            )
        module = _load_for_executorch_from_buffer(self.buffer, data_map_buffer=next(iter(files.values())))
        return lambda inputs: module.run_method(method, tuple(inputs))


def _input_words(described: Mapping[str, Any]) -> str:
    if described["type"] != "tensor":
        return f"a {described['type']} as at export"
    bound = " at most" if described.get("dynamic") else ""
    return f"{described['dtype']}{described['shape']}{bound}"


Reference = Callable[[Inputs], list[Any]]


def _reference(source: Artifact, method: str, program: Executorch) -> Reference:
    """Return a function that computes what the source computes, as a flat list, and leaves its state as it was."""
    import torch
    from torch.utils import _pytree as pytree

    held = source.methods[method]
    if source.kind == "module":
        owner = getattr(held, "__self__", held)
        call = held
    else:
        owner = call = held.module()
    evaluating = any(
        step.stage == "torch_export" and ("eval_mode", "True") in step.options for step in program.provenance
    )

    def compute(sample: Inputs) -> list[Any]:
        copied = _cloned(sample)
        with torch.no_grad(), _unchanged(owner, evaluating and source.kind == "module"):
            outputs = pytree.tree_leaves(call(*copied.args, **copied.kwargs))
            # An output may be a buffer, which gets its old value back when the block is left.
            return [one.clone() if isinstance(one, torch.Tensor) else one for one in outputs]

    return compute


@contextmanager
def _unchanged(module: Any, evaluating: bool) -> Iterator[None]:
    """Give a module its buffers and training flags back after it was called."""
    buffers = {name: value.detach().clone() for name, value in module.named_buffers()}
    flags = {child: child.training for child in module.modules()}
    if evaluating:
        module.eval()
    try:
        yield
    finally:
        for child, flag in flags.items():
            child.training = flag
        for name, value in module.named_buffers():
            # One that did not change is left alone: an expanded one cannot be written to.
            if name in buffers and not _same(value, buffers[name]):
                value.data.copy_(buffers[name])


def _same(one: Any, other: Any) -> bool:
    import torch

    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


def _cloned(sample: Inputs) -> Inputs:
    """Copy tensors, layout included: the model may write into its inputs."""
    import torch
    from torch.utils import _pytree as pytree

    def clone(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(clone, (sample.args, dict(sample.kwargs)))
    return Inputs(*args, **kwargs)


def _compared(
    method: str,
    sample: Inputs,
    reference: Reference,
    runner: _Runner,
    program: Executorch,
    notes: list[str],
) -> tuple[tuple[float, ...], ...]:
    """Return the absolute errors, the relative errors and the signal-to-noise ratios of the outputs for one sample."""
    from torch.utils import _pytree as pytree

    _check_layout(method, sample, program)
    wanted = reference(sample)
    copied = _cloned(sample)
    got = runner(method, pytree.tree_leaves((copied.args, dict(copied.kwargs)), is_leaf=lambda v: v is None))
    roles = [output.get("role", "output") for output in program.methods[method]["outputs"]]
    mutated = [role for role in roles if role != "output"]
    if not mutated and len(got) > len(wanted):
        mutated = ["a mutated input"] * (len(got) - len(wanted))
    if mutated:
        notes.append(
            f"method {method!r} of the .pte returns {len(mutated)} more: {', '.join(mutated)}, before its outputs"
        )
    got = got[len(mutated) :]
    if len(got) != len(wanted):
        raise UsageError(
            f"method {method!r} gives {len(got)} outputs on the runtime and {len(wanted)} in the source program",
            hint="The two are not the same program.",
        )
    differences = [_difference(a, b) for a, b in zip(got, wanted, strict=True)]
    return tuple(zip(*differences, strict=True)) or ((), (), ())


def _check_layout(method: str, sample: Inputs, program: Executorch) -> None:
    """Refuse inputs in another memory layout than at export: the runtime reads them as if they were in that one."""
    import torch
    from torch.utils import _pytree as pytree

    exported = program.example_inputs.get(method)
    if not exported:
        return
    given = pytree.tree_leaves((sample.args, dict(sample.kwargs)))
    at_export = pytree.tree_leaves((exported[0].args, dict(exported[0].kwargs)))
    for position, (one, other) in enumerate(zip(given, at_export, strict=False)):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.dim() != other.dim():
            continue
        if one.dim_order() != other.dim_order():
            raise UsageError(
                f"input {position} of method {method!r} is laid out in memory as {one.dim_order()}, and the program "
                f"was exported for {other.dim_order()}; the runtime would compute wrong values without a word",
                hint="Call .contiguous() (or .to(memory_format=...)) so that it is as at export.",
            )


def _difference(got: Any, wanted: Any) -> tuple[float, float, float]:
    """Return the largest absolute error, the largest relative to the largest value, and the ratio in dB."""
    import torch

    if wanted is None or isinstance(wanted, str):
        return (0.0, 0.0, math.inf) if got == wanted else (math.inf, math.inf, -math.inf)
    a, b = torch.as_tensor(got), torch.as_tensor(wanted)
    if a.shape != b.shape:
        return math.inf, math.inf, -math.inf
    if not b.numel():
        return 0.0, 0.0, math.inf
    a, b = a.to(torch.float64), b.to(torch.float64)
    same = (a == b) | (a.isnan() & b.isnan())
    gap = torch.where(same, torch.zeros_like(a), (a - b).abs()).nan_to_num(nan=math.inf)
    absolute = float(gap.max())
    scale = float(b[b.isfinite()].abs().max()) if bool(b.isfinite().any()) else 0.0
    return absolute, absolute / scale if scale else absolute, _decibel(b[b.isfinite()], gap)


def _decibel(wanted: Any, gap: Any) -> float:
    """Return ten times the logarithm of the energy of a signal over that of an error."""
    signal, noise = float(wanted.square().sum()), float(gap.square().sum())
    if noise == 0.0:
        return math.inf
    return 10.0 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf
