"""What an emitted ExecuTorch program says about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from executorch.exir.program import ExecutorchProgramManager
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import ExecutionPlan, Program, Tensor

from etgraph.artifact import Artifact, Executorch


def executorch_artifact(
    source: Artifact | None,
    manager: ExecutorchProgramManager,
    output_roles: Mapping[str, Sequence[str]] | None = None,
    mutates_buffers: Mapping[str, bool] | None = None,
    delegation: Mapping[str, Any] | None = None,
) -> Executorch:
    """Hold what a manager emitted: its bytes in the pieces that it has them in, and its debug maps."""
    methods = describe_methods(manager.executorch_program, output_roles or {})
    for method, mutates in (mutates_buffers or {}).items():
        methods[method]["mutates_buffers"] = mutates
    for method, taken in (delegation or {}).items():
        methods[method]["delegation"] = taken
    fields: dict[str, Any] = {
        "methods": methods,
        "pieces": _pieces(manager._pte_data),
        "data_pieces": {_ptd(name): _pieces(cord) for name, cord in (manager._tensor_data or {}).items()},
        "debug": {
            "debug_handle_map": manager.debug_handle_map,
            "delegate_map": manager.delegate_map,
            "instruction_id_to_num_outs_map": manager.instruction_id_to_num_outs_map,
        },
    }
    return source.become(Executorch, **fields) if source is not None else Executorch(**fields)


def _ptd(name: str) -> str:
    return name if name.endswith(".ptd") else f"{name}.ptd"


def _pieces(cord: Any) -> tuple[bytes, ...]:
    return tuple(piece if isinstance(piece, bytes) else piece.to_bytes() for piece in cord._buffers)


def describe_methods(program: Program, output_roles: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Return each method's inputs, outputs, operators and backends as plain data.

    Constant methods are methods of the program too; they are left out here when `output_roles` names the others.
    """
    plans = {plan.name: plan for plan in program.execution_plan}
    # The emitter sorts methods by name; the order of the program that it came from is kept here.
    names = [name for name in output_roles if name in plans] or list(plans)
    return {name: _describe(plans[name], output_roles.get(name, ())) for name in names}


def _describe(plan: ExecutionPlan, roles: Sequence[str]) -> dict[str, Any]:
    outputs = [_value(plan.values[i].val) for i in plan.outputs]
    for output, role in zip(outputs, roles, strict=False):
        output["role"] = role
    return {
        "inputs": [_value(plan.values[i].val) for i in plan.inputs],
        "outputs": outputs,
        "operators": sorted({f"{op.name}.{op.overload}".rstrip(".") for op in plan.operators}),
        "backends": sorted({delegate.id for delegate in plan.delegates}),
        "arena_bytes": list(plan.non_const_buffer_sizes)[1:],
    }


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, Tensor):
        return {
            "type": "tensor",
            "dtype": ScalarType(value.scalar_type).name.lower(),
            "shape": list(value.sizes),
            "dynamic": value.shape_dynamism.name != "STATIC",
        }
    return {"type": type(value).__name__.lower()}


def buffers_with_start_value(pte: bytes, method: str) -> int:
    """Count the values of a method that are written to and come with bytes to start from."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    program = deserialize_pte_binary(pte).program
    (plan,) = (plan for plan in program.execution_plan if plan.name == method)
    tensors = [value.val for value in plan.values if isinstance(value.val, Tensor)]
    return sum(1 for tensor in tensors if tensor.allocation_info is not None and tensor.data_buffer_idx > 0)
