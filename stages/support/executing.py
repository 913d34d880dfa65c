"""Calling programs of every kind on the same inputs: eager and captured ones in Python, a `.pte` in the runtime."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from etgraph.artifact import Artifact, Executorch, Inputs
from etgraph.errors import UsageError

#: Computes the outputs of a method as a flat list, from the start state each time.
Call = Callable[[Inputs], list[Any]]


def in_order_of_export(samples: Sequence[Inputs], source: Artifact, method: str) -> tuple[Inputs, ...]:
    """Put keyword inputs into the order that they were exported with; a `.pte` takes inputs by position.

    Raises:
        UsageError: these are not the inputs that there were at export.
    """
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


def leaves_of(sample: Inputs) -> list[Any]:
    """Return a sample's values in the order in which a captured program takes them; None counts as one."""
    return pytree.tree_leaves((sample.args, dict(sample.kwargs)), is_leaf=lambda v: v is None)


def cloned(sample: Inputs) -> Inputs:
    """Copy tensors, layout included: a model may write into its inputs."""

    def clone(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(clone, (sample.args, dict(sample.kwargs)))
    return Inputs(*args, **kwargs)


class InRuntime:
    """Executes methods of a `.pte`; loads it when asked, again for each sample of a method that keeps state."""

    def __init__(self, program: Executorch) -> None:
        self.program = program
        self.buffer = program.buffer
        self.loaded: dict[str, Any] = {}

    def __call__(self, method: str, sample: Inputs) -> list[Any]:
        """Return what the method of the `.pte` returns: what it writes into inputs first, then its outputs."""
        inputs = leaves_of(cloned(sample))
        stateful = self.program.methods[method].get("mutates_buffers", True)
        execute = None if stateful else self.loaded.get(method)
        if execute is None:
            execute = self.loaded[method] = self._load(method)
        try:
            return list(execute(inputs))
        except RuntimeError as error:
            raise refused(self.program, method, error) from error

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

        data = one_data_file(self.program)
        module = _load_for_executorch_from_buffer(self.buffer, data_map_buffer=data)
        return lambda inputs: module.run_method(method, tuple(inputs))


def one_data_file(program: Executorch) -> bytes | None:
    """Return the bytes of the data file, of which the Python runtime takes one."""
    files = program.data_files
    if len(files) > 1:
        raise UsageError(
            f"this program keeps its weights in {len(files)} data files ({', '.join(files)}), and the Python "
            "runtime takes one",
            hint="Verify with one external file, or on the device.",
        )
    return next(iter(files.values()), None)


def refused(program: Executorch, method: str, error: Exception) -> UsageError:
    """Say what a method takes, where the runtime refuses the inputs that it was given."""
    described = "; ".join(map(_input_words, program.methods[method]["inputs"]))
    return UsageError(
        f"the runtime refuses these inputs of method {method!r} ({error}); it takes {described}",
        hint="Dynamic sizes have bounds, and a plain number is fixed at export: give inputs like those at "
        "export. The runtime's own log says which it was.",
    )


def _input_words(described: Mapping[str, Any]) -> str:
    if described["type"] != "tensor":
        return f"a {described['type']} as at export"
    bound = " at most" if described.get("dynamic") else ""
    return f"{described['dtype']}{described['shape']}{bound}"


def in_python(artifact: Artifact, method: str, *, eval_mode: bool = False) -> Call:
    """Return a function that computes what a method computes, and leaves its state as it was.

    Args:
        artifact: of any kind but `executorch`.
        eval_mode: call an eager module as its `eval()` would be.
    """
    held = artifact.methods[method]
    if artifact.kind == "prepared":
        return _observed(held)
    if artifact.kind == "module":
        owner, call = getattr(held, "__self__", held), held
    else:
        owner = call = held.module()

    def compute(sample: Inputs) -> list[Any]:
        given = cloned(sample)
        with torch.no_grad(), unchanged(owner, eval_mode and artifact.kind == "module"):
            outputs = pytree.tree_leaves(call(*given.args, **given.kwargs))
            # An output may be a buffer, which gets its old value back when the block is left.
            return [one.clone() if isinstance(one, torch.Tensor) else one for one in outputs]

    return compute


def _observed(module: Any) -> Call:
    """Call a copy each time: observers take in what they see, and grow."""

    def compute(sample: Inputs) -> list[Any]:
        given = cloned(sample)
        with torch.no_grad():
            return pytree.tree_leaves(copy.deepcopy(module)(*given.args, **given.kwargs))

    return compute


@contextmanager
def unchanged(module: Any, evaluating: bool) -> Iterator[None]:
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


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


def check_layout(method: str, sample: Inputs, program: Executorch) -> None:
    """Refuse inputs in another memory layout than at export: the runtime reads them as if they were in that one."""
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


def mutated_before_outputs(program: Executorch, method: str, got: int, wanted: int) -> list[str]:
    """Name what a method of the `.pte` returns before its outputs: inputs that it writes into.

    Args:
        got, wanted: how many values it returned, and how many outputs the source has.
    """
    roles = [output.get("role", "output") for output in program.methods[method]["outputs"]]
    mutated = [role for role in roles if role != "output"]
    if not mutated and got > wanted:
        mutated = ["a mutated input"] * (got - wanted)
    if got - len(mutated) != wanted:
        raise UsageError(
            f"method {method!r} gives {got - len(mutated)} outputs on the runtime and {wanted} in the source program",
            hint="The two are not the same program.",
        )
    return mutated
