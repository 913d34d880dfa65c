"""`etgraph.check`: what it says is what a run does, each reason is the partitioner's, and nothing is compiled."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from models import made
from torch import nn

import etgraph
from etgraph.registry import registry

registry.load_plugins()

_CORTEX_M = registry.targets["baremetal-cortex_m55-cmsis_nn-int8"]
cortex_m = pytest.mark.skipif(bool(_CORTEX_M.to_lower.missing()), reason="tosa-tools is not installed")


@pytest.fixture(autouse=True)
def one_cache(own_cache, tmp_path_factory, monkeypatch):
    """One cache for all tests of this file, which look at the same few programs."""
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache_of_checking"))


def check(model, inputs, recipe="xnnpack_fp32", **rest):
    """Check against one recipe, without asking other targets, as that imports their SDKs."""
    return etgraph.check(model, inputs, recipe, **{"elsewhere": False, **rest})


def groups(found, method="forward", backend=0):
    """Return operator name to the group that it is in."""
    untaken = found.methods[method].backends[backend].untaken
    return {operator.operator: group for group in untaken for operator in group.operators}


class Middle(nn.Module):
    """An operator that XNNPACK lacks, in the middle of a network."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x).relu()
        x = torch.cumsum(x, 1)  # the planted fault
        return self.last(x)


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("attention", "branching", "cache", "recurrent")]


@pytest.mark.parametrize("name", ["conv", "methods", "dynamic", *LONG])
def test_what_it_says_is_what_a_run_delegates(name):
    model, inputs, rest = made(name)
    found = check(model, inputs, **rest)
    run = etgraph.run(model, inputs, "xnnpack_fp32", to="lowered", **rest)
    assert found.delegation == run.delegation
    json.dumps(found.to_json(), allow_nan=False)
    assert str(found)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["android-arm64-vulkan-fp32", "ios-arm64-coreml-fp16", "generic-tosa_1.0-tosa-fp32"])
@pytest.mark.parametrize("name", ["conv", "attention", "recurrent"])
def test_what_it_says_is_what_a_run_delegates_to_other_backends(target, name):
    if registry.targets[target].to_lower.missing():
        pytest.skip("cannot be lowered here")
    model, inputs, rest = made(name)
    found = etgraph.check(model, inputs, target=target, elsewhere=False, **rest)
    assert found.delegation == etgraph.run(model, inputs, target=target, to="lowered", **rest).delegation


@pytest.mark.slow
def test_quantized_programs_are_calibrated_and_checked_as_a_run_lowers_them():
    model, inputs, _ = made("conv")
    samples = [(torch.randn(1, 3, 10, 10),) for _ in range(2)]
    found = check(model, inputs, "xnnpack_int8", calibration_inputs=samples)
    run = etgraph.run(model, inputs, "xnnpack_int8", to="lowered", calibration_inputs=samples)
    assert found.delegation == run.delegation
    assert "convert" in [step.stage for step in found.steps]
    with pytest.raises(etgraph.UsageError, match="calibration_inputs"):
        check(model, inputs, "xnnpack_int8")


def test_an_unsupported_operator_in_the_middle_is_named_with_its_source_line():
    found = check(Middle(), (torch.randn(2, 4),))
    group = groups(found)["aten.cumsum.default"]
    assert (group.code, group.quoted) == ("unknown_operator", False)
    (operator,) = group.operators
    assert "test_checking.py:" in operator.source_line
    assert "x = torch.cumsum(x, 1)" in operator.source_line
    assert operator.value == "float32[2, 4]"
    assert [left.operator for left in found.methods["forward"].left] == ["aten.cumsum.default"]
    assert "torch.cumsum(x, 1)" in str(found)


def test_operators_of_methods_that_are_not_called_forward_have_their_lines_too():
    class Two(nn.Module):
        def encode(self, x):
            return torch.cumsum(x + 1.0, 0)

        def decode(self, z):
            return torch.cumsum(z - 1.0, 1)

    inputs = {"encode": (torch.ones(2, 3),), "decode": (torch.ones(2, 3),)}
    found = check(Two(), inputs)
    for method, line in (("encode", "torch.cumsum(x + 1.0, 0)"), ("decode", "torch.cumsum(z - 1.0, 1)")):
        (operator,) = groups(found, method)["aten.cumsum.default"].operators
        assert "test_checking.py:" in operator.source_line
        assert operator.source_line.endswith(f"return {line}")


