"""Quantization-aware training: in the run, and outside of it between two processes."""

import copy
import subprocess
import sys

import pytest
import torch
from quantizable import Small, Trainable, seeded, small_inputs, snr

import etgraph
from etgraph.errors import UsageError

#: Run in a process of its own: train a prepared program that was saved, and save it again.
TRAINER = """
import sys
import torch
import etgraph
from torchao.quantization.pt2e import allow_exported_model_train_eval, move_exported_model_to_train

artifact = etgraph.load(sys.argv[1])
module = artifact["forward"]
allow_exported_model_train_eval(module)
move_exported_model_to_train(module)
optimizer = torch.optim.SGD(module.parameters(), lr=0.02)
random = torch.Generator().manual_seed(5)
for _ in range(4):
    optimizer.zero_grad()
    (module(torch.randn(4, 32, generator=random)) ** 2).mean().backward()
    optimizer.step()
artifact.save(sys.argv[2])
"""


def trainer(*shape):
    """Return a function that trains in four steps towards zero output."""

    def train(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.02)
        random = torch.Generator().manual_seed(5)
        for _ in range(4):
            optimizer.zero_grad()
            (module(torch.randn(*shape, generator=random)) ** 2).mean().backward()
            optimizer.step()

    return train


def trained_here():
    return etgraph.get_recipe("xnnpack_int8_qat", train_fn=trainer(4, 32))


def executed(result, x):
    from executorch.runtime import Runtime

    buffer = result.artifact.buffer  # the runtime reads from it, and does not hold it
    return Runtime.get().load_program(buffer).load_method("forward").execute((x,))[0].clone()


def check_training(model, x, train, start):
    """Run the whole way, and check what became of weights, of the caller's module, and of the result."""
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    recipe = etgraph.get_recipe("xnnpack_int8_qat", train_fn=train)
    source, given = (model, ((x,),)) if start == "module" else (torch.export.export(model.eval(), (x,)), ())
    model.train()
    result = etgraph.run(source, *given, recipe=recipe, cache=False, keep=["prepared", "quantized"])
    assert "train" in [step.stage for step in result.steps]
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    trained = result["prepared"]["forward"]
    assert not all(torch.equal(value, before[name]) for name, value in trained.named_parameters())
    output = executed(result, x)
    assert float(output.square().sum()) < float(model.eval()(x).square().sum())
    assert snr(result["quantized"]["forward"].module()(x), output) > 30
    return trained


@pytest.mark.parametrize("start", ["module", "exported"])
def test_a_program_is_trained_converted_and_lowered_and_the_caller_keeps_an_untrained_one(start):
    """Case D3."""
    check_training(seeded(Small), small_inputs(1)[0][0], trainer(4, 32), start)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["module", "exported"])
def test_batch_norm_learns_though_the_program_was_captured_as_in_eval(start):
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    trained = check_training(seeded(Trainable), x, trainer(4, 3, 8, 8), start)
    means = [value for name, value in trained.named_buffers() if "running_mean" in name]
    assert means
    assert all(bool(value.ne(0).any()) for value in means)


def test_without_a_train_fn_it_is_refused_before_work():
    events = []
    with pytest.raises(UsageError, match="for quantization-aware training, and has no train_fn"):
        etgraph.run(seeded(Small), small_inputs(1), "xnnpack_int8_qat", cache=False, on_event=events.append)
    assert events == []


def test_trained_in_another_process_between_two_runs_is_what_training_in_the_run_gives(tmp_path):
    """Case D3."""
    stopped = etgraph.run(seeded(Small), small_inputs(1), "xnnpack_int8_qat", "prepared", cache=False)
    assert "train the prepared program before going on" in stopped.plan.notes[0]
    with pytest.raises(UsageError, match="has no train_fn"):
        etgraph.plan(stopped.artifact, recipe="xnnpack_int8_qat", cache=False)
    path = stopped.artifact.save(tmp_path / "m.prepared.etg")
    trained = tmp_path / "trained.prepared.etg"
    subprocess.run([sys.executable, "-c", TRAINER, path, trained], check=True, capture_output=True)
    resumed = etgraph.run(trained, recipe="xnnpack_int8_qat", cache=False)
    assert [step.stage for step in resumed.steps] == ["convert", "to_edge_transform_and_lower", "to_executorch"]
    inside = etgraph.run(seeded(Small), small_inputs(1), trained_here(), cache=False)
    assert resumed.artifact.buffer == inside.artifact.buffer


