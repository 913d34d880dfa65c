"""Artifacts as data that can be kept: what the engine asks the codec for, by name.

The cache keeps programs without their example inputs, which change no later program: what is served gets the
inputs of the run that it is served to.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Inputs


@etgraph.service("can_be_kept")
def can_be_kept(kind: str) -> bool:
    """Whether artifacts of a kind can be kept in a file or in the cache."""
    from stages.codec import KEPT

    return kind in KEPT


@etgraph.service("encode")
def encode(artifact: Artifact) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Encode an artifact as a JSON-able document and the blobs that it names."""
    from stages import codec

    return codec.encode(artifact)


@etgraph.service("decode")
def decode(document: Mapping[str, Any], blobs: Any) -> Artifact:
    """Make the artifact that was encoded."""
    from stages import codec

    return codec.decode(document, blobs)


@etgraph.service("fingerprint")
def fingerprint(artifact: Artifact) -> str:
    """Digest what an artifact means, its example inputs included."""
    from stages import codec

    return codec.fingerprint(artifact)


@etgraph.service("fingerprint_of_document")
def fingerprint_of_document(document: Mapping[str, Any]) -> str:
    """Digest what the artifact in a document means, without decoding it."""
    from stages import codec

    return codec.fingerprint_of_document(document)


@etgraph.service("debug_fingerprint")
def debug_fingerprint(artifact: Artifact) -> str:
    """Digest what only people and tools read of an artifact: stack traces, and where its nodes came from."""
    from blake3 import blake3

    from stages import codec

    debug = {key: value for key, value in codec.encode(artifact)[0]["debug"].items() if key != "provenance"}
    return str(blake3(json.dumps(debug, sort_keys=True).encode()).hexdigest())


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
    """Return, for each method, what an export depends on of its first sample: everything but numbers in tensors."""
    import torch
    from torch.utils import _pytree as pytree

    def spec(value: Any) -> Any:
        if type(value) is not torch.Tensor:
            return value  # a subclass may mean more than its shape: it enters as it is
        return (
            "tensor", str(value.dtype), tuple(value.shape), value.stride(), str(value.device), value.requires_grad,
        )  # fmt: skip

    first = {method: samples[0] for method, samples in artifact.example_inputs.items() if samples}
    return {method: pytree.tree_map(spec, (one.args, dict(one.kwargs))) for method, one in first.items()}
