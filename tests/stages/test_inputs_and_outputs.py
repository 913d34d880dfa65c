"""Inputs, outputs and shapes as people have them (cases C1 to C7), executed in the runtime."""

import pytest
import torch
from torch import nn

import etgraph
from etgraph.errors import UsageError


def run(model, inputs, recipe="portable", **rest):
    return etgraph.run(model, inputs, recipe, cache=False, **rest)


def test_dynamic_shapes_of_a_single_method_are_kept():
    """C1: run the .pte at two batch sizes; the predecessor drops these shapes."""
    batch = torch.export.Dim("batch", min=1, max=8)
    model = nn.Linear(4, 3)
    for recipe in ("portable", "xnnpack_fp32"):
        result = run(model, (torch.randn(2, 4),), recipe, dynamic_shapes={"input": {0: batch}})
        assert result.artifact.methods["forward"]["inputs"][0]["dynamic"]
        assert result.verify([(torch.randn(1, 4),), (torch.randn(7, 4),)]).max_error < 1e-5


def test_shapes_for_a_program_that_is_exported_already_are_refused():
    exported = torch.export.export(nn.Linear(4, 3), (torch.randn(2, 4),))
    with pytest.raises(UsageError, match="whose shapes are fixed already"):
        run(exported, None, dynamic_shapes={"input": {0: torch.export.Dim("b")}})


class Nested(nn.Module):
    def forward(self, x, parts, k: int, option=None):
        y = x + parts["a"]
        if option is not None:
            y = y * option
        return {"out": (y, parts["b"][0] * k)}, x.sum()


def test_nested_keyword_and_plain_inputs():
    """C2: nested dict and tuple inputs and outputs, a plain int, an optional argument left None."""
    parts = {"a": torch.ones(2), "b": (torch.full((3,), 2.0),)}
    result = run(Nested(), etgraph.Inputs(torch.ones(2), parts=parts, k=3, option=None))
    assert result.verify() == {"forward": (0.0, 0.0, 0.0)}


def test_keyword_inputs_are_verified_in_the_order_of_the_export():
    class Sub(nn.Module):
        def forward(self, *, a, b):
            return a - b

    result = run(Sub(), etgraph.Inputs(a=torch.ones(2), b=torch.zeros(2)))
    assert result.verify(etgraph.Inputs(b=torch.full((2,), 5.0), a=torch.ones(2))).max_error == 0
    with pytest.raises(UsageError, match="was exported with"):
        result.verify(etgraph.Inputs(a=torch.ones(2)))


class Counter(nn.Module):
    def forward(self, count, x):
        count.add_(1)
        return count, x * 2


def test_a_model_that_writes_into_an_input_is_told_and_compared_rightly():
    """C3: the outputs move by one."""
    with pytest.warns(etgraph.EtgraphWarning, match="returns 1 more .mutated input count."):
        result = run(Counter(), (torch.zeros(3), torch.ones(2)))
    errors = result.verify()
    assert errors == {"forward": (0.0, 0.0)}
    assert "mutated input count" in errors.notes[0]


class Total(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_buffer("total", torch.full((2,), start))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 1.0


@pytest.mark.parametrize("start", [5.0, 0.0])
@pytest.mark.parametrize("recipe", ["portable", "xnnpack_fp32"])
def test_a_buffer_that_is_updated_starts_from_its_value(start, recipe, recwarn):
    """C4: upstream starts from zero; the source module keeps its value through run and check."""
    model = Total(start)
    result = run(model, [(torch.ones(2),), (torch.full((2,), 3.0),)], recipe)
    assert result.verify() == {"forward": (0.0,)}
    assert model.total.tolist() == [start, start]


def test_upstreams_own_start_value_is_had_on_request():
    recipe = etgraph.get_recipe("portable").with_options("to_executorch", initialize_buffers=False)
    assert run(Total(5.0), (torch.ones(2),), recipe).verify().max_error == 5.0


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def forward(self, x):
        return self.inner(x)


def test_a_module_in_training_mode_is_told_and_left_as_it_was():
    """C5."""
    model = Dropping()
    model.inner[0].eval()
    with pytest.warns(etgraph.EtgraphWarning, match="exported in training mode: dropout"):
        run(model, (torch.ones(1, 4),), to="exported")
    recipe = etgraph.get_recipe("portable").with_options("torch_export", eval_mode=True)
    result = run(model, (torch.ones(1, 4),), recipe)
    assert result.verify().max_error < 1e-6
    assert [m.training for m in model.modules()] == [True, True, False, True]


def test_a_module_in_training_mode_without_such_layers_is_not_told():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", etgraph.EtgraphWarning)
        run(nn.Linear(2, 2).train(), (torch.ones(1, 2),), to="exported")


def test_inputs_in_another_memory_layout_are_refused():
    """C6: the runtime would compute wrong values without a word."""
    result = run(nn.Conv2d(3, 3, 3), (torch.randn(1, 3, 8, 8),))
    with pytest.raises(UsageError, match=r"laid out in memory as \(0, 2, 3, 1\)"):
        result.verify((torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last),))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.float64])
