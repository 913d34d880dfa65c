"""ExportedProgram: graph, signature, tensors, constraints, call graph and verifiers."""

from __future__ import annotations

from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse, words
from stages.codec.graphs import check_path, read_graph_module, write_graph_module
from stages.codec.specs import read_spec, read_tree, write_spec, write_tree
from stages.codec.symbols import read_environment, read_expression, write_environment, write_expression
from stages.codec.values import Unkept, read_value, write_value

__all__ = ["read_program", "write_program"]

_KNOWN = frozenset(
    words(
        "_graph_module _graph_signature _state_dict _range_constraints _module_call_graph _example_inputs "
        "_constants _verifiers _guards_code"
    )
)
_ARGUMENTS = (
    "TensorArgument",
    "TokenArgument",
    "SymIntArgument",
    "SymFloatArgument",
    "SymBoolArgument",
    "ConstantArgument",
)


def write_program(writer: Writer, program: Any) -> int:
    """Give the position of an ExportedProgram in the document.

    Raises:
        UsageError: something in it cannot be kept; names the node or tensor.
    """
    position, new = writer.number("program", program, writer.programs)
    if not new:
        return position
    for name in program.__dict__.keys() - _KNOWN:
        writer.drop(f"attribute {name!r} of an ExportedProgram")
    writer.program_debug.append({"guards": list(program._guards_code)})
    graph = write_graph_module(writer, program.graph_module)
    env = _environment(writer, program)
    writer.programs[position] = {
        "graph": graph,
        "signature": _write_signature(writer, program.graph_signature),
        "state": [[name, _write_entry(writer, name, t)] for name, t in program.state_dict.items()],
        "constants": [[name, _write_entry(writer, name, t)] for name, t in program.constants.items()],
        "ranges": [
            [
                write_expression(writer, env, k),
                write_expression(writer, env, v.lower),
                write_expression(writer, env, v.upper),
            ]
            for k, v in program.range_constraints.items()
        ],
        "environment": env,
        "calls": [_write_call(writer, entry) for entry in program.module_call_graph],
        "example_inputs": None if program.example_inputs is None else write_tree(writer, program.example_inputs),
        "verifiers": [_write_verifier(writer, v) for v in program.verifiers],
    }
    return position


def _environment(writer: Writer, program: Any) -> int | None:
    from torch.export.exported_program import _get_shape_env

    env = _get_shape_env(program.graph_module)
    return None if env is None else write_environment(writer, env)


def _write_entry(writer: Writer, name: str, value: Any) -> Any:
    where, writer.where = writer.where, f"{writer.where}, {name!r}"
    try:
        return write_value(writer, value)
    except Unkept as e:
        raise refuse(writer.where, f"a constant of type {e.args[0]}", "Replace it by tensors before export.") from None
    finally:
        writer.where = where


def _write_signature(writer: Writer, signature: Any) -> dict[str, Any]:
    return {
        "inputs": [
            [s.kind.name, _write_spec_argument(writer, s.arg), s.target, s.persistent] for s in signature.input_specs
        ],
        "outputs": [[s.kind.name, _write_spec_argument(writer, s.arg), s.target] for s in signature.output_specs],
    }


def _write_spec_argument(writer: Writer, arg: Any) -> list[Any]:
    kind = type(arg).__name__
    if kind not in _ARGUMENTS:
        raise refuse(writer.where, f"an input or output of type {kind}", "Replace custom objects by tensors.")
    return [kind, arg.name, *([write_value(writer, arg.value)] if kind == "ConstantArgument" else [])]


def _write_call(writer: Writer, entry: Any) -> list[Any]:
    s = entry.signature
    if s is None:
        return [entry.fqn]
    return [
        entry.fqn,
        [_write_spec_argument(writer, a) for a in s.inputs],
        [_write_spec_argument(writer, a) for a in s.outputs],
        write_spec(writer, s.in_spec),
        write_spec(writer, s.out_spec),
        s.forward_arg_names,
    ]


def _write_verifier(writer: Writer, verifier: Any) -> dict[str, Any]:
    """Encode a verifier class; that of edge programs holds the choices of an EdgeCompileConfig in a closure."""
    from stages.codec.operators import write_target

    if verifier.dialect in ("ATEN", "TRAINING", "OLD_EXIR_ATEN_DISABLED"):
        return {"dialect": verifier.dialect}
    if verifier.dialect not in ("EDGE", "OLD_EXIR_ATEN"):
        raise refuse(writer.where, f"a program of the dialect {verifier.dialect}", "Save it at exported or edge.")
    made = verifier()

    def names(ops: Any) -> list[str]:
        return sorted({write_target(writer, op) for op in ops})

    encoded = {
        "dialect": verifier.dialect,
        "exceptions": names(made._core_aten_ops_exception_list),
        "preserve": names(made._preserve_ops),
    }
    if verifier.dialect == "EDGE":
        encoded["check"] = bool(made.enable)
        encoded["dim_order"] = bool(made.use_dim_order)
    return encoded


