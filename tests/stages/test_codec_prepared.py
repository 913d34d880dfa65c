"""Prepared and quantized programs survive: calibrate or train here, convert there."""

from __future__ import annotations

import pytest
import torch
from codec_support import converted, final_bytes, in_new_process, load, prepared, quantizable_inputs, save
from torch import nn

from etgraph.artifact import Prepared, Quantized
from etgraph.errors import UsageError
from stages.codec import encode, fingerprint


def test_calibrated_then_saved_then_converted_gives_the_same_program(tmp_path):
    """What observers have seen is kept, and so is what convert needs."""
    graph = prepared(qat=False)
    loaded = load(save(Prepared(methods={"forward": graph}), tmp_path / "m.prepared.etg"))
    assert fingerprint(loaded) == fingerprint(Prepared(methods={"forward": graph}))
    with torch.no_grad():
        here, there = (Quantized(methods={"forward": converted(g)}) for g in (graph, loaded["forward"]))
    assert final_bytes(there, "xnnpack") == final_bytes(here, "xnnpack")
    again = load(save(here, tmp_path / "m.quantized.etg"))
    assert final_bytes(again, "xnnpack") == final_bytes(here, "xnnpack")


@pytest.mark.slow
def test_trained_after_loading_is_trained_the_same(tmp_path):
    """QAT: one step of training on the loaded graph gives the weights and outputs of one on the original."""
    from torchao.quantization.pt2e import move_exported_model_to_eval, move_exported_model_to_train

    graph = prepared(qat=True)
    path = save(Prepared(methods={"forward": graph}), tmp_path / "m.prepared.etg")
    before = path.read_bytes()
    outputs = []
    for one in (graph, load(path)["forward"]):
        move_exported_model_to_train(one)
        optimizer = torch.optim.SGD(one.parameters(), 0.1)
        one(*quantizable_inputs()).square().sum().backward()
        optimizer.step()
        move_exported_model_to_eval(one)
        with torch.no_grad():
            outputs.append(converted(one).module()(*quantizable_inputs()))
    assert torch.equal(*outputs)
    assert path.read_bytes() == before


def test_a_quantized_program_loads_in_a_process_that_imported_nothing_else(tmp_path):
    """The operator library of q/dq operators is imported as needed."""
    with torch.no_grad():
        source = Quantized(methods={"forward": converted(prepared(qat=False))})
    save(source, tmp_path / "m.quantized.etg")
    code = """
from etgraph import container
from stages.codec import decode, fingerprint
opened = container.read(sys.argv[1])
print(fingerprint(decode(opened.document, opened)))
"""
    assert in_new_process(code, tmp_path / "m.quantized.etg") == fingerprint(source)


def test_an_unknown_submodule_is_refused_by_name():
    """A module that is no observer is named, with what can be kept."""
    graph = prepared(qat=False)
    graph.add_module("activation_post_process_0", nn.ReLU())
    with pytest.raises(UsageError, match=r"activation_post_process_0.*ReLU"):
        encode(Prepared(methods={"forward": graph}))
