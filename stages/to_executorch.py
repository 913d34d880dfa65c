"""From edge or lowered program to the bytes of a `.pte`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import etgraph
from etgraph.artifact import Edge, Executorch, Lowered
from etgraph.recipes import Deferred


def _writes_stack_traces(options: Mapping[str, Any]) -> bool:
    config = options.get("backend_config")
    if isinstance(config, Deferred):
        # Those of our own recipes, of which none asks for it, are not made here: that would import executorch.
        config = None if config.make.__module__.startswith("stages.") else config.make()
    return bool(getattr(config, "emit_stacktrace", False))


@etgraph.stage(cost=1.0, reads_debug=_writes_stack_traces, reads_inputs=False)
def to_executorch(
    program: Edge | Lowered, *, backend_config: Any = None, initialize_buffers: bool = True
) -> Executorch:
    """Plan memory, choose out-variant kernels, and emit the ExecuTorch program.

    The program that it is given stays an edge program; upstream rewrites it in place, so a copy of its graph is
    given away.

    Args:
        backend_config: an `executorch.exir.ExecutorchBackendConfig`; a copy of it is used, as its passes keep state.
        initialize_buffers: keep the start value of a buffer that is updated in forward and does not start at zero.
            Upstream keeps it only under `InitializedMutableBufferPass`, and starts from zero otherwise.
    """
    import copy

    import executorch.kernels.quantized  # noqa: F401  registers the out variants of q/dq operators
    from executorch.exir import ExecutorchBackendConfig

    from stages.support.affine import spell_out_affine
    from stages.support.delegation import delegation_of
    from stages.support.emitted import executorch_artifact
    from stages.support.programs import copy_for_rewriting, manager_of

    config = copy.deepcopy(backend_config if backend_config is not None else ExecutorchBackendConfig())
    programs = {method: copy_for_rewriting(ep) for method, ep in program.methods.items()}
    for ep in programs.values():
        spell_out_affine(ep)
    if initialize_buffers:
        for ep in programs.values():
            _keep_start_values(ep)
    roles = {method: _output_roles(ep) for method, ep in programs.items()}
    stateful = {method: bool(ep.graph_signature.buffers_to_mutate) for method, ep in programs.items()}
    _tell_of_mutated_inputs(roles)
    manager = manager_of(program, programs).to_executorch(config)
    taken = {method: delegation_of(ep) for method, ep in program.methods.items()}
    emitted = executorch_artifact(program, manager, roles, stateful, taken)
    _tell_of_missing_kernels(program, emitted)
    return emitted


def _keep_start_values(program: Any) -> None:
    """Mark buffers that are updated and do not start at zero, as `InitializedMutableBufferPass` does by name."""
    signature = program.graph_signature
    updated = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        name = signature.inputs_to_buffers.get(node.name)
        if node.op != "placeholder" or name not in updated:
            continue
        value = program.state_dict.get(name, program.constants.get(name))
        if value is not None and bool(value.detach().ne(0).any()):
            node.meta["et_init_buffer"] = True


def _tell_of_mutated_inputs(roles: dict[str, tuple[str, ...]]) -> None:
    for method, outputs in roles.items():
        mutated = [role for role in outputs if role != "output"]
        if mutated:
            etgraph.warn(
                f"method {method!r} writes into its inputs, so the .pte returns {len(mutated)} more "
                f"({', '.join(mutated)}) before its outputs, which move by {len(mutated)}"
            )


def _tell_of_missing_kernels(program: Edge | Lowered, emitted: Executorch) -> None:
    """Warn of operators for which ExecuTorch's own kernel libraries have nothing: the runtime says only 0x14.

    Those of a backend's operator library are what was asked for, and linked in where that backend is.
    """
    from executorch.runtime import Runtime

    from stages.support.programs import OPERATOR_LIBRARIES, all_nodes
    from stages.support.source_lines import line_of

    known = Runtime.get().operator_registry.operator_names
    for method, described in emitted.methods.items():
        for operator in sorted(set(described["operators"]) - set(known)):
            if operator.partition("::")[0] in OPERATOR_LIBRARIES:
                continue
            lines = {
                line_of(node.meta.get("stack_trace") or "")
                for node in all_nodes(program.methods[method])
                if getattr(getattr(node.target, "_schema", None), "name", "") == operator.partition(".")[0]
            }
            where = "".join(f"; from {line}" for line in sorted(filter(None, lines)))
            etgraph.warn(
                f"method {method!r} needs the kernel {operator}, which ExecuTorch's own kernel libraries lack{where}. "
                "It loads only where a library with that kernel is linked in; otherwise replace the operator."
            )


def _output_roles(program: Any) -> tuple[str, ...]:
    """Say what each output of the `.pte` is: `output`, or `mutated input x` for one that comes before them."""
    from torch.export.graph_signature import OutputKind

    roles = []
    for spec in program.graph_signature.output_specs:
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            roles.append(f"mutated input {spec.target}")
        elif spec.kind is not OutputKind.BUFFER_MUTATION:
            roles.append("output")
    return tuple(roles)
