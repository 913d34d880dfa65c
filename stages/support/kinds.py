"""Which kind an object is: modules, exported programs of every dialect, managers, and mappings of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import etgraph
from etgraph.artifact import (
    Artifact,
    Edge,
    Exported,
    Lowered,
    Module,
    Prepared,
    Provenance,
    Quantized,
)
from etgraph.errors import UsageError


def artifact_of(given: Any) -> Artifact | None:
    """Turn an object of torch or executorch into an artifact; None when it is neither's."""
    if isinstance(given, Mapping):
        return _recognise_mapping(given)
    return _recognise_manager(given) or _recognise_program(given) or _recognise_eager(given)


def _recognise_mapping(given: Mapping[Any, Any]) -> Artifact | None:
    import torch

    if given and all(isinstance(value, torch.Tensor) for value in given.values()):
        raise UsageError(
            "this is a state dict: it holds weights and no program",
            hint="Load it into the model (model.load_state_dict(...)) and give the model.",
        )
    parts: dict[str, Artifact] = {}
    for name, value in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise UsageError(
                f"a mapping of methods has the key {name!r}, which cannot be a method name",
                hint="Keys are method names, such as 'forward' or 'encode'.",
            )
        part = _recognise_program(value) or _recognise_eager(value)
        if part is None:
            return None
        parts[name] = part
    if not parts:
        return None
    kinds = {part.kind: name for name, part in reversed(parts.items())}
    if len(kinds) > 1:
        shown = ", ".join(f"{name!r} is {part.kind}" for name, part in parts.items())
        raise UsageError(
            f"the methods of one program must be at one kind, and here {shown}",
            hint="Bring them to the same kind first, one etgraph.run(..., to=...) each.",
        )
    return _joined(parts)


def _joined(parts: dict[str, Artifact]) -> Artifact:
    """Join one-method artifacts of one kind under their method names."""
    first = next(iter(parts.values()))
    fields: dict[str, Any] = {"provenance": first.provenance}
    fields["example_inputs"] = {
        name: samples for name, part in parts.items() for samples in part.example_inputs.values()
    }
    if isinstance(first, Edge | Lowered):
        configs = {part.compile_config for part in parts.values() if isinstance(part, Edge | Lowered)}
        if len({(c.check_ir_validity, c.skip_dim_order) for c in configs}) > 1:
            raise UsageError(
                "the methods of this program were made with different EdgeCompileConfigs "
                f"(_skip_dim_order or _check_ir_validity): {', '.join(parts)}",
                hint="Make them with one config, or lower them as separate programs.",
            )
        fields["compile_config"] = etgraph.EdgeConfig(
            check_ir_validity=first.compile_config.check_ir_validity,
            skip_dim_order=first.compile_config.skip_dim_order,
            core_aten_ops_exception_list=_union(c.core_aten_ops_exception_list for c in configs),
            preserve_ops=_union(c.preserve_ops for c in configs),
        )
    methods = {name: next(iter(part.methods.values())) for name, part in parts.items()}
    return type(first)(methods=methods, **fields)


def _union(groups: Any) -> tuple[str, ...]:
    return tuple(sorted({name for group in groups for name in group}))


# -- managers --------------------------------------------------------------------------------------------------------


def _recognise_manager(given: Any) -> Artifact | None:
    program = sys.modules.get("executorch.exir.program._program")
    if program is None:
        return None
    if isinstance(given, program.ExecutorchProgramManager):
        from stages.support.emitted import executorch_artifact

        names = given._execution_programs
        return executorch_artifact(None, given, dict.fromkeys(names, ()))
    if not isinstance(given, program.EdgeProgramManager):
        return None
    from stages.support.programs import edge_config_of

    kinds = {name: _recognise_program(ep) for name, ep in given._edge_programs.items()}
    # One method may be delegated and another not; the manager as a whole is then lowered.
    lowered = any(part is not None and part.kind == "lowered" for part in kinds.values())
    return (Lowered if lowered else Edge)(
        methods=dict(given._edge_programs),
        constant_methods=dict(given._config_methods or {}),
        example_inputs={
            name: samples
            for name, part in kinds.items()
            if part is not None
            for samples in part.example_inputs.values()
        },
        compile_config=edge_config_of(given.compile_config),
        provenance=_history(given._edge_programs.values()),
    )


