"""The codec of ExecuTorch's kinds, their files, and what the cache asks about example inputs.

The cache keeps programs without their example inputs, which change no later program: what is served gets the
inputs of the run that it is served to.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs


def _encode(artifact: Artifact) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    from stages import codec

    return codec.encode(artifact)


def _decode(document: Mapping[str, Any], blobs: Any) -> Artifact:
    from stages import codec

    return codec.decode(document, blobs)


def _meaning(document: Mapping[str, Any]) -> Any:
    return document["meaning"]


for _kind in ("exported", "prepared", "quantized", "edge", "lowered", "executorch"):
    etgraph.codec(_kind, encode=_encode, decode=_decode, meaning=_meaning)


@etgraph.service("debug_fingerprint")
def debug_fingerprint(artifact: Artifact) -> str:
    """Digest what only people and tools read of an artifact: stack traces, and where its nodes came from."""
    from blake3 import blake3

    debug = {key: value for key, value in _encode(artifact)[0]["debug"].items() if key != "provenance"}
    return str(blake3(json.dumps(debug, sort_keys=True).encode()).hexdigest())


@etgraph.service("describe_file")
def describe_file(path: str | os.PathLike[str]) -> Any:
    """Say what a file is: `.kind`, `.form`, `.words`; torch is not imported."""
    from stages.codec.foreign import recognise_file

    return recognise_file(path)


@etgraph.service("load_file")
def load_file(path: str | os.PathLike[str], *, trust: bool = False) -> Artifact:
    """Load an artifact from a file of etgraph's, torch's or ExecuTorch's making."""
    from stages.codec import foreign

    return foreign.load_file(path, trust=trust)


