"""Who holds the memory of a method at its peak, by the values and the instructions of the program itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from executorch.exir.schema import DelegateCall, ExecutionPlan, KernelCall, Tensor
from executorch.exir.tensor import get_scalar_type

from etgraph.profiles import Holder, MemoryArena


def arenas_of(plan: ExecutionPlan, lines_of: Callable[[int], tuple[str, ...]]) -> tuple[MemoryArena, ...]:
    """Return the arenas of a method.

    A tensor is held from the instruction that touches it first to the one that touches it last; inputs from the
    start, outputs to the end, and buffers, which keep their values between runs, all the time.

    Args:
        lines_of: instruction to the lines of the model that it stands for.
    """
    names = instruction_names(plan)
    spans = _spans(plan, len(names))
    arenas = []
    for memory_id, nbytes in enumerate(plan.non_const_buffer_sizes):
        held = {value: span for value, span in spans.items() if _memory_id(plan, value) == memory_id}
        if memory_id == 0 or not held:
            continue
        sizes = [
            _covered([_place(plan, value) for value, (first, last) in held.items() if first <= at <= last])
            for at in range(max(1, len(names)))
        ]
        peak = sizes.index(max(sizes))
        holding = _without_views(plan, [value for value, (first, last) in held.items() if first <= peak <= last])
        holders = [
            Holder(value, _words(plan, value), _nbytes(plan, value), *_role(plan, value, names, lines_of))
            for value in holding
        ]
        at = f"at instruction {peak} ({names[peak]})" if names else "without any instruction"
        ordered = tuple(sorted(holders, key=lambda holder: -holder.nbytes))
        arenas.append(MemoryArena(memory_id, int(nbytes), max(sizes), at, ordered))
    return tuple(arenas)


def instruction_names(plan: ExecutionPlan) -> list[str]:
    """Name what each instruction calls, over all chains in order."""
    return [_name(plan, one) for chain in plan.chains for one in chain.instructions]


def _name(plan: ExecutionPlan, instruction: Any) -> str:
    called = instruction.instr_args
    if isinstance(called, KernelCall):
        operator = plan.operators[called.op_index]
        return f"{operator.name}.{operator.overload}".rstrip(".")
    if isinstance(called, DelegateCall):
        return str(plan.delegates[called.delegate_index].id)
    return type(called).__name__


def _touched(plan: ExecutionPlan) -> Iterator[tuple[int, int]]:
    """Give each instruction's number with each value that it names, lists of tensors opened."""
    position = 0
    for chain in plan.chains:
        for instruction in chain.instructions:
            for value in getattr(instruction.instr_args, "args", ()):
                yield position, value
                for inner in getattr(plan.values[value].val, "items", None) or ():
                    if isinstance(inner, int) and 0 <= inner < len(plan.values) and _is_list(plan, value):
                        yield position, inner
            position += 1


def _is_list(plan: ExecutionPlan, value: int) -> bool:
    return "TensorList" in type(plan.values[value].val).__name__


def _spans(plan: ExecutionPlan, count: int) -> dict[int, tuple[int, int]]:
    """Return, for each planned tensor, the first and the last instruction at which it is held."""
    touched: dict[int, list[int]] = defaultdict(list)
    for position, value in _touched(plan):
        touched[value].append(position)
    spans = {}
    for value in range(len(plan.values)):
        if not _is_planned(plan, value):
            continue
        at = touched.get(value, [])
        whole = _keeps(plan, value) or not at
        first = 0 if whole or value in plan.inputs else at[0]
        last = max(0, count - 1) if whole or value in plan.outputs else at[-1]
        spans[value] = (first, last)
    return spans


def _is_planned(plan: ExecutionPlan, value: int) -> bool:
    held = plan.values[value].val
    return isinstance(held, Tensor) and held.allocation_info is not None


def _keeps(plan: ExecutionPlan, value: int) -> bool:
    """Whether it is a buffer: it comes with a value to start from, or gets a new one that outlives the run."""
    if not _is_planned(plan, value) or value in plan.inputs:
        return False
    if plan.values[value].val.data_buffer_idx:
        return True
    return any(
        isinstance(one.instr_args, KernelCall)
        and plan.operators[one.instr_args.op_index].name == "aten::copy_"
        and one.instr_args.args[0] == value
        for chain in plan.chains
        for one in chain.instructions
    )


def _place(plan: ExecutionPlan, value: int) -> tuple[int, int]:
    """Return where a tensor begins in its arena, and where it ends."""
    info = plan.values[value].val.allocation_info
    start = (int(info.memory_offset_high) << 32) + int(info.memory_offset_low)
    return start, start + _nbytes(plan, value)


def _covered(places: list[tuple[int, int]]) -> int:
    """Return how many bytes are covered; views of one tensor lie in one place."""
    total, reached = 0, 0
    for start, end in sorted(places):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _without_views(plan: ExecutionPlan, values: list[int]) -> list[int]:
    """Leave out tensors that lie inside of others."""
    kept: list[int] = []
    for value in sorted(values, key=lambda one: -_nbytes(plan, one)):
        start, end = _place(plan, value)
        if not any(_place(plan, one)[0] <= start and end <= _place(plan, one)[1] for one in kept):
            kept.append(value)
    return kept


def _memory_id(plan: ExecutionPlan, value: int) -> int:
    return int(plan.values[value].val.allocation_info.memory_id)


def _nbytes(plan: ExecutionPlan, value: int) -> int:
    held = plan.values[value].val
    return prod(held.sizes) * get_scalar_type(held.scalar_type).itemsize


def _words(plan: ExecutionPlan, value: int) -> str:
    held = plan.values[value].val
    name = str(get_scalar_type(held.scalar_type)).removeprefix("torch.")
    bound = "" if held.shape_dynamism.name == "STATIC" else " at most"
    return f"{name}[{', '.join(map(str, held.sizes))}]{bound}"


def _role(
    plan: ExecutionPlan, value: int, names: list[str], lines_of: Callable[[int], tuple[str, ...]]
) -> tuple[str, tuple[str, ...]]:
    """Say what a tensor is, and of one that an instruction writes the lines that it comes from."""
    if value in plan.inputs:
        return f"input {list(plan.inputs).index(value)}", ()
    if _keeps(plan, value):
        return "buffer", ()
    first = next((position for position, touched in _touched(plan) if touched == value), None)
    if first is None:
        return "not used", ()
    role = f"output {list(plan.outputs).index(value)}, " if value in plan.outputs else ""
    return f"{role}of instruction {first} ({names[first]})", lines_of(first)