# -- exported programs -------------------------------------------------------------------------------------------------


def _recognise_program(given: Any) -> Artifact | None:
    from torch.export import ExportedProgram

    if not isinstance(given, ExportedProgram):
        return None
    fields: dict[str, Any] = {"methods": {"forward": given}}
    if given.example_inputs is not None:
        args, kwargs = given.example_inputs
        fields["example_inputs"] = {"forward": (etgraph.Inputs(*args, **kwargs),)}
    if given.dialect != "EDGE":
        return (Quantized if _quantizes(given) else Exported)(**fields)
    from stages.support.programs import edge_config_from_verifier

    _refuse_rewritten(given)
    fields["compile_config"] = edge_config_from_verifier(given)
    fields["provenance"] = _history([given])
    return (Lowered if _is_lowered(given) else Edge)(**fields)


def _is_lowered(program: Any) -> bool:
    from stages.support.programs import OPERATOR_LIBRARIES, all_nodes, delegates_of, namespace_of

    return bool(delegates_of(program)) or any(
        namespace_of(node.target) in OPERATOR_LIBRARIES for node in all_nodes(program)
    )


def _quantizes(program: Any) -> bool:
    """Whether quantize or dequantize operators are in a program or in what it delegated."""
    from stages.support.prepared import quantizes
    from stages.support.programs import delegates_of

    if quantizes(program):
        return True
    if program.dialect != "EDGE":
        return False
    return any(
        _quantizes(lowered.original_module)
        for lowered in delegates_of(program)
        if getattr(lowered, "_original_exported_program", None) is not None
    )


def _history(programs: Any) -> tuple[Provenance, ...]:
    """What a foreign edge program must have gone through, as far as it shows."""
    return (Provenance(stage="recognised", kind="quantized"),) if any(map(_quantizes, programs)) else ()


def _refuse_rewritten(program: Any) -> None:
    from executorch.exir import memory

    from stages.support.graph_text import target_name
    from stages.support.libraries import is_scratch
    from stages.support.programs import all_nodes

    for node in all_nodes(program):
        overload = str(getattr(node.target, "_overloadname", ""))
        if node.op == "call_function" and (
            (node.target is memory.alloc and not is_scratch(node)) or overload == "out" or overload.endswith("_out")
        ):
            raise UsageError(
                f"this program was rewritten by to_executorch (node {node.name!r} calls {target_name(node.target)}): "
                "upstream changes the edge program in place, and it cannot be lowered or emitted again",
                hint="Keep a copy before to_executorch (copy.deepcopy), or make the edge program again; "
                "etgraph.run(..., to='executorch') leaves the program that it is given as it was.",
            )


# -- eager models ---------------------------------------------------------------------------------------------------


def _recognise_eager(given: Any) -> Artifact | None:
    import torch

    from stages.support.eager import is_method_of_module
    from stages.support.prepared import is_observer

    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        raise UsageError(
            f"{given.__name__} is the class of a module, not a module",
            hint=f"Give an instance: {given.__name__}(...).",
        )
    if isinstance(given, torch.jit.ScriptModule):
        raise UsageError(
            "this is a TorchScript module, which torch.export cannot capture",
            hint="Give the eager nn.Module that it was scripted from.",
        )
    if is_method_of_module(given):
        return Module(methods={given.__name__: given})
    if not isinstance(given, torch.nn.Module):
        return None
    if isinstance(given, torch.fx.GraphModule):
        if any(is_observer(child) for child in given.modules()):
            return Prepared(methods={"forward": given})
        if any("quantize" in str(n.target) and "quantized_decomposed" in str(n.target) for n in given.graph.nodes):
            return Module(methods={"forward": given}, provenance=(Provenance(stage="recognised", kind="quantized"),))
    return Module(methods={"forward": given})