def test_words_of_the_partitioner_are_quoted_and_group_what_they_are_about():
    class Means(nn.Module):
        def forward(self, x):
            return x.mean((2, 3)), (x + x).mean((2, 3))

    (group,) = check(Means(), (torch.randn(1, 2, 4, 4),)).methods["forward"].backends[0].untaken
    assert (group.reason, group.quoted, group.code) == ("mean.dim only supports keepdim=True", True, "arguments")
    assert [one.operator for one in group.operators] == ["aten.mean.dim"] * 2


def test_a_dtype_that_is_in_the_way_is_named_and_another_one_tried():
    class Gelu(nn.Module):
        def forward(self, x, n):
            return nn.functional.gelu(x), n + n

    found = groups(check(Gelu(), (torch.randn(2, 3).half(), torch.tensor([1, 2]))))
    assert found["aten.gelu.default"].code == "dtype"
    assert found["aten.gelu.default"].helps == ("float32 in the place of float16: it is then taken",)
    assert found["aten.add.Tensor"].reason == "invalid dtype (int64)"
    assert found["aten.add.Tensor"].helps == ()


def dynamic_sizes():
    class Sizes(nn.Module):
        def forward(self, x):
            pooled = nn.functional.max_pool2d(x.reshape(x.shape[0], 2, 4, 4), 3, ceil_mode=True)
            return pooled.reshape(x.shape[0], -1)

    return etgraph.Source(Sizes(), (torch.randn(2, 32),), {"x": {0: torch.export.Dim("batch", min=1, max=8)}})


def test_dynamic_sizes_that_are_in_the_way_are_told_from_dtypes_and_static_ones_tried():
    found = groups(check(dynamic_sizes(), None))
    views = found["aten.view_copy.default"]
    assert (views.code, views.quoted) == ("dynamic_shape", True)
    assert views.helps == ("static shapes: it is then taken",)
    assert found["aten.sym_size.int"].code == "dynamic_shape"
    assert found["aten.sym_size.int"].operators[0].source_line == ""


def test_what_was_refused_whole_and_decomposed_for_that_has_the_reason_given_then():
    pool = groups(check(dynamic_sizes(), None))["aten.max_pool2d_with_indices.default"]
    assert pool.reason.startswith("it comes from aten.max_pool2d.default")
    assert pool.reason.endswith("ceil mode is not supported for dynamic shapes")
    assert pool.code == "dynamic_shape"


def test_an_operator_that_was_kept_whole_is_tried_decomposed():
    program = torch.export.export(nn.Sequential(nn.SiLU(), nn.Mish()), (torch.randn(2, 3),))
    whole = etgraph.Recipe("kept", {"to_edge": {"preserve_ops": ["aten.silu.default", "aten.mish.default"]}})
    found = groups(check(etgraph.run(program, recipe=whole, to="edge").artifact, None))
    (help_,) = found["aten.silu.default"].helps
    assert help_ == "decomposed into aten.mul.Tensor, aten.sigmoid.default: tried by itself, it is then taken"
    # Of what this one is made of, XNNPACK lacks the logarithm.
    assert found["aten.mish.default"].helps == ()


def test_branches_are_said_to_be_out_of_sight():
    model, inputs, rest = made("branching")
    found = check(model, inputs, **rest)
    inside = [group for group in found.methods["forward"].backends[0].untaken if group.code == "branch"]
    assert inside
    assert all("." in operator.node for group in inside for operator in group.operators)


def test_each_backend_is_offered_what_those_before_it_left():
    class Several(nn.Module):
        def forward(self, x):
            return torch.cumsum(torch.special.expm1(x).neg(), 1).abs() + torch.ceil(x)

    found = etgraph.check(Several(), (torch.randn(2, 4),), target="android-arm64-vulkan-fp32", elsewhere=False)
    vulkan, xnnpack = found.methods["forward"].backends
    assert (vulkan.backend, xnnpack.backend) == ("VulkanBackend", "XnnpackBackend")
    assert xnnpack.offered == vulkan.offered - len(vulkan.taken)
    assert xnnpack.taken
    name = xnnpack.taken[0].operator
    assert groups(found)[name].helps == ("nothing is needed: XnnpackPartitioner, which is asked next, takes it",)
    assert groups(found)["aten.cumsum.default"].code == "unknown_operator"