@etgraph.service("file_versions")
def file_versions(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the versions that a file of etgraph's was written with; nothing for any other file."""
    from etgraph import container

    if not container.is_container(path):
        return {}
    versions = container.read(path, verify=False).document.get("debug", {}).get("versions", {})
    return {str(name): str(version) for name, version in versions.items()}


@etgraph.service("save_file")
def save_file(artifact: Artifact, path: str | os.PathLike[str]) -> Path:
    """Write an artifact to a file, whole or not at all, in the form that its suffix names."""
    from etgraph import container
    from etgraph.encoding import encode

    path = Path(path)
    _check_suffix(artifact.kind, path)
    if path.suffix == ".pte":
        assert isinstance(artifact, Executorch)
        _save_pte(artifact, path)
    elif path.suffix == ".pt2":
        from stages.codec.foreign_pt2 import save_pt2

        save_pt2(artifact, path)
    else:
        container.write(path, *encode(artifact))
    return path


def _check_suffix(kind: str, path: Path) -> None:
    forms = {"executorch": (".pte", ".etg"), "exported": (".etg", ".pt2"), "quantized": (".etg", ".pt2")}
    allowed = forms.get(kind, (".etg",))
    if path.suffix not in allowed:
        named = f"under the suffix {path.suffix!r}" if path.suffix else "without a suffix"
        raise etgraph.UsageError(
            f"a program at {kind} is not written {named} ({path.name})",
            hint=f"Name it {path.stem.partition('.')[0]}.{kind}.etg"
            + "".join(f", or {path.stem.partition('.')[0]}{suffix}" for suffix in allowed if suffix != ".etg")
            + ".",
        )


def _save_pte(artifact: Executorch, path: Path) -> None:
    """Write the data files first and the program last: a `.pte` that is there has all that it needs."""
    for name in artifact.data_pieces:
        if Path(name).name != name:
            raise etgraph.UsageError(
                f"{path}: the data file {name!r} would not lie beside it", hint="Name it without a folder."
            )
    for name, pieces in artifact.data_pieces.items():
        _write_pieces(path.with_name(name), pieces)
    _write_pieces(path, artifact.pieces)


def _write_pieces(path: Path, pieces: Sequence[bytes | memoryview]) -> None:
    """Write a file; one that has these bytes already is only given the time of now, which is much faster."""
    from etgraph.files import holds, replace_file, write_pieces

    if holds(path, pieces):
        with contextlib.suppress(OSError):
            os.utime(path)
        return
    replace_file(path, lambda file: write_pieces(file, pieces))


@etgraph.service("without_inputs")
def without_inputs(artifact: Artifact) -> tuple[Artifact, Sequence[str]]:
    """Return the artifact without example inputs, and the methods whose programs held some of their own."""
    holding = [method for method, ep in artifact.methods.items() if getattr(ep, "example_inputs", None) is not None]
    methods = {m: _with(ep, None) if m in holding else ep for m, ep in artifact.methods.items()}
    return replace(artifact, methods=methods, example_inputs={}), holding


@etgraph.service("with_inputs")
def with_inputs(artifact: Artifact, inputs: Mapping[str, tuple[Inputs, ...]], holding: Sequence[str]) -> Artifact:
    """Give an artifact example inputs, and to the programs of some methods the first sample as their own."""
    methods = {
        method: _with(ep, (inputs[method][0].args, dict(inputs[method][0].kwargs)))
        if method in holding and inputs.get(method)
        else ep
        for method, ep in artifact.methods.items()
    }
    return replace(artifact, methods=methods, example_inputs=inputs)


def _with(program: Any, example_inputs: Any) -> Any:
    """Return the same program with other example inputs; graph and weights are shared."""
    changed = copy.copy(program)
    changed._example_inputs = example_inputs
    return changed


@etgraph.service("input_specs")
def input_specs(artifact: Artifact) -> Any:
    """Return, for each method, what an export depends on of its first sample: everything but numbers in tensors.

    That includes which tensors are one and the same: of two inputs that are one tensor, a trace uses only the last.
    """
    import torch
    from torch.utils import _pytree as pytree

    first = {method: samples[0] for method, samples in artifact.example_inputs.items() if samples}
    found = {}
    for method, sample in first.items():
        met = _Met(artifact.methods[method])

        def spec(value: Any, met: _Met = met) -> Any:
            if type(value) is not torch.Tensor:
                return value  # a subclass may mean more than its shape: it enters as it is
            strides = value.stride() if value.layout is torch.strided else value.layout
            return (
                "tensor", value.dtype, tuple(value.shape), strides, value.device, value.requires_grad,
                value.is_conj(), value.is_neg(), value.is_inference(), met.same_as(value),
            )  # fmt: skip

        found[method] = pytree.tree_map(spec, (sample.args, dict(sample.kwargs)))
    return found


class _Met:
    """Tensors and memory that were met before, beginning with those of a model."""

    def __init__(self, method: Any) -> None:
        self._tensors: dict[int, str] = {}
        self._storages: dict[int, tuple[str, int]] = {}
        owner = getattr(method, "__self__", method)
        for name, value in (*owner.named_parameters(), *owner.named_buffers()):
            self._note(name, value)

    def same_as(self, value: Any) -> str:
        """Say what a tensor is the same as, or shares memory with; nothing where it is met for the first time."""
        if id(value) in self._tensors:
            return f"the same tensor as {self._tensors[id(value)]}"
        return self._note(f"input {len(self._tensors)}", value)

    def _note(self, name: str, value: Any) -> str:
        import torch

        self._tensors[id(value)] = name
        plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        if not plain or value.layout is not torch.strided or not value.untyped_storage().data_ptr():
            return ""
        address = value.untyped_storage().data_ptr()
        where, begin = self._storages.setdefault(address, (name, value.storage_offset() * value.element_size()))
        offset = value.storage_offset() * value.element_size()
        return f"{offset - begin} bytes after {where}, in the same memory" if where != name else ""


@etgraph.service("input_values")
def input_values(artifact: Artifact) -> Any:
    """Return all example inputs as plain containers: those of the artifact, and those inside its programs."""
    given = {
        method: [(one.args, dict(one.kwargs)) for one in samples] for method, samples in artifact.example_inputs.items()
    }
    inside = {method: getattr(program, "example_inputs", None) for method, program in artifact.methods.items()}
    return [given, inside if artifact.kind != "module" else {}]
