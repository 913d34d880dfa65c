"""The inside of a `.pte`: its calls, constants, delegates, and where its bytes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3
from executorch.exir import schema
from executorch.exir._serialize._program import _get_extended_header, deserialize_pte_binary
from executorch.exir.scalar_type import ScalarType

from etgraph.artifact import Executorch
from stages.support.calls import PORTABLE, Call

__all__ = [
    "DTYPES",
    "EmittedBlob",
    "EmittedMethod",
    "EmittedProgram",
    "emitted_program",
    "instruction_lines",
    "output_constants",
]


@dataclass(frozen=True)
class EmittedBlob:
    """Bytes in a program: a constant tensor, a delegate's, or data by name.

    Args:
        name: what it is; of a constant dtype and shape.
        bytes: how many.
        digest: blake3.
        options: of a delegate its compile specs.
    """

    name: str
    bytes: int
    digest: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EmittedMethod:
    """One method.

    Args:
        calls: the kernel calls, in order.
        delegates: in the order of their definition; `name` is the backend.
        constants: the tensors that are given with the program.
        placement: what the memory plan says of each tensor, in order.
        flags: of each tensor the parts of its description that change no result, such as `requires_grad`.
    """

    calls: tuple[Call, ...]
    delegates: tuple[EmittedBlob, ...]
    constants: tuple[EmittedBlob, ...]
    placement: tuple[str, ...]
    flags: tuple[str, ...]
    plan: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class EmittedProgram:
    """A whole program.

    Args:
        sections: the name of each section to its size in bytes; they add up to the whole file but for padding.
        program_bytes: the part of the file before the segments.
    """

    methods: dict[str, EmittedMethod]
    named_data: tuple[EmittedBlob, ...]
    sections: dict[str, int]
    program_bytes: int


def emitted_program(artifact: Executorch) -> EmittedProgram:
    """Take a program apart. Constant methods are left out where the artifact names its methods."""
    buffer = artifact.buffer
    file = deserialize_pte_binary(buffer)
    program = file.program
    plans = {plan.name: plan for plan in program.execution_plan if plan.name in artifact.methods}
    named = file.named_data
    data = (
        tuple(blob(key, named.buffers[entry.buffer_index]) for key, entry in sorted(named.pte_data.items()))
        if named is not None
        else ()
    )
    header = _get_extended_header(buffer)
    size = header.program_size if header is not None and header.is_valid() else len(buffer)
    methods = {name: _method(program, plans[name]) for name in artifact.methods if name in plans}
    return EmittedProgram(methods, data, _sections(artifact, program, methods, data, size), size)


def _sections(
    artifact: Executorch,
    program: schema.Program,
    methods: dict[str, EmittedMethod],
    data: Sequence[EmittedBlob],
    size: int,
) -> dict[str, int]:
    sections = {
        "the whole file": artifact.nbytes,
        "program": size,
        "constants": sum(len(one.storage) for one in program.constant_buffer),
        "delegates": sum(len(one.data) for one in program.backend_delegate_data),
        "data by name": sum(one.bytes for one in data),
    }
    for name, pieces in artifact.data_pieces.items():
        sections[f"data file {name}"] = sum(map(len, pieces))
    for name, method in methods.items():
        for backend in dict.fromkeys(one.name for one in method.delegates):
            inside = [one.bytes for one in method.delegates if one.name == backend]
            sections[f"delegates of {backend} in {name}"] = sum(inside)
    return sections


def blob(name: str, data: bytes, options: tuple[tuple[str, str], ...] = ()) -> EmittedBlob:
    """Describe bytes by their digest."""
    return EmittedBlob(name, len(data), str(blake3(data).hexdigest()), options)


def _method(program: schema.Program, plan: schema.ExecutionPlan) -> EmittedMethod:
    tensors = [value.val for value in plan.values if isinstance(value.val, schema.Tensor)]
    return EmittedMethod(
        calls=tuple(_calls(plan)),
        delegates=tuple(_delegate(program, one) for one in plan.delegates),
        constants=tuple(_constants(program, tensors)),
        placement=tuple(_placed(one) for one in tensors),
        flags=tuple(f"requires_grad={one.requires_grad} dim_order={list(one.dim_order)}" for one in tensors),
        plan=plan,
    )


def _delegate(program: schema.Program, delegate: schema.BackendDelegate) -> EmittedBlob:
    data = program.backend_delegate_data[delegate.processed.index].data
    options = tuple((one.key, bytes(one.value).hex()) for one in delegate.compile_specs)
    return blob(delegate.id, bytes(data), options)


def _constants(program: schema.Program, tensors: Sequence[schema.Tensor]) -> Iterator[EmittedBlob]:
    for one in tensors:
        extra = one.extra_tensor_info
        external = extra is not None and extra.location is schema.TensorDataLocation.EXTERNAL
        if external and extra is not None:
            yield EmittedBlob(f"{extra.fully_qualified_name} {_typed(one)} in a data file", 0, "")
        elif one.data_buffer_idx and one.allocation_info is None:
            yield blob(_typed(one), bytes(program.constant_buffer[one.data_buffer_idx].storage))


def _typed(tensor: schema.Tensor) -> str:
    return f"{_dtype(tensor)}[{', '.join(map(str, tensor.sizes))}]"


#: What the schema of a `.pte` calls dtypes, in torch's words.
DTYPES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}


def _dtype(tensor: schema.Tensor) -> str:
    name = ScalarType(tensor.scalar_type).name.lower()
    return DTYPES.get(name, name)


def _placed(tensor: schema.Tensor) -> str:
    info = tensor.allocation_info
    return "" if info is None else f"arena {info.memory_id} at {info.memory_offset}"


def _calls(plan: schema.ExecutionPlan) -> Iterator[Call]:
    for number, call in enumerate(_instructions(plan)):
        if not isinstance(call, schema.KernelCall):
            continue
        arguments = [(str(i), text) for i, one in enumerate(call.args) if (text := _constant(plan, one)) is not None]
        yield Call(_operator(plan, call), PORTABLE, f"instruction {number}", tuple(arguments), _value(plan, call.args))


def _instructions(plan: schema.ExecutionPlan) -> Iterator[Any]:
    for chain in plan.chains:
        for instruction in chain.instructions:
            yield instruction.instr_args


def _operator(plan: schema.ExecutionPlan, call: schema.KernelCall) -> str:
    operator = plan.operators[call.op_index]
    return f"{operator.name}.{operator.overload}".rstrip(".")


def _value(plan: schema.ExecutionPlan, arguments: Sequence[int]) -> str:
    last = plan.values[arguments[-1]].val if arguments else None
    return _typed(last) if isinstance(last, schema.Tensor) else ""


def _constant(plan: schema.ExecutionPlan, index: int) -> str | None:
    """Show a value that is no tensor; None for tensors, and for lists of them."""
    value = plan.values[index].val
    if isinstance(value, schema.Tensor | schema.TensorList | schema.OptionalTensorList):
        return None
    if isinstance(value, schema.IntList):
        return f"[{', '.join(str(_constant(plan, item)) for item in value.items)}]"
    if isinstance(value, schema.Null):
        return "None"
    fields = list(vars(value).values())
    return repr(fields[0]) if fields else type(value).__name__


def output_constants(plan: schema.ExecutionPlan) -> list[str | None]:
    """Return what each output is that is no tensor, as Python shows it; None for tensors."""
    return [_constant(plan, index) for index in plan.outputs]


def instruction_lines(plan: schema.ExecutionPlan) -> list[str]:
    """Return a line for each instruction of a method: what is called, with which values."""
    lines = []
    for number, call in enumerate(_instructions(plan)):
        if isinstance(call, schema.KernelCall):
            text = f"{_operator(plan, call)}({_shown(plan, call.args)})"
        elif isinstance(call, schema.DelegateCall):
            text = f"{plan.delegates[call.delegate_index].id}#{call.delegate_index}({_shown(plan, call.args)})"
        else:
            text = f"{type(call).__name__}({', '.join(f'{k}={v}' for k, v in vars(call).items())})"
        lines.append(f"{number}: {text}")
    return lines


def _shown(plan: schema.ExecutionPlan, arguments: Sequence[int]) -> str:
    shown = []
    for one in arguments:
        constant, value = _constant(plan, one), plan.values[one].val
        tensor = f"%{one}: {_typed(value)}" if isinstance(value, schema.Tensor) else f"%{one}"
        shown.append(tensor if constant is None else constant)
    return ", ".join(shown)
