"""ExportedPrograms and their managers: naming operators, rebuilding managers, copying before a change."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch.export import ExportedProgram

from etgraph.artifact import Edge, EdgeConfig, Lowered
from etgraph.errors import UsageError
from stages.support.libraries import OPERATOR_LIBRARIES as OPERATOR_LIBRARIES


def operator_named(name: str) -> Any:
    """Return the operator that `str(op)` names, such as `aten.hardswish.default`."""
    parts = name.split(".")
    try:
        if len(parts) != 3:
            raise AttributeError(name)
        return getattr(getattr(getattr(torch.ops, parts[0]), parts[1]), parts[2])
    except AttributeError:
        raise UsageError(
            f"there is no operator {name!r} in this process",
            hint="Write it as namespace.name.overload, and import the library that registers it first.",
        ) from None


def edge_config_of(config: EdgeCompileConfig) -> EdgeConfig:
    """Return upstream's mutable config as a value."""
    return EdgeConfig(
        check_ir_validity=config._check_ir_validity,
        skip_dim_order=config._skip_dim_order,
        core_aten_ops_exception_list=_names(config._core_aten_ops_exception_list),
        preserve_ops=_names(config.preserve_ops),
    )


def edge_config_from_verifier(program: ExportedProgram) -> EdgeConfig:
    """Read from an edge program by itself which EdgeCompileConfig it was made with: its verifier remembers."""
    verifier = program.verifier()
    return EdgeConfig(
        check_ir_validity=bool(getattr(verifier, "enable", True)),
        skip_dim_order=not getattr(verifier, "use_dim_order", True),
        core_aten_ops_exception_list=_names(getattr(verifier, "_core_aten_ops_exception_list", ())),
        preserve_ops=_names(getattr(verifier, "_preserve_ops", ())),
    )


def _names(operators: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted({str(op) for op in operators}))


def compile_config_of(value: EdgeConfig) -> EdgeCompileConfig:
    """Return a fresh upstream config from a value."""
    return EdgeCompileConfig(
        _check_ir_validity=value.check_ir_validity,
        _skip_dim_order=value.skip_dim_order,
        _core_aten_ops_exception_list=[operator_named(n) for n in value.core_aten_ops_exception_list],
        preserve_ops=[operator_named(n) for n in value.preserve_ops],
    )


def manager_of(artifact: Edge | Lowered, programs: Mapping[str, ExportedProgram] | None = None) -> EdgeProgramManager:
    """Rebuild upstream's manager around an artifact's programs, with the config that they were made with.

    Operators preserved earlier are named again, as `EdgeProgramManager` verifies with the config it is given.
    """
    config = compile_config_of(artifact.compile_config)
    whole = [*config.preserve_ops, *config._core_aten_ops_exception_list]
    return EdgeProgramManager(
        dict(programs or artifact.methods),
        dict(artifact.constant_methods) or None,
        config,
        core_aten_ops_exception_list=list(whole),
        preserve_ops=list(whole),
    )


def programs_of(manager: EdgeProgramManager, order: Iterable[str]) -> dict[str, ExportedProgram]:
    """Return a manager's programs in the order that the methods had; upstream keeps them as a set."""
    return {name: manager.exported_program(name) for name in order}


def all_nodes(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    """Walk the nodes of a program and of its control-flow branches; not the insides of delegates."""
    modules = [program.graph_module]
    while modules:
        module = modules.pop()
        yield from module.graph.nodes
        modules.extend(child for _, child in module.named_children() if isinstance(child, torch.fx.GraphModule))


def delegates_of(program: ExportedProgram) -> list[LoweredBackendModule]:
    """Return the lowered modules that a program calls, in graph order, branches included."""
    found = []
    for node in all_nodes(program):
        if node.op == "call_function" and node.target is executorch_call_delegate:
            found.append(getattr(node.graph.owning_module, node.args[0].target))
    return found


def namespace_of(target: Any) -> str:
    """Return the namespace of an operator (`aten`, `quantized_decomposed`), or an empty string."""
    schema = getattr(target, "_schema", None)
    return schema.name.partition("::")[0] if schema is not None else ""


def copy_for_rewriting(program: ExportedProgram) -> ExportedProgram:
    """Copy what a rewriting pass may change, and share the rest: weights and delegates are not copied.

    `to_executorch` rewrites graphs, node metadata, signature and branch modules in place.
    """
    graph_module = _copy_graph_module(program.graph_module)
    copied = ExportedProgram(
        root=graph_module,
        graph=graph_module.graph,
        graph_signature=copy.deepcopy(program.graph_signature),
        state_dict=dict(program.state_dict),
        range_constraints=dict(program.range_constraints),
        module_call_graph=copy.deepcopy(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants=dict(program.constants),
        verifiers=[program.verifier],
    )
    copied.graph_module.meta.update(program.graph_module.meta)
    _give_own_values(copied)
    return copied


def _give_own_values(program: ExportedProgram) -> None:
    """Give placeholders that are written to value specs of their own.

    Passes run the graph on them, and writing a result that requires grad into one makes it require grad, in every
    program that shares it.
    """
    signature = program.graph_signature
    written = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
    for node in program.graph.nodes:
        name = signature.inputs_to_buffers.get(node.name, node.name)
        value = node.meta.get("val")
        if node.op == "placeholder" and name in written and isinstance(value, torch.Tensor):
            held = program.state_dict.get(name, program.constants.get(name))
            node.meta["val"] = value.detach().requires_grad_(held is not None and held.requires_grad)


def _copy_graph_module(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    attributes: dict[str, Any] = {}
    for node in module.graph.nodes:
        if node.op != "get_attr" or node.target in attributes:
            continue
        value = module
        for part in node.target.split("."):
            value = getattr(value, part)
        is_branch = isinstance(value, torch.fx.GraphModule)
        attributes[node.target] = _copy_graph_module(value) if is_branch else value
    graph = copy.deepcopy(module.graph)
    for node, original in zip(graph.nodes, module.graph.nodes, strict=True):
        # A copy calls an input that has the name of a builtin, such as `input`, by another one; signatures name it.
        node.name = original.name
    copied = torch.fx.GraphModule(attributes, graph, module.__class__.__name__)
    copied.meta.update(module.meta)
    return copied