def test_other_targets_are_asked_only_about_what_is_left(monkeypatch):
    from etgraph import checking

    monkeypatch.setattr(checking, "_targets_by_backend", lambda recipe: pytest.fail("they were asked"))
    assert etgraph.check(nn.Linear(4, 4), (torch.randn(2, 4),), "xnnpack_fp32").share == 1.0


def test_another_target_is_named_once_where_the_last_backend_leaves_an_operator(monkeypatch):
    from executorch.backends.xnnpack.partition.config.generic_node_configs import AddConfig, ReLUConfig
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    from etgraph import checking

    class Sines(nn.Module):
        def forward(self, x):
            return torch.sin(x + x)

    monkeypatch.setattr(checking, "_others", lambda recipe: {"the moon": [XnnpackPartitioner()]})
    partitioners = [XnnpackPartitioner(configs=[AddConfig]), XnnpackPartitioner(configs=[ReLUConfig])]
    recipe = etgraph.Recipe("two", {"to_backend": {"partitioners": partitioners}})
    found = etgraph.check(Sines(), (torch.ones(2),), recipe)
    assert groups(found, backend=0)["aten.sin.default"].helps == ()
    assert groups(found, backend=1)["aten.sin.default"].helps == ("another target: the moon",)


def test_another_target_is_named_only_where_its_partitioner_takes_the_operator():
    found = etgraph.check(Middle(), (torch.randn(2, 4),), "xnnpack_fp32")
    (help_,) = groups(found)["aten.cumsum.default"].helps
    assert "ios-arm64-coreml-fp32 (CoreMLBackend)" in help_
    assert "Vulkan" not in help_


