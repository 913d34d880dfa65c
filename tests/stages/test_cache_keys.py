"""What enters the keys of the built-in stages: every option, every part of a program, and nothing else. No lowering."""

import copy
import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig
from executorch.exir.dynamic_shape import DynamicMemoryPlanningMode
from executorch.exir.memory_planning import naive
from executorch.exir.passes import MemoryPlanningPass, ToOutVarPass
from executorch.exir.passes.propagate_device_config import PropagateDeviceConfig
from keying import full_key, key
from torch import nn
from torch.export import Dim

import etgraph
from etgraph.artifact import Edge, EdgeConfig, Exported, Inputs, Lowered, Module, Prepared, Provenance
from etgraph.calibration import Calibration
from etgraph.errors import Undescribable
from etgraph.held import Held, identity_of
from etgraph.registry import registry

ATEN = torch.ops.aten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3)
        self.up = nn.Linear(4, 4, bias=False)
        self.down = nn.Linear(4, 4, bias=False)
        self.down.weight = self.up.weight
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.register_buffer("hidden", torch.full((4,), 3.0), persistent=False)

    def forward(self, x, image):
        y = self.down(self.up(x).mul(2)) * self.scale + self.hidden
        return nn.functional.hardswish(y), self.conv(image), torch.tensor([1.0, 2.0, 3.0, 4.0]) + y


def net():
    torch.manual_seed(0)
    return Net().eval()


def inputs():
    torch.manual_seed(1)
    return torch.randn(2, 4), torch.randn(1, 2, 4, 4)


@pytest.fixture(scope="module")
def traced():
    return torch.export.export(net(), inputs())


@pytest.fixture
def program():
    """An exported program of which every part may be written to."""
    return torch.export.export(net(), inputs())


def module(model=None, given=None, **more):
    samples = (Inputs(*(inputs() if given is None else given)),)
    return Module(methods={"forward": model or net()}, example_inputs={"forward": samples}, **more)


def exported(program, **more):
    return Exported(methods={"forward": program}, **more)


def at(kind, program):
    """Any program will do where only options are looked at."""
    return {
        "module": lambda: module(),
        "exported": lambda: exported(program),
        "edge": lambda: Edge(methods={"forward": program}),
        "lowered": lambda: Lowered(methods={"forward": program}),
        "prepared": lambda: Prepared(methods={"forward": program.module(check_guards=False)}),
    }[kind]()


# -- options -------------------------------------------------------------------------------------------------


def change(module):
    return module


def change_more(module):
    return nn.Sequential(module)


class Pass:
    """A pass with a setting."""

    def __init__(self, level):
        self.level = level

    def __call__(self, *arguments):
        return arguments[-1]


class OtherPass(Pass):
    """The same setting, other code."""

    def __call__(self, *arguments):
        return None


PASSES = [[], [Pass(1)], [Pass(2)], [OtherPass(1)], [Pass(1), Pass(2)], [Pass(2), Pass(1)], [change], [change_more]]


def compile_configs():
    return [
        None,
        EdgeCompileConfig(_check_ir_validity=False),
        EdgeCompileConfig(_skip_dim_order=True),
        EdgeCompileConfig(preserve_ops=[ATEN.hardswish.default]),
        EdgeCompileConfig(_core_aten_ops_exception_list=[ATEN.hardswish.default]),
    ]


def partitioners():
    fp32, static = ConfigPrecisionType.FP32, ConfigPrecisionType.STATIC_QUANT
    return [
        [XnnpackPartitioner()],
        [XnnpackPartitioner(configs=ALL_PARTITIONER_CONFIGS[:-1])],
        [XnnpackPartitioner(config_precisions=fp32)],
        [XnnpackPartitioner(config_precisions=static)],
        [XnnpackPartitioner(config_precisions=[static, fp32])],
        [XnnpackPartitioner(), XnnpackPartitioner()],
        {"forward": [XnnpackPartitioner()]},
        [],
    ]