def test_dtypes_and_a_scalar_output(dtype):
    """C7."""

    class Model(nn.Module):
        def forward(self, x):
            return x * 2 + 1, x.sum()

    assert run(Model(), (torch.ones(3, dtype=dtype),)).verify() == {"forward": (0.0, 0.0)}


def test_constant_methods_are_emitted_and_must_not_clash():
    from executorch.runtime import Runtime

    result = run(nn.Linear(2, 2), (torch.ones(1, 2),), constant_methods={"width": 7})
    program = Runtime.get().load_program(result.artifact.buffer)
    assert program.method_names == {"forward", "width"}
    assert program.load_method("width").execute([]) == [7]
    with pytest.raises(UsageError, match="which the program has as methods"):
        run(nn.Linear(2, 2), (torch.ones(1, 2),), constant_methods={"forward": 7})


def test_a_model_without_forward_is_told_how_to_name_its_methods():
    class Silent(nn.Module):
        def speak(self, x):
            return x

    with pytest.raises(UsageError, match="has no forward") as caught:
        run(Silent(), (torch.ones(1),))
    assert "example_inputs={" in str(caught.value)
    assert run(Silent(), {"speak": (torch.ones(1),)}).verify() == {"speak": (0.0,)}
    with pytest.raises(UsageError, match="did you mean 'speak'"):
        run(Silent(), {"speek": (torch.ones(1),)})


def test_missing_inputs_are_told_before_any_work():
    events = []
    with pytest.raises(UsageError, match="has no example inputs"):
        run(nn.Linear(2, 2), None, on_event=events.append)
    assert events == []


def test_strict_tracing_and_every_form_of_dynamic_shapes():
    from torch.export import Dim, ShapesCollection

    x = torch.randn(2, 4)
    model = nn.Linear(4, 3)
    collection = ShapesCollection()
    collection[x] = {0: Dim("batch", min=1, max=8)}
    for shapes in (
        {"input": {0: Dim.DYNAMIC}},
        ({0: Dim.AUTO},),
        [{0: Dim("b", min=1, max=9)}],
        ((Dim.DYNAMIC, None),),
        {"forward": ({0: Dim.DYNAMIC},)},
        collection,
    ):
        artifact = run(model, (x,), to="exported", dynamic_shapes=shapes).artifact
        assert artifact.methods["forward"].range_constraints, shapes
    recipe = etgraph.get_recipe("portable").with_options("torch_export", strict=True)
    assert run(model, (x,), recipe).verify().max_error < 1e-5


class ReturnsItsBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.full((2,), 5.0))
        self.register_buffer("wide", torch.randn(1, 2).expand(3, 2))

    def forward(self, x):
        self.count.add_(1)
        return self.count, x + self.wide


def test_an_output_that_is_an_updated_buffer_is_compared_by_the_value_that_was_returned():
    """The reference gets its buffers back after each call; what it returned must not go back with them."""
    model = ReturnsItsBuffer()
    result = run(model, [(torch.zeros(3, 2),), (torch.ones(3, 2),)])
    assert result.verify() == {"forward": (0.0, 0.0)}
    assert model.count.tolist() == [5.0, 5.0]


def test_inputs_that_the_runtime_refuses_are_told_with_what_it_takes():
    batch = torch.export.Dim("batch", min=1, max=8)
    result = run(nn.Linear(4, 3), (torch.randn(2, 4),), dynamic_shapes={"input": {0: batch}})
    with pytest.raises(UsageError, match=r"it takes float\[8, 4\] at most"):
        result.verify((torch.randn(9, 4),))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"keep": "edge"}, "keep is 'edge'"),
        ({"on_event": 3}, "on_event is 3"),
        ({"trust": "x"}, "trust is 'x'"),
        ({"to": []}, "there is no kind"),
        ({"constant_methods": {3: 3}}, "constant_methods is"),
    ],
)
def test_arguments_of_a_wrong_type_are_told(wrong, words):
    with pytest.raises(UsageError, match=words):
        run(nn.Linear(2, 2), (torch.ones(1, 2),), **wrong)


@pytest.mark.parametrize("wrong", [None, 3, b"x", [], ""])
def test_what_is_no_path_is_told(wrong):
    with pytest.raises(UsageError, match="is not a path to a file"):
        etgraph.load(wrong)


@pytest.mark.parametrize("name", ["input", "print", "type"])
def test_an_input_may_have_the_name_of_a_builtin(name):
    """Copies of a graph keep the names that the signature has; `nn.Sequential` calls its input `input`."""
    from etgraph.recipes import Recipe

    namespace = {"torch": torch}
    exec(f"class Named(torch.nn.Module):\n    def forward(self, {name}):\n        return {name} + 1", namespace)
    recipe = Recipe(name="passing", stages={"aten_passes": {"passes": [_same]}})
    result = etgraph.run(namespace["Named"](), (torch.ones(2),), recipe=recipe, cache=False, keep=["edge"])
    assert result.verify().max_error == 0.0


def _same(method, program):
    return program
