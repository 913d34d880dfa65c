"""Artifacts as a document and blobs, and back; the fingerprint is a digest of the document's first half."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from etgraph.artifact import KINDS, Artifact, EdgeConfig, Executorch, Inputs, Prepared, Provenance
from etgraph.blobs import Blob, BlobSource
from etgraph.errors import ArtifactFileError, UsageError
from etgraph.installed import installed_version
from stages.codec.context import Reader, Writer, malformed, refuse
from stages.codec.values import Unkept, read_value, write_value

__all__ = ["KEPT", "decode", "encode", "fingerprint", "fingerprint_of_document"]

#: The kinds that can be kept in a file.
KEPT = ("exported", "prepared", "quantized", "edge", "lowered", "executorch")
#: Of the document. A change of what is written changes it, and with it every fingerprint.
SCHEMA = 1


def encode(artifact: Artifact) -> tuple[dict[str, Any], dict[str, Blob]]:
    """Encode an artifact.

    Returns:
        The document (JSON-able; `kind`, `schema`, `meaning`, `debug`) and the blobs it names by blake3 digest. The
        blobs are views of the artifact's own memory, not copies.

    Raises:
        UsageError: the kind, or something in the artifact, cannot be kept; names method and node or tensor.
    """
    _check_kind(artifact.kind)
    writer = Writer()
    meaning: dict[str, Any] = {"kind": str(artifact.kind), "schema": SCHEMA}
    meaning["methods"] = [[name, _write_method(writer, artifact, name)] for name in artifact]
    writer.where = f"the {artifact.kind} artifact"
    if isinstance(artifact, Executorch):
        from stages.codec.emitted import write_emitted

        emitted, emitted_debug = write_emitted(writer, artifact)
        meaning["emitted"] = emitted
    else:
        emitted_debug = None
    meaning.update(_write_belongings(writer, artifact))
    return _finish(writer, artifact, meaning, emitted_debug), writer.blobs


def decode(document: Mapping[str, Any], blobs: BlobSource) -> Artifact:
    """Make the artifact that was encoded. Nothing from the document is executed.

    Raises:
        ArtifactFileError: the document is of another schema or makes no sense.
        UsageError: an operator or a container type is not registered in this process.
    """
    kind = document.get("kind")
    if document.get("schema") != SCHEMA or kind not in KEPT:
        raise ArtifactFileError(
            f"the document has schema {document.get('schema')!r} and kind {kind!r}; this etgraph reads schema {SCHEMA}",
            hint="Save it again with this version of etgraph, or install the one that wrote it.",
        )
    try:
        return _decode(KINDS[kind], document["meaning"], document["debug"], blobs)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:
        raise ArtifactFileError(
            f"the document of the {kind} artifact cannot be understood ({type(e).__name__}: {e})",
            hint="It was made by another version of etgraph or by another program.",
        ) from e


def fingerprint(artifact: Artifact) -> str:
    """Give the blake3 digest (hex) of what an artifact means; see `fingerprint_of_document`.

    Costs one pass over every distinct storage, without a copy.

    Raises:
        UsageError: as `encode`.
    """
    return fingerprint_of_document(encode(artifact)[0])


def fingerprint_of_document(document: Mapping[str, Any]) -> str:
    """Give the fingerprint that the artifact in a document has, without decoding it and without torch.

    It covers operators, arguments, value specs, symbols with their ranges, signature, every storage by content, dtype,
    shape, stride, ties, `requires_grad`, compile config, example inputs, dynamic shapes, constant methods and the
    metadata that lowering reads; not stack traces, sequence numbers, provenance or versions.
    """
    from blake3 import blake3

    text = json.dumps(document["meaning"], separators=(",", ":"), allow_nan=False)
    return blake3(text.encode()).hexdigest()


def _check_kind(kind: str) -> None:
    if kind == "module":
        raise UsageError(
            "an eager module cannot be kept in a file: its code is not part of it",
            hint="Export it first, for instance with etgraph.run(..., to='exported'), and keep that.",
        )
    if kind not in KEPT:
        raise UsageError(
            f"an artifact of kind {kind!r} cannot be kept in a file; {', '.join(KEPT)} can",
            hint="The stage that declares the kind must bring its own encoding.",
        )


def _write_method(writer: Writer, artifact: Artifact, name: str) -> Any:
    writer.where = f"method {name!r}"
    program = artifact.methods[name]
    if isinstance(artifact, Executorch):
        return _write_plain(writer, program, "description")
    if isinstance(artifact, Prepared):
        from stages.codec.graphs import write_graph_module

        return write_graph_module(writer, program)
    from torch.export import ExportedProgram

    from stages.codec.programs import write_program

    if not isinstance(program, ExportedProgram):
        raise refuse(writer.where, f"a {type(program).__qualname__}", "Give an ExportedProgram.")
    return write_program(writer, program)


def _write_belongings(writer: Writer, artifact: Artifact) -> dict[str, Any]:
    """Encode what belongs to an artifact besides its programs."""
    from stages.codec.shapes import write_shapes
    from stages.codec.specs import write_tree

    belongings: dict[str, Any] = {
        "example_inputs": [
            [name, [write_tree(writer, (sample.args, dict(sample.kwargs))) for sample in samples]]
            for name, samples in artifact.example_inputs.items()
        ],
        "dynamic_shapes": [[name, write_shapes(writer, s)] for name, s in artifact.dynamic_shapes.items()],
        "constant_methods": [
            [name, _write_plain(writer, value, f"constant method {name!r}")]
            for name, value in artifact.constant_methods.items()
        ],
    }
    config = getattr(artifact, "compile_config", None)
    if config is not None:
        belongings["compile_config"] = {
            "check_ir_validity": config.check_ir_validity,
            "skip_dim_order": config.skip_dim_order,
            "core_aten_ops_exception_list": list(config.core_aten_ops_exception_list),
            "preserve_ops": list(config.preserve_ops),
        }
    return belongings


def _write_plain(writer: Writer, value: Any, what: str) -> Any:
    try:
        return write_value(writer, value)
    except Unkept as e:
        raise refuse(writer.where, f"a {what} of type {e.args[0]}", "Use tensors and plain values.") from None


def _finish(writer: Writer, artifact: Artifact, meaning: dict[str, Any], emitted_debug: Any) -> dict[str, Any]:
    from stages.codec.symbols import finish_environments

    environments, environment_debug = finish_environments(writer)
    meaning.update(
        programs=writer.programs,
        graphs=writer.graphs,
        table=writer.meta.rows,
        environments=environments,
        modes=writer.modes,
        tensors=writer.tensors,
        storages=writer.storages,
    )
    debug = {
        "provenance": [[p.stage, p.kind, [list(o) for o in p.options]] for p in artifact.provenance],
        "versions": _versions(),
        "graphs": writer.graph_debug,
        "programs": writer.program_debug,
        "table": writer.debug.rows,
        "environments": environment_debug,
        "emitted": emitted_debug,
        "dropped": dict(sorted(writer.dropped.items())),
    }
    return {"kind": str(artifact.kind), "schema": SCHEMA, "meaning": meaning, "debug": debug}


def _versions() -> dict[str, str]:
    found = {name: installed_version(name) for name in ("etgraph", "torch", "executorch", "torchao", "coremltools")}
    return {name: version for name, version in found.items() if version is not None}


def _decode(cls: Any, meaning: dict[str, Any], debug: dict[str, Any], blobs: BlobSource) -> Artifact:
    from stages.codec.shapes import read_shapes
    from stages.codec.specs import read_tree

    reader = Reader(meaning, debug, blobs)
    fields: dict[str, Any] = {}
    if "compile_config" in meaning:
        config = meaning["compile_config"]
        fields["compile_config"] = EdgeConfig(
            check_ir_validity=config["check_ir_validity"],
            skip_dim_order=config["skip_dim_order"],
            core_aten_ops_exception_list=tuple(config["core_aten_ops_exception_list"]),
            preserve_ops=tuple(config["preserve_ops"]),
        )
    if issubclass(cls, Executorch):
        from stages.codec.emitted import read_emitted

        fields.update(read_emitted(reader))
    inputs = {}
    for name, samples in meaning["example_inputs"]:
        trees = [read_tree(reader, sample) for sample in samples]
        inputs[name] = tuple(Inputs(*args, **kwargs) for args, kwargs in trees)
    return cls(
        methods={name: _read_method(reader, cls, encoded) for name, encoded in meaning["methods"]},
        example_inputs=inputs,
        dynamic_shapes={name: read_shapes(reader, encoded) for name, encoded in meaning["dynamic_shapes"]},
        constant_methods={name: read_value(reader, encoded) for name, encoded in meaning["constant_methods"]},
        provenance=tuple(Provenance(s, k, tuple((a, b) for a, b in o)) for s, k, o in debug["provenance"]),
        **fields,
    )


def _read_method(reader: Reader, cls: Any, encoded: Any) -> Any:
    if issubclass(cls, Executorch):
        return read_value(reader, encoded)
    if not isinstance(encoded, int):
        raise malformed("the position of a program", encoded)
    if issubclass(cls, Prepared):
        from stages.codec.graphs import read_graph_module

        return read_graph_module(reader, encoded)
    from stages.codec.programs import read_program

    return read_program(reader, encoded)