def backend_configs():
    """A config that differs in one field, for each field that there is."""
    others = {
        "passes": [Pass(1)],
        "memory_planning_pass": MemoryPlanningPass(alignment=64),
        "to_out_var_pass": ToOutVarPass(True),
        "sym_shape_eval_pass": Pass(1),
        "external_constants": True,
        "dynamic_memory_planning_mode": DynamicMemoryPlanningMode.SYMBOLIC,
        "reinplace_extra_ops": [ATEN.hardswish.default],
        "propagate_device_config": PropagateDeviceConfig(skip_h2d_for_method_inputs=True),
    }
    found = [None]
    for field in dataclasses.fields(ExecutorchBackendConfig):
        default = getattr(ExecutorchBackendConfig(), field.name)
        other = others[field.name] if field.name in others else _other(field.name, default)
        found.append(ExecutorchBackendConfig(**{field.name: other}))
    planners = [{"alloc_graph_input": False}, {"alloc_graph_output": False}, {"memory_planning_algo": naive}]
    found += [ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**one)) for one in planners]
    return found


def _other(name, default):
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default * 2 or 16
    assert default is None, f"a value for the new field {name} is wanted here"
    return 4096


def quantizers():
    settings = [{}, {"is_per_channel": True}, {"is_dynamic": True}, {"act_qmin": -127}, {"weight_qmax": 7}]
    made = [XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**one)) for one in settings]
    some = XNNPACKQuantizer().set_module_name("up", get_symmetric_quantization_config())
    return [[one] for one in (*made, some)] + [made[:2], made[1::-1]]


def calibrations():
    x, image = inputs()
    given = [
        [(x, image)],
        [(x + 1, image)],
        [(x, image)] * 2,
        [(x, image), (x + 1, image)],
        [(x + 1, image), (x, image)],
    ]
    return [Calibration(one, ["forward"]) for one in given] + [
        Calibration(None, ["forward"], lambda: {"forward": (Inputs(x - 1, image),)})
    ]


def weights(bits, group):
    return {"weight_bits": bits, "group_size": group, "activations": "int8_dynamic"}


BOOL = lambda: [False, True]  # noqa: E731
LISTS = lambda: copy.deepcopy(PASSES)  # noqa: E731

#: For each option of each stage of ExecuTorch's, values that each stand for something else.
OPTIONS = {
    ("source_transform", "module"): {
        "transforms": lambda: [[], [change], [change_more], [change, change_more], [Pass(1)], [Pass(2)]],
        "in_place": BOOL,
    },
    ("quantize_weights", "module"): {
        "config": lambda: [weights(4, 32), weights(4, 64), weights(8, None)],
        "filter_fn": lambda: [None, change, change_more],
        "in_place": BOOL,
        "strict": BOOL,
        "eval_mode": BOOL,
    },
    ("torch_export", "module"): {"strict": BOOL, "eval_mode": BOOL, "dynamic_batch_size": BOOL},
    ("aten_passes", "exported"): {"passes": LISTS},
    ("prepare", "exported"): {
        "quantizers": quantizers,
        "qat": BOOL,
        "dynamic_batch_size": BOOL,
        "pre_prepare_passes": LISTS,
        "post_prepare_passes": LISTS,
    },
    ("calibrate", "prepared"): {"calibration_inputs": calibrations, "static": lambda: [(), ("XNNPACKQuantizer",)]},
    ("convert", "prepared"): {"pre_convert_passes": LISTS, "post_convert_passes": LISTS, "fold_quantize": BOOL},
    ("to_operator_library", "edge"): {
        "rewrite": lambda: [change, change_more, Pass(1), Pass(2)],
        "library": lambda: ["cortex_m", "cadence"],
    },
    ("to_edge", "exported"): {
        "compile_config": compile_configs,
        "preserve_ops": lambda: [(), ("aten.hardswish.default",), (ATEN.hardswish.default,), ("aten.silu.default",)],
        "partitioners": partitioners,
    },
    ("to_edge_transform_and_lower", "exported"): {
        "compile_config": compile_configs,
        "preserve_ops": lambda: [(), ("aten.hardswish.default",), ("aten.silu.default",)],
        "partitioners": lambda: [*partitioners(), [XnnpackPartitioner(per_op_mode=True)]],
        "edge_passes": lambda: [None, *({"passes": one} for one in LISTS())],
    },
    ("edge_passes", "edge"): {"passes": LISTS},
    ("edge_manager_passes", "edge"): {"passes": LISTS},
    ("lowered_manager_passes", "lowered"): {"passes": LISTS},
    ("to_backend", "edge"): {"partitioners": lambda: [*partitioners(), [XnnpackPartitioner(per_op_mode=True)]]},
    ("to_executorch", "edge"): {"backend_config": backend_configs, "initialize_buffers": BOOL},
    ("to_executorch", "lowered"): {"backend_config": backend_configs, "initialize_buffers": BOOL},
}
#: Options that no value can be given to in a key: see `test_a_training_function_says_what_it_depends_on`.
ELSEWHERE = {("train", "train_fn")}


