"""A contract that every registered stage keeps: it declares itself, and leaves what it is given as it was."""

import inspect

import pytest
import torch
from models import made

import etgraph
from etgraph.artifact import KINDS
from etgraph.recipes import evaluated
from etgraph.registry import registry

registry.load_plugins()
STAGES = [stage for stage in registry.stages.values() if stage.function.__module__.startswith("stages.")]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_stage_declares_itself(stage):
    assert stage.summary.endswith("."), "the docstring begins with a sentence"
    assert set(stage.consumes) <= set(KINDS)
    assert all(stage.result_of(kind) in KINDS for kind in stage.consumes)
    for name, parameter in stage.options.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, name
        assert parameter.annotation is not inspect.Parameter.empty, name
    documented = inspect.getdoc(stage.function)
    undocumented = [name for name in stage.options if f"{name}:" not in documented and f"`{name}`" not in documented]
    assert len(stage.options) <= 1 or not undocumented, f"options without a word: {undocumented}"


def weights(artifact):
    """Every tensor of an eager model, by value."""
    return {
        (method, name): value.clone()
        for method, held in artifact.methods.items()
        for name, value in getattr(held, "__self__", held).state_dict().items()
    }


@pytest.mark.parametrize(
    ("name", "recipe", "path"),
    [
        ("cache", "xnnpack_fp32", "split"),
        ("methods", "xnnpack_fp32", "combined"),
        ("conv", "xnnpack_int8", "combined"),
        ("branching", "portable", "auto"),
    ],
)
def test_inputs_are_values_on_every_step(name, recipe, path):
    """Promise 2: fingerprint what goes into each stage, run the stage, and fingerprint it again."""
    model, inputs, rest = made(name)
    calibration = [inputs] if "int8" in recipe else None
    plan = etgraph.plan(model, inputs, recipe, path=path, calibration_inputs=calibration, cache=False, **rest)
    seen = []

    def watch(event):
        if event.name == "step_finished":
            seen.append((event.planned, event.artifact))

    result = etgraph.run(
        model, inputs, recipe, path=path, calibration_inputs=calibration, cache=False, on_event=watch, **rest
    )
    given = result.source
    before = weights(given)
    flags = [module.training for held in given.methods.values() for module in _modules(held)]
    for planned, produced in seen:
        fingerprint = given.fingerprint if given.kind not in ("module", "prepared") else None
        if planned.definition.name not in ("calibrate", "prepare", "convert"):
            planned.definition(given, **evaluated(planned.options))
        if fingerprint is not None:
            assert given.fingerprint == fingerprint, planned.stage
        given = produced
    assert [step.stage for step in plan.steps] == [planned.stage for planned, _ in seen]
    after = weights(result.source)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert flags == [module.training for held in result.source.methods.values() for module in _modules(held)]


def _modules(held):
    return getattr(held, "__self__", held).modules()
