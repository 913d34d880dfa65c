"""Files of `executorch.exir.serde` and ETRecords: loaded, and put back to what was saved.

Loading changes such a program (executorch 1.5.1, exir/serde): unused outputs come back as getitem nodes, positional
arguments with defaults come back as keywords, which some backends do not read, `requires_grad` of the inputs that
stand for parameters is lost, and so is its EdgeCompileConfig: which operators are kept whole, and whether dim order is
skipped. Each is undone and told.
"""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

from etgraph.artifact import Artifact, Provenance
from etgraph.errors import ArtifactFileError, EtgraphError, EtgraphWarning, UntrustedFileError
from stages.codec.foreign_checks import check_crcs, dangers_of_program, targets_of_program
from stages.codec.foreign_pt2 import load_tensors, register_operators

__all__ = ["load_etrecord", "load_exir", "repair"]

_UNUSED = re.compile(r"_unused_\d+(?:_\d+)?\Z")
_EDGE = "edge_dialect_exported_program"


def load_exir(path: Path, *, trust: bool) -> Artifact:
    """Load what `executorch.exir.serde.serialize.save` wrote, repaired.

    Raises:
        UntrustedFileError: an expression or a name in it could run code, and `trust` is False.
        ArtifactFileError: damaged, or of another version.
    """
    with zipfile.ZipFile(path) as archive:
        check_crcs(path, archive)
        parts = tuple(
            _member(path, archive, name)
            for name in (
                "serialized_exported_program.json",
                "serialized_state_dict.pt",
                "serialized_constants.pt",
                "serialized_example_inputs.pt",
            )
        )
    return _artifact(path, {"forward": _load_program(path, parts, trust)}, "executorch.exir.serde")


def load_etrecord(path: Path, kind: str, *, trust: bool) -> Artifact:
    """Load the edge programs or the exported program of an ETRecord, repaired.

    Raises:
        UntrustedFileError: an expression or a name in it could run code, and `trust` is False.
        ArtifactFileError: damaged, or of another version.
    """
    with zipfile.ZipFile(path) as archive:
        check_crcs(path, archive)
        names = archive.namelist()
        if kind == "exported":
            found = {"forward": "exported_program"}
        elif _EDGE in names:
            found = {"forward": _EDGE}
        else:
            suffixes = ("_state_dict", "_constants", "_example_inputs")
            edge = [n for n in names if n.startswith(f"{_EDGE}/") and not n.endswith(suffixes)]
            found = {n.removeprefix(f"{_EDGE}/"): n for n in edge}
        parts = {
            method: tuple(
                _member(path, archive, f"{name}{s}") for s in ("", "_state_dict", "_constants", "_example_inputs")
            )
            for method, name in found.items()
        }
    return _artifact(path, {m: _load_program(path, p, trust) for m, p in parts.items()}, "an ETRecord")


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError:
        raise ArtifactFileError(f"{path} is damaged: it lacks {name}", hint="Make it again.") from None


def _load_program(path: Path, parts: tuple[bytes, ...], trust: bool) -> Any:
    from executorch.exir.serde import schema
    from executorch.exir.serde.export_serialize import SerializedArtifact
    from executorch.exir.serde.serialize import deserialize

    from stages.codec.foreign import wrap

    try:
        program = json.loads(parts[0])
        found, known = program["schema_version"]["major"], schema.SCHEMA_VERSION[0]
    except (ValueError, KeyError, TypeError) as e:
        raise ArtifactFileError(f"{path} is damaged: its program is no JSON of a program", hint="Make it again.") from e
    if found != known:
        raise ArtifactFileError(
            f"{path} has program schema {found}, and the installed executorch reads {known}",
            hint="Save it again with the installed executorch, or install the one that wrote it.",
        )
    dangers = dangers_of_program(program)
    if dangers and not trust:
        raise UntrustedFileError(
            f"{path} holds {dangers[0]}, which could run code that is inside the file",
            hint="Load it only if you trust who made it: trust=True, or --trust on the command line.",
        )
    register_operators(targets_of_program(program))
    inputs = parts[3]
    if inputs and load_tensors(inputs) is None:
        warnings.warn(
            EtgraphWarning(f"{path}: its example inputs are no plain tensors and were left out"), stacklevel=2
        )
        inputs = b""
    try:
        return deserialize(SerializedArtifact(parts[0], parts[1], parts[2], inputs))
    except EtgraphError:
        raise
    except Exception as e:
        raise wrap(path, e, "executorch.exir.serde") from e