def test_every_option_of_every_stage_is_in_this_list():
    registry.load_plugins()
    ours = {stage for stage in registry.stages.values() if stage.function.__module__.startswith("stages.")}
    known = {(name, option) for (name, _), options in OPTIONS.items() for option in options} | ELSEWHERE
    assert {(stage.name, option) for stage in ours for option in stage.options} == known


@pytest.mark.parametrize(
    ("stage", "kind", "option"), [(*where, one) for where, all_ in OPTIONS.items() for one in all_]
)
def test_each_value_of_an_option_has_a_key_of_its_own(traced, stage, kind, option):
    given = Held.of(at(kind, traced))
    values = OPTIONS[stage, kind][option]
    keys = [key(stage, given, **{option: value}) for value in values()]
    assert len(set(keys)) == len(keys)
    assert [key(stage, given, **{option: value}) for value in values()] == keys


def test_what_partitioners_do_later_does_not_enter_the_edge_program(traced):
    """Measured: `per_op_mode` and the order of taking come in when the edge program is partitioned."""
    given = Held.of(at("exported", traced))
    alone, per_op = [XnnpackPartitioner()], [XnnpackPartitioner(per_op_mode=True)]
    assert key("to_edge", given, partitioners=alone) == key("to_edge", given, partitioners=per_op)


def test_a_partitioner_with_a_mind_of_its_own_enters_whole(traced):
    given = Held.of(at("exported", traced))

    class Choosy(XnnpackPartitioner):
        def ops_to_not_decompose(self, ep):
            return [], None

    patched = XnnpackPartitioner()
    patched.ops_to_not_decompose = Pass(1)
    choices = [[XnnpackPartitioner()], [Choosy()], [Choosy(per_op_mode=True)], [patched]]
    keys = [key("to_edge", given, partitioners=one) for one in choices]
    assert len(set(keys)) == len(keys)


def test_a_training_function_says_what_it_depends_on(traced):
    given = Held.of(at("prepared", traced))

    def train(model):
        return model

    with pytest.raises(Undescribable, match="which data it reads"):
        key("train", given, train_fn=train)
    train.__etgraph_fingerprint__ = "images, version 1"
    first = key("train", given, train_fn=train)
    train.__etgraph_fingerprint__ = "images, version 2"
    assert key("train", given, train_fn=train) != first


# -- programs ------------------------------------------------------------------------------------------------


def call(program, name):
    return next(n for n in program.graph.nodes if n.op == "call_function" and name in str(n.target))


def flip(tensor):
    """Change the last bit of the first element."""
    tensor.data.view(torch.int32).view(-1)[0] ^= 1


def requires_grad(program):
    program.state_dict["conv.weight"].requires_grad_(False)


def untie(program):
    program.state_dict["down.weight"] = nn.Parameter(program.state_dict["up.weight"].detach().clone())


def other_value_spec(program):
    node = call(program, "hardswish")
    node.meta["val"] = node.meta["val"].new_empty((3, 4))