def read_program(reader: Reader, position: int) -> Any:
    """Give the ExportedProgram at a position of the document."""
    if position in reader.programs:
        return reader.programs[position]
    import torch
    from torch._export.verifier import Verifier
    from torch.export import ExportedProgram
    from torch.export.exported_program import _convert_guards_to_code
    from torch.export.graph_signature import ExportGraphSignature

    encoded = reader.meaning["programs"][position]
    empty = torch.fx.Graph()
    empty.output(())
    example = encoded["example_inputs"]
    program = ExportedProgram(
        root=torch.nn.Module(),
        graph=empty,
        graph_signature=ExportGraphSignature([], []),
        state_dict={check_key(k): read_value(reader, v) for k, v in encoded["state"]},
        range_constraints=_read_ranges(reader, encoded),
        module_call_graph=_read_calls(reader, encoded["calls"]),
        example_inputs=None if example is None else read_tree(reader, example),
        constants={check_key(k): read_value(reader, v) for k, v in encoded["constants"]},
        verifiers=[Verifier],
    )
    # Its constructor removes equal getitem nodes and interprets the graph to verify it; the graph is what it was.
    program._graph_module = read_graph_module(reader, encoded["graph"])
    program._graph_signature = _read_signature(reader, encoded["signature"])
    program._verifiers = [_read_verifier(reader, v) for v in encoded["verifiers"]]
    # Torch runs this code, so it is made from the guards again; the file only says which of them there were.
    made = set(_convert_guards_to_code(program._graph_module))
    program._guards_code = [guard for guard in reader.debug["programs"][position]["guards"] if guard in made]
    reader.programs[position] = program
    return program


def check_key(name: str) -> str:
    """Check the name of a tensor and give it back."""
    check_path(name)
    return name


def _read_ranges(reader: Reader, encoded: dict[str, Any]) -> dict[Any, Any]:
    from torch.utils._sympy.value_ranges import ValueRanges

    if not encoded["ranges"]:
        return {}
    symbols = read_environment(reader, encoded["environment"]).etgraph_symbols
    return {
        read_expression(symbols, key): ValueRanges(read_expression(symbols, low), read_expression(symbols, high))
        for key, low, high in encoded["ranges"]
    }


def _read_signature(reader: Reader, encoded: dict[str, Any]) -> Any:
    from torch.export.graph_signature import (
        ExportGraphSignature,
        InputKind,
        InputSpec,
        OutputKind,
        OutputSpec,
    )

    for entry in (*encoded["inputs"], *encoded["outputs"]):
        if entry[2] is not None:
            check_path(entry[2])
    return ExportGraphSignature(
        [InputSpec(InputKind[k], _read_spec_argument(reader, a), t, p) for k, a, t, p in encoded["inputs"]],
        [OutputSpec(OutputKind[k], _read_spec_argument(reader, a), t) for k, a, t in encoded["outputs"]],
    )


def _read_spec_argument(reader: Reader, encoded: list[Any]) -> Any:
    import torch.export.graph_signature as signature

    kind, name, *value = encoded
    if kind not in _ARGUMENTS:
        raise malformed("the type of an input or output", kind)
    return getattr(signature, kind)(name, *(read_value(reader, v) for v in value))


def _read_calls(reader: Reader, encoded: list[Any]) -> list[Any]:
    from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

    calls = []
    for fqn, *rest in encoded:
        if not rest:
            calls.append(ModuleCallEntry(fqn, None))
            continue
        inputs, outputs, in_spec, out_spec, names = rest
        if not all(isinstance(n, str) and n.isidentifier() for n in names or ()):
            raise malformed("the names of inputs", names)
        signature = ModuleCallSignature(
            [_read_spec_argument(reader, a) for a in inputs],
            [_read_spec_argument(reader, a) for a in outputs],
            read_spec(reader, in_spec),
            read_spec(reader, out_spec),
            names,
        )
        calls.append(ModuleCallEntry(fqn, signature))
    return calls


def _read_verifier(reader: Reader, encoded: dict[str, Any]) -> Any:
    from stages.codec.operators import read_target

    dialect = encoded["dialect"]
    if dialect in ("ATEN", "TRAINING"):
        from torch._export.verifier import load_verifier

        return load_verifier(dialect)
    from executorch.exir import EdgeCompileConfig
    from executorch.exir.verification import verifier

    if dialect == "OLD_EXIR_ATEN_DISABLED":
        return verifier.EXIRATenDialectVerifierBase
    exceptions = [read_target(reader, name) for name in encoded["exceptions"]]
    preserve = [read_target(reader, name) for name in encoded["preserve"]]
    if dialect == "OLD_EXIR_ATEN":
        return verifier.EXIRATenDialectVerifier(
            class_only=True, core_aten_ops_exception_list=exceptions, preserve_ops=preserve
        )
    if dialect != "EDGE":
        raise malformed("a dialect", dialect)
    config = EdgeCompileConfig(_check_ir_validity=encoded["check"], _skip_dim_order=not encoded["dim_order"])
    return verifier.EXIREdgeDialectVerifier(
        edge_compile_config=config,
        class_only=True,
        core_aten_ops_exception_list=exceptions,
        preserve_ops=preserve,
    )