def _artifact(path: Path, programs: dict[str, Any], wrote: str) -> Artifact:
    from stages.support.kinds import artifact_of

    options = []
    for method, program in programs.items():
        repaired = repair(program)
        if repaired:
            options.append((method, "; ".join(repaired)))
            warnings.warn(
                EtgraphWarning(
                    f"{path}, method {method!r}, was changed by {wrote} and was put back: {'; '.join(repaired)}"
                ),
                stacklevel=2,
            )
    artifact = artifact_of(programs)
    if artifact is None:
        raise ArtifactFileError(f"{path} holds no program that is known here")
    import dataclasses

    step = Provenance(stage="repaired", kind=str(artifact.kind), options=tuple(options))
    return dataclasses.replace(artifact, provenance=(*artifact.provenance, step)) if options else artifact


def repair(program: Any) -> list[str]:
    """Undo, in place, what loading did to a program and to those of its delegates; say what was undone."""
    counts = {"dead": 0, "arguments": 0, "grad": 0}
    for owner in _programs(program):
        for module in owner.graph_module.modules():
            graph = getattr(module, "graph", None)
            if graph is None:
                continue
            counts["dead"] += _drop_dead(graph)
            counts["arguments"] += sum(_position_arguments(node) for node in graph.nodes)
            module.recompile()
        counts["grad"] += _restore_grad(owner)
    choices = [words for owner in _programs(program) for words in _restore_choices(owner)]
    words = {
        "dead": "{} unused outputs had become nodes",
        "arguments": "{} nodes had positional arguments as keywords",
        "grad": "{} parameters had lost requires_grad",
    }
    return [*(words[key].format(count) for key, count in counts.items() if count), *dict.fromkeys(choices)]


def _programs(program: Any) -> list[Any]:
    found = [program]
    for module in program.graph_module.modules():
        if type(module).__name__ == "LoweredBackendModule":
            found.extend(_programs(module.original_module))
    return found


def _drop_dead(graph: Any) -> int:
    import operator

    dead = [n for n in graph.nodes if n.target is operator.getitem and not n.users and _UNUSED.search(n.name)]
    for node in dead:
        graph.erase_node(node)
    return len(dead)


def _position_arguments(node: Any) -> int:
    """Give keyword arguments back their place as long as there is no gap before them."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not node.kwargs:
        return 0
    args, kwargs = list(node.args), dict(node.kwargs)
    for argument in schema.arguments[len(args) :]:
        if argument.kwarg_only or argument.name not in kwargs:
            break
        args.append(kwargs.pop(argument.name))
    moved = len(args) > len(node.args)
    if moved:
        node.args, node.kwargs = tuple(args), kwargs
    return int(moved)


def _restore_grad(program: Any) -> int:
    """Give the fake values of parameters the `requires_grad` of the parameters themselves."""
    restored = 0
    parameters = program.graph_signature.inputs_to_parameters
    for node in program.graph.nodes:
        real = program.state_dict.get(parameters.get(node.name, ""))
        value = node.meta.get("val")
        if (
            node.op == "placeholder"
            and real is not None
            and value is not None
            and real.requires_grad != value.requires_grad
        ):
            value.requires_grad_(real.requires_grad)
            restored += 1
    return restored


def _restore_choices(program: Any) -> list[str]:
    """Give an edge program's verifier the choices of EdgeCompileConfig that its graph shows; say which."""
    from executorch.exir import EdgeCompileConfig
    from executorch.exir.passes.dim_order_ops_registry import DimOrderOpsMap
    from executorch.exir.verification.verifier import (
        EXIRATenDialectVerifier,
        EXIREdgeDialectVerifier,
        SpecViolationError,
    )

    from stages.support.programs import all_nodes

    if program.dialect != "EDGE":
        return []
    operators = {node.target for node in all_nodes(program) if hasattr(node.target, "_op")}
    skipped = any(op in DimOrderOpsMap for op in operators)
    default = EXIRATenDialectVerifier()
    whole = []
    for operator in sorted({op._op for op in operators}, key=str):
        try:
            default.check_valid_op(operator)
        except SpecViolationError:
            whole.append(operator)
    if not whole and not skipped:
        return []
    program._verifiers = [
        EXIREdgeDialectVerifier(
            edge_compile_config=EdgeCompileConfig(_skip_dim_order=skipped),
            class_only=True,
            core_aten_ops_exception_list=[op for op in whole if op.is_view],
            preserve_ops=[op for op in whole if not op.is_view],
        )
    ]
    told = [f"it had been forgotten that these are kept whole: {', '.join(map(str, whole))}"] if whole else []
    return [*told, *(["it had been forgotten that dim order is skipped"] if skipped else [])]