CHANGES = {
    "an operator": lambda p: setattr(call(p, "hardswish"), "target", ATEN.hardsigmoid.default),
    "an argument": lambda p: setattr(call(p, "mul"), "args", (call(p, "mul").args[0], 3)),
    "a keyword": lambda p: setattr(call(p, "hardswish"), "kwargs", {"x": 1}),
    "a value's shape": other_value_spec,
    "a value's dtype": lambda p: call(p, "hardswish").meta.update(val=call(p, "hardswish").meta["val"].double()),
    "one bit of a weight": lambda p: flip(p.state_dict["conv.weight"]),
    "one bit of a buffer": lambda p: flip(p.state_dict["scale"]),
    "one bit of a buffer that is not saved": lambda p: flip(p.constants["hidden"]),
    "one bit of a constant": lambda p: flip(p.constants[next(n for n in p.constants if "lifted" in n)]),
    "the dtype of a weight": lambda p: p.state_dict.update(scale=p.state_dict["scale"].double()),
    "the strides of a weight": lambda p: p.state_dict.update(
        {"conv.weight": nn.Parameter(p.state_dict["conv.weight"].detach().to(memory_format=torch.channels_last))}
    ),
    "a tie": untie,
    "requires_grad": requires_grad,
    "the signature": lambda p: setattr(p.graph_signature.input_specs[0], "persistent", False),
    "the role of an output": lambda p: p.graph_signature.output_specs.reverse(),
    "the structure of the call": lambda p: setattr(
        p.module_call_graph[0].signature, "in_spec", p.module_call_graph[0].signature.out_spec
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("stage", "kind"), [("to_edge", Exported), ("to_backend", Edge), ("to_executorch", Lowered)])
def test_any_change_of_a_program_changes_the_keys_of_what_is_made_of_it(traced, program, stage, kind, change):
    before = key(stage, kind(methods={"forward": traced}))
    assert key(stage, kind(methods={"forward": program})) == before
    CHANGES[change](program)
    assert key(stage, kind(methods={"forward": program})) != before


def test_what_belongs_to_a_program_enters(traced):
    plain = exported(traced)
    shapes = {"forward": {"x": {0: Dim("n", max=4)}}}
    edge = [
        Edge(methods={"forward": traced}, compile_config=config)
        for config in (
            EdgeConfig(),
            EdgeConfig(check_ir_validity=False),
            EdgeConfig(skip_dim_order=True),
            EdgeConfig(core_aten_ops_exception_list=("aten.hardswish.default",)),
            EdgeConfig(preserve_ops=("aten.hardswish.default",)),
        )
    ]
    programs = [
        plain,
        exported(traced, constant_methods={"size": 3}),
        exported(traced, constant_methods={"size": 4}),
        exported(traced, constant_methods={"size": torch.tensor([3])}),
        exported(traced, constant_methods={"width": 3}),
        exported(traced, dynamic_shapes=shapes),
        Exported(methods={"main": traced}),
        Exported(methods={"forward": traced, "main": traced}),
    ]
    for stage, given in (("to_edge", programs), ("to_executorch", edge)):
        keys = [key(stage, one) for one in given]
        assert len(set(keys)) == len(keys)


def test_symbolic_sizes_and_their_ranges_enter():
    def of(**bounds):
        shapes = {"x": {0: Dim("n", **bounds)}, "image": None}
        return key("to_edge", exported(torch.export.export(net(), inputs(), dynamic_shapes=shapes)))

    keys = [
        of(min=1, max=8),
        of(min=1, max=9),
        of(min=2, max=8),
        key("to_edge", exported(torch.export.export(net(), inputs()))),
    ]
    assert len(set(keys)) == len(keys)
    assert of(min=1, max=8) == keys[0]


UNCHANGED = {
    "the numbers in example inputs": lambda p: setattr(p, "_example_inputs", ((torch.ones(2, 4), inputs()[1]), {})),
    "no example inputs": lambda p: setattr(p, "_example_inputs", None),
    "a stack trace": lambda p: call(p, "mul").meta.update(stack_trace="elsewhere.py, line 7"),
    "a sequence number": lambda p: call(p, "mul").meta.update(seq_nr=12345),
    "ids of graphs": lambda p: [
        setattr(source.node_info, "graph_id", 7)
        for node in p.graph.nodes
        for source in node.meta.get("from_node", ())
        if source.node_info is not None
    ],
}


@pytest.mark.parametrize("change", UNCHANGED)
def test_what_changes_no_later_program_changes_no_key(traced, program, change):
    UNCHANGED[change](program)
    for stage, kind in (("to_edge", Exported), ("to_backend", Edge), ("to_executorch", Lowered)):
        assert key(stage, kind(methods={"forward": program})) == key(stage, kind(methods={"forward": traced}))


def test_inputs_label_and_history_of_an_artifact_change_no_key(traced):
    plain = key("to_edge", exported(traced))
    assert key("to_edge", exported(traced, example_inputs={"forward": (Inputs(*inputs()),)})) == plain
    assert key("to_edge", exported(traced, provenance=(Provenance("torch_export", "exported"),))) == plain
    assert key("to_edge", Held.of(exported(traced), "another name")) == plain


def test_what_a_pass_may_look_at_in_a_program_enters_the_key_of_the_pass(traced, program):
    """It is handed the ExportedProgram, example inputs and all."""
    program._example_inputs = ((torch.ones(2, 4), inputs()[1]), {})
    for stage, kind in (("aten_passes", Exported), ("edge_passes", Edge), ("lowered_manager_passes", Lowered)):
        assert key(stage, kind(methods={"forward": program})) != key(stage, kind(methods={"forward": traced}))


def test_how_a_program_came_about_enters_where_it_decides(traced):
    """`convert` finds the dynamic shapes of a module that was prepared elsewhere, and not of one prepared here."""
    here = replace_history(at("prepared", traced), Provenance("prepare", "prepared"))
    assert key("convert", here) != key("convert", at("prepared", traced))


def replace_history(artifact, *steps):
    return dataclasses.replace(artifact, provenance=steps)


def test_stack_traces_enter_only_where_they_are_written_into_the_pte(traced, program):
    CONFIG = ExecutorchBackendConfig(emit_stacktrace=True)
    call(program, "mul").meta["stack_trace"] = "elsewhere.py, line 7"
    one, other = Lowered(methods={"forward": traced}), Lowered(methods={"forward": program})
    assert key("to_executorch", one) == key("to_executorch", other)
    assert key("to_executorch", one, backend_config=CONFIG) != key("to_executorch", other, backend_config=CONFIG)


# -- eager models --------------------------------------------------------------------------------------------


def variants():
    """Modules with inputs, each of which exports to another program than the others."""
    x, image = inputs()
    wide = x.to(torch.float64)
    last = image.to(memory_format=torch.channels_last)
    shared = torch.randn(2, 4)
    trained, flipped, untied = net(), net(), net()
    trained.train()
    flip(flipped.conv.weight)
    untied.down.weight = nn.Parameter(untied.up.weight.detach().clone())
    frozen = net()
    frozen.conv.weight.requires_grad_(False)
    model = net()
    return {
        "plain": module(),
        "training": module(trained),
        "one bit": module(flipped),
        "untied": module(untied),
        "frozen": module(frozen),
        "a longer batch": module(given=(torch.randn(3, 4), image)),
        "another dtype": module(given=(wide, image)),
        "channels last": module(given=(x, last)),
        "an input with grad": module(given=(x.clone().requires_grad_(), image)),
        "constants": module(constant_methods={"size": 3}),
        "dynamic": module(dynamic_shapes={"forward": {"x": {0: Dim("n", max=8)}, "image": None}}),
        "dynamic, further": module(dynamic_shapes={"forward": {"x": {0: Dim("n", max=9)}, "image": None}}),
        "one tensor twice": module(given=(shared, shared)),
        "two tensors": module(given=(shared, shared.clone())),
        "two views": module(given=(shared, shared.view(2, 4))),
        "a weight as input": module(model, given=(model.up.weight, image)),
        "a view of a weight": module(model, given=(model.up.weight.detach(), image)),
        "a method": Module(methods={"main": net()}, example_inputs={"main": (Inputs(*inputs()),)}),
    }


def test_each_variant_of_a_model_and_its_inputs_has_a_key_of_its_own():
    keys = {name: key("torch_export", one) for name, one in variants().items()}
    assert len(set(keys.values())) == len(keys), keys
    assert {name: key("torch_export", one) for name, one in variants().items()} == keys


def test_numbers_in_the_example_inputs_of_a_model_enter_no_key():
    x, image = inputs()
    assert key("torch_export", module(given=(x + 1, image * 2))) == key("torch_export", module())
    two = Module(methods={"forward": net()}, example_inputs={"forward": (Inputs(x, image), Inputs(x[:1], image))})
    assert key("torch_export", two) == key("torch_export", module())


def test_which_of_two_inputs_are_one_tensor_decides_what_is_traced():
    """The fact behind it: of an input that is given twice, a trace uses only the last."""

    class Sum(nn.Module):
        def forward(self, a, b):
            return a * 2 + b

    x = torch.ones(2)
    cache = etgraph.Cache()
    model = Sum()
    outputs = []
    for given in ((x, x), (x, x.clone())):
        result = etgraph.run(model, given, "portable", to="exported", cache=cache)
        outputs.append(result.artifact.methods["forward"].module()(x, 5 * x).tolist())
    assert outputs == [[15.0, 15.0], [7.0, 7.0]]


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def encode(self, x):
        return self.linear(x)

    def decode(self, x):
        return self.linear(x) - 1


def test_two_methods_of_one_module_are_not_two_methods_of_two_equal_ones():
    one = Pair()
    other = copy.deepcopy(one)
    samples = {"encode": (Inputs(torch.ones(1, 4)),), "decode": (Inputs(torch.ones(1, 4)),)}
    together = Module(methods={"encode": one.encode, "decode": one.decode}, example_inputs=samples)
    apart = Module(methods={"encode": one.encode, "decode": other.decode}, example_inputs=samples)
    assert key("torch_export", together) != key("torch_export", apart)


@pytest.mark.parametrize(
    ("get", "put", "value"),
    [
        (torch.get_default_dtype, torch.set_default_dtype, torch.float64),
        (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled, False),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True),
        (torch.is_grad_enabled, torch.set_grad_enabled, False),
    ],
)
def test_the_state_of_torch_that_a_trace_depends_on_enters(get, put, value):
    before, model = get(), module()
    plain = key("torch_export", model)
    try:
        put(value)
        assert key("torch_export", model) != plain
    finally:
        put(before)
    assert key("torch_export", model) == plain