@pytest.mark.slow
def test_asking_other_backends_leaves_the_root_logger_as_it_is():
    """Importing Vulkan's sets its level to INFO."""
    import subprocess
    import sys

    program = (
        "import logging, torch, etgraph; logging.basicConfig(level=logging.ERROR); before = logging.root.handlers[:];"
        "found = etgraph.check(torch.nn.Hardshrink(), (torch.ones(2),), 'xnnpack_fp32', cache=False);"
        "import sys; assert 'executorch.backends.vulkan' in sys.modules;"
        "assert (logging.root.level, logging.root.handlers) == (logging.ERROR, before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lines_of_models_that_come_from_a_library_are_shown_and_those_of_the_toolchain_not():
    import sysconfig

    from stages.support.source_lines import line_of

    installed, standard = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")
    frame = '  File "{}", line 7, in forward\n    y = f(x)\n'
    library = frame.format(f"{installed}/transformers/models/vit.py")
    assert line_of(library).endswith("transformers/models/vit.py:7 in forward: y = f(x)")
    assert line_of(frame.format("/home/me/net.py") + library) == "/home/me/net.py:7 in forward: y = f(x)"
    for path in (f"{installed}/torch/nn/modules/linear.py", f"{standard}/functools.py", "torch/fx/passes/a.py", "<x>"):
        assert line_of(frame.format(path)) == ""


def test_an_operator_without_a_kernel_is_named():
    class Inverse(nn.Module):
        def forward(self, x):
            return torch.erfinv(x + 1)

    forward = check(Inverse(), (torch.rand(2, 3),)).methods["forward"]
    assert [one.operator for one in forward.without_kernel] == ["aten.erfinv.default"]
    assert "torch.erfinv(x + 1)" in forward.without_kernel[0].source_line


@pytest.fixture
def no_compiler(monkeypatch):
    """Forbid the backends' compilers."""
    from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend
    from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend

    def forbidden(*args, **kwargs):
        raise AssertionError("a backend was asked to compile")

    for backend in (XnnpackBackend, VulkanBackend):
        for name in ("preprocess", "preprocess_multimethod"):
            monkeypatch.setattr(backend, name, forbidden)


def test_no_backend_compiles_anything(no_compiler):
    model, inputs, _ = made("conv")
    with pytest.raises(etgraph.StageError, match="asked to compile"):
        etgraph.run(model, inputs, "xnnpack_fp32", to="lowered", cache=False)
    assert check(model, inputs, cache=False).share > 0.5
    found = etgraph.check(model, inputs, target="android-arm64-vulkan-fp32", elsewhere=False, cache=False)
    assert len(found.methods["forward"].backends) == 2


def test_the_edge_program_comes_from_the_cache():
    model, inputs = nn.Sequential(nn.Linear(4, 3), nn.Softplus()), (torch.randn(2, 4),)
    first, again = check(model, inputs), check(model, inputs)
    assert [step.outcome for step in first.steps] == ["ran", "ran"]
    assert [step.outcome for step in again.steps] == ["reused", "reused"], again.steps
    assert first.methods == again.methods


def test_logging_is_left_as_it_is(caplog):
    """What a user's own handler gets of a partitioner it gets during a check too, and nothing is left behind."""

    def state():
        loggers = [logging.root, *(logging.getLogger(name) for name in sorted(logging.root.manager.loggerDict))]
        return {one.name: (one.level, one.handlers[:], one.propagate, one.disabled) for one in loggers}

    model, inputs, _ = made("conv")
    check(model, inputs)
    logging.disable(logging.NOTSET)
    name = "executorch.backends.xnnpack.partition.config.generic_node_configs"
    with caplog.at_level(logging.DEBUG, logger=name):
        before = state()
        check(model, inputs)
        assert state() == before
    assert any("keepdim" in record.getMessage() for record in caplog.records)


def test_a_lowered_program_shows_what_was_taken_and_reasons_for_the_rest():
    lowered = etgraph.run(Middle(), (torch.randn(2, 4),), "xnnpack_fp32", to="lowered").artifact
    found = check(lowered, None)
    forward = found.methods["forward"]
    assert forward.taken_before == {"XnnpackBackend": 3}
    assert forward.backends[0].taken == ()
    assert groups(found)["aten.cumsum.default"].code == "unknown_operator"
    assert any("lowered already" in note for note in found.notes)
    assert found.share == 3 / 4


def test_an_edge_program_is_checked_as_it_is_and_not_quantized():
    model, inputs = Middle(), (torch.randn(2, 4),)
    edge = etgraph.run(model, inputs, "xnnpack_fp32", to="edge").artifact
    assert check(edge, None).methods == check(model, inputs).methods
    with pytest.raises(etgraph.PlanError, match="quantizes"):
        check(edge, None, "xnnpack_int8", calibration_inputs=[(torch.randn(2, 4),)])


def test_what_cannot_be_checked_is_refused_with_what_to_do():
    inputs = (torch.randn(2, 4),)
    pte = etgraph.run(Middle(), inputs, "portable").artifact
    with pytest.raises(etgraph.UsageError, match=r"inspect"):
        check(pte, None)
    with pytest.raises(etgraph.UsageError, match="delegates nothing"):
        check(Middle(), inputs, "portable")
    with pytest.raises(etgraph.UsageError, match="one target"):
        etgraph.check(Middle(), inputs, target=["linux-x86_64-xnnpack-fp32"])
    with pytest.raises(etgraph.UsageError, match="both given"):
        etgraph.check(Middle(), inputs, "portable", target="linux-x86_64-xnnpack-fp32")


def test_a_partitioner_that_fails_is_named_and_the_rest_is_shown():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir.backend.partitioner import Partitioner

    class Failing(Partitioner):
        def partition(self, exported_program):
            raise RuntimeError("the moon is not in reach")

        def ops_to_not_decompose(self, ep):
            return ([], None)

    recipe = etgraph.Recipe("failing", {"to_backend": {"partitioners": [XnnpackPartitioner(), Failing()]}})
    found = check(Middle(), (torch.randn(2, 4),), recipe, cache=False)
    assert [one.backend for one in found.methods["forward"].backends] == ["XnnpackBackend"]
    assert any("Failing failed while it partitioned" in note and "moon" in note for note in found.notes)


@cortex_m
def test_an_operator_library_shows_what_is_rewritten():
    model, inputs, _ = made("conv")
    samples = [(torch.randn(1, 3, 10, 10),) for _ in range(2)]
    found = etgraph.check(model, inputs, target=_CORTEX_M.name, calibration_inputs=samples)
    (library,) = found.methods["forward"].backends
    assert library.backend == "cortex_m"
    assert library.rewritten
    assert all(name.startswith("cortex_m.") for name in library.rewritten)
    assert any(one.operator.startswith("aten.convolution") for one in library.taken)
    assert "into: cortex_m." in str(found)