def test_training_is_reused_only_when_it_says_what_it_depends_on():
    declared = trainer(4, 32)
    declared.__etgraph_fingerprint__ = {"data": "seed 5", "steps": 4}
    for function, outcome in ((trainer(4, 32), "ran"), (declared, "reused")):
        recipe = etgraph.get_recipe("xnnpack_int8_qat", train_fn=function)
        etgraph.run(seeded(Small), small_inputs(1), recipe, "prepared")
        steps = etgraph.run(seeded(Small), small_inputs(1), recipe, "prepared").steps
        assert steps[-1].stage == "train"
        assert steps[-1].outcome == outcome, steps[-1].reason


def test_training_outside_writes_to_no_weight_of_the_caller_and_training_inside_to_none_of_what_it_is_given():
    model = seeded(Small)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stopped = etgraph.run(model, small_inputs(1), "xnnpack_int8_qat", "prepared", cache=False).artifact
    fingerprint = stopped.fingerprint
    etgraph.run(stopped, recipe=trained_here(), to="prepared", cache=False)
    assert stopped.fingerprint == fingerprint
    trainer(4, 32)(stopped["forward"])
    assert stopped.fingerprint != fingerprint
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_was_trained_is_checked_against_the_trained_program():
    """The source computes something else by then; the training is not run again for it."""
    calls = []
    train = trainer(4, 32)

    def counted(module):
        calls.append(module)
        train(module)

    recipe = etgraph.get_recipe("xnnpack_int8_qat", train_fn=counted)
    result = etgraph.run(seeded(Small), small_inputs(1), recipe, cache=False)
    found = result.verify()
    assert found.min_snr > 20
    assert found.notes == ("compared with the trained program, which train made of the source",)
    assert len(calls) == 1


def test_training_drops_out_and_what_was_trained_does_not():
    x = small_inputs(1)[0][0]
    dropped = []

    def differs(module):
        first, second = (copy.deepcopy(module)(x) for _ in range(2))
        return not torch.equal(first, second)

    recipe = etgraph.get_recipe("xnnpack_int8_qat", train_fn=lambda module: dropped.append(differs(module)))
    model = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.Dropout(0.5))
    trained = etgraph.run(model, (x,), recipe, "prepared", cache=False).artifact["forward"]
    assert dropped == [True]
    assert not differs(trained)


def test_a_program_that_was_left_in_training_mode_outside_is_converted_in_evaluation_mode():
    from torchao.quantization.pt2e import allow_exported_model_train_eval, move_exported_model_to_train

    x = small_inputs(1)[0][0]
    model = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.Dropout(0.5))
    stopped = etgraph.run(model, (x,), "xnnpack_int8_qat", "prepared", cache=False).artifact
    module = stopped["forward"]
    allow_exported_model_train_eval(module)
    move_exported_model_to_train(module)
    module(x)
    converted = etgraph.run(stopped, recipe="xnnpack_int8_qat", to="quantized", cache=False)["quantized"][
        "forward"
    ].module()
    assert torch.equal(converted(x), converted(x))


def test_what_was_trained_is_bundled_and_traced_against_the_trained_program(tmp_path):
    """A bundled program promises the outputs of the trained one; training is not where the numbers go wrong."""
    model, inputs = seeded(Small), small_inputs(1)
    result = etgraph.run(model, inputs, trained_here(), cache=False, bundled=tmp_path / "net.bpte")
    ((expected,),) = etgraph.load(tmp_path / "net.bpte").expected_outputs["forward"]
    x = inputs[0][0]
    assert snr(expected, executed(result, x)) > 20 > snr(model.eval()(x), executed(result, x))
    for found in (result.compare(), etgraph.compare(model, inputs=inputs, recipe=trained_here(), cache=False)):
        assert [stage.kind for stage in found.stages] == ["prepared", "quantized", "lowered", "executorch"]
        assert found.within, found
        assert found.notes[0] == "compared with the trained program, which train made of the source"


def test_a_run_from_a_prepared_program_is_checked_against_that(tmp_path):
    stopped = etgraph.run(seeded(Small), small_inputs(1), "xnnpack_int8_qat", "prepared", cache=False).artifact
    trainer(4, 32)(stopped["forward"])
    path = stopped.save(tmp_path / "net.prepared.etg")
    result = etgraph.run(path, recipe="xnnpack_int8_qat", cache=False)
    found = result.verify()
    assert found.min_snr > 20
    assert found.notes == ("compared with the prepared program, which the run began with",)