def test_a_model_that_a_transform_made_is_described_itself(tmp_path):
    """What made it may have drawn random numbers."""

    def grow(model):
        return nn.Sequential(model, nn.Linear(4, 2))

    cache, seen = etgraph.Cache(tmp_path), []
    recipe = etgraph.get_recipe("portable").with_options("source_transform", transforms=[grow])
    model = nn.Linear(4, 4).eval()
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        result = etgraph.run(model, (torch.ones(1, 4),), recipe, "exported", cache=cache)
        seen.append(result.artifact.fingerprint)
    assert seen[0] == seen[2] != seen[1]


# -- everywhere the same -------------------------------------------------------------------------------------

GOLDEN = """
import json, sys
import torch
sys.path[:0] = {paths!r}
import test_cache_keys_models as models
from keying import key
found = {{name: key("torch_export", one) for name, one in models.variants().items()}}
traced = torch.export.export(models.net(), models.inputs())
for (stage, kind), options in models.OPTIONS.items():
    for option, values in options.items():
        for number, value in enumerate(values()):
            given = models.at(kind, traced)
            found[f"{{stage}} {{kind}} {{option}} {{number}}"] = key(stage, given, **{{option: value}})
print(json.dumps(found))
"""


def test_keys_are_the_same_in_three_processes_with_three_hash_seeds(tmp_path):
    """This file under another name, as a module like any other."""
    (tmp_path / "test_cache_keys_models.py").write_text(Path(__file__).read_text())
    paths = [str(tmp_path), str(Path(__file__).parents[1] / "support")]
    command = [sys.executable, "-W", "ignore", "-c", GOLDEN.format(paths=paths)]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "4321")
    ]
    printed = [process.communicate(timeout=600) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], printed[0][1]
    assert len({out for out, _ in printed}) == 1
    assert len(printed[0][0]) > 5000


def test_identity_of_a_model_has_named_parts():
    parts = identity_of(module())
    assert list(parts) == ["model[forward]", "torch state", "example inputs", "dynamic shapes", "constant methods"]
    assert full_key("torch_export", module()).parts["model[forward].training"] == "False"
