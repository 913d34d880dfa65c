"""Eager modules: every edit that could change what is exported changes the digest, and no other does."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from etgraph.identity import Undescribable, describe, describe_module, differences

WORKER = pathlib.Path(__file__).with_name("identity_worker.py")
ROOT = pathlib.Path(__file__).parents[2]

MODEL = """
import logging
import torch
from torch import nn
import torch.nn.functional as F
import helpers
from parts import layers

log = logging.getLogger(__name__)
GAIN = 1.5

def scaled(k):
    def by(x):
        return x * k
    return by

class Net(helpers.Base):
    def __init__(self, width=4):
        super().__init__()
        import random
        self.linear = nn.Linear(width, width)
        self.block = layers.Block(width)
        self.scale = scaled(3.0)
        self.depth = 2
        self.width = random.Random(0).random() * 0 + width

    @classmethod
    def from_file(cls, path):
        with open(path) as file:
            return cls(int(file.read()))

    @property
    def slope(self):
        return 0.1

    def forward(self, x, by=0.5):
        log.debug("forward")
        for _ in range(self.depth):
            x = helpers.shift(self.linear(x)) * GAIN + by
        return self.scale(F.leaky_relu(self.block(self.common(x)), self.slope))

def make():
    net = Net().eval()
    return net
"""
HELPERS = """
import torch
OFFSET = 1.0
def shift(x, by=2.0):
    return x + by * OFFSET
class Base(torch.nn.Module):
    def common(self, x):
        return x + 1
"""
LAYERS = """
import torch
class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.act = torch.nn.ReLU()
        self.register_buffer("table", torch.ones(n))
    def forward(self, x):
        return self.act(x + self.table)
"""
FILES = {"model.py": MODEL, "helpers.py": HELPERS, "parts/__init__.py": "", "parts/layers.py": LAYERS}

DIFFERENT = {
    "a line of forward": ("model.py", "* GAIN + by", "* GAIN - by"),
    "a helper in another file": ("helpers.py", "return x + by", "return x - by"),
    "a default of a helper": ("helpers.py", "by=2.0", "by=3.0"),
    "a constant of another file": ("helpers.py", "OFFSET = 1.0", "OFFSET = 2.0"),
    "a method of a base class": ("helpers.py", "return x + 1", "return x + 2"),
    "a submodule in a package": ("parts/layers.py", "self.act(x + self.table)", "self.act(x * self.table)"),
    "a buffer": ("parts/layers.py", "torch.ones(n)", "torch.zeros(n)"),
    "persistence of a buffer": ("parts/layers.py", "torch.ones(n)", "torch.ones(n), persistent=False"),
    "a library submodule": ("parts/layers.py", "nn.ReLU()", "nn.ReLU6()"),
    "a hyper-parameter of one": ("parts/layers.py", "nn.ReLU()", "nn.ReLU(inplace=True)"),
    "a default argument": ("model.py", "by=0.5", "by=0.6"),
    "a global constant": ("model.py", "GAIN = 1.5", "GAIN = 1.25"),
    "a closure value": ("model.py", "scaled(3.0)", "scaled(4.0)"),
    "code behind a closure": ("model.py", "return x * k", "return x / k"),
    "a property": ("model.py", "return 0.1", "return 0.2"),
    "an attribute": ("model.py", "self.depth = 2", "self.depth = 3"),
    "eval to train": ("model.py", "Net().eval()", "Net().train()"),
    "one submodule in training": ("model.py", "return net", "net.block.act.train(); return net"),
    "one bit of a weight": (
        "model.py", "return net", "net.linear.weight.data.view(torch.int32)[2, 3] ^= 1; return net",
    ),
    "requires_grad": ("model.py", "return net", "net.linear.bias.requires_grad_(False); return net"),
    "a tie": ("model.py", "return net", "net.block.table = net.linear.bias.data; return net"),
    "weights in another dtype": ("model.py", "return net", "return net.half()"),
    "a hook": ("model.py", "return net", "net.linear.register_forward_hook(lambda *a: 1); return net"),
    "a pre-hook": ("model.py", "return net", "net.register_forward_pre_hook(lambda m, i: i); return net"),
    "an instance's own forward": ("model.py", "return net", "net.block.forward = lambda x: x; return net"),
    "a patched library class": ("model.py", "return net", "nn.ReLU.extra_repr = lambda s: 'x'; return net"),
    "a default dtype": ("model.py", "return net", "torch.set_default_dtype(torch.float64); return net"),
    "the order of submodules": (
        "model.py", "return net", "net._modules['linear'] = net._modules.pop('linear'); return net",
    ),
}  # fmt: skip

SAME = {
    "untouched": ("model.py", "", ""),
    "renamed": ("model.py", "", ""),
    "a comment": ("model.py", "* GAIN + by", "* GAIN + by  # shifted"),
    "a docstring": (
        "model.py",
        "    def forward(self, x, by=0.5):",
        '    def forward(self, x, by=0.5):\n        "Go."',
    ),
    "blank lines": ("helpers.py", "def shift", "\n\n\n# moved down\ndef shift"),
    "layout": ("helpers.py", "x + by * OFFSET", "(\n        x\n        + by * OFFSET\n    )"),
    "another function in the file": ("helpers.py", "OFFSET = 1.0", "OFFSET = 1.0\ndef unused(): return 1"),
    "a call under no_grad before": ("model.py", "return net", "net(torch.ones(1, 4)); return net"),
    "an export before": (
        "model.py",
        "return net",
        "torch.export.export(net, (torch.ones(1, 4),)); return net",
    ),
    "a copy": ("model.py", "return net", "import copy; return copy.deepcopy(net)"),
}

REFUSED = {
    "the environment in forward": ("model.py", "log.debug", "import os; os.getenv"),
    "a file in a helper": ("helpers.py", "return x + by", "open('offset.txt'); return x + by"),
    "a dynamic name in a helper": ("helpers.py", "return x + by", "return getattr(torch, by)(x)"),
    "a method left out is named after all": ("model.py", "log.debug(", "self.from_file("),
    "a class whose __init__ was left out is made": ("model.py", "log.debug(", "Net("),
}


def write(directory: pathlib.Path, edit: tuple[str, str, str]) -> str:
    """Write the model's files with one edit; return the directory."""
    file, old, new = edit
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == file and old:
            assert old in text
            text = text.replace(old, new)
        if directory.name == "renamed" and name == "model.py":
            path = directory / "renamed.py"
        path.write_text(text)
    return str(directory)


def run_worker(*args: str, seed: str = "0") -> dict[str, Any]:
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(WORKER), *args],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every edited model, described in a process of its own; those that change torch itself come last."""
    root = tmp_path_factory.mktemp("models")
    edits = {**SAME, **REFUSED, **DIFFERENT}
    last = ("a patched library class", "a default dtype")
    names = [*(n for n in edits if n not in last), *last]
    places = {write(root / name.replace(" ", "_"), edits[name]): name for name in names}
    return {places[place]: said for place, said in run_worker("models", *places).items()}


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_edit_that_matters_changes_the_digest(name: str, described: dict[str, dict[str, Any]]) -> None:
    base, other = described["untouched"], described[name]
    assert other["digest"] is not None, other
    assert other["digest"] != base["digest"]
    assert differences(base["parts"], other["parts"])


@pytest.mark.parametrize("name", SAME)
def test_an_edit_that_does_not_matter_keeps_the_digest(name: str, described: dict[str, dict[str, Any]]) -> None:
    base, other = described["untouched"], described[name]
    assert base["digest"] is not None, base
    assert [str(c) for c in differences(base["parts"], other["parts"])] == []
    assert other["digest"] == base["digest"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_followed_is_refused(name: str, described: dict[str, dict[str, Any]]) -> None:
    assert described[name]["digest"] is None
    assert "cannot be described" in described[name]["why"]


def test_a_model_is_the_same_in_another_process_folder_and_hash_seed(
    tmp_path: pathlib.Path, described: dict[str, dict[str, Any]]
) -> None:
    place = write(tmp_path / "moved" / "deep", SAME["untouched"])
    assert run_worker("models", place, seed="3")[place]["digest"] == described["untouched"]["digest"]


def test_the_reason_names_the_line_that_was_edited(described: dict[str, dict[str, Any]]) -> None:
    changes = differences(described["untouched"]["parts"], described["a helper in another file"]["parts"])
    assert [str(c) for c in changes] == ["(class).forward(global helpers.shift) has other code"]


MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(3, 4),
    "transformer": lambda: nn.TransformerEncoderLayer(8, 2),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    "orthogonal": lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)),
    "batch norm": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.1)),
    "lists": lambda: nn.ModuleDict({"a": nn.ModuleList([nn.Linear(2, 2)]), "b": nn.Identity()}),
    "embedding": lambda: nn.EmbeddingBag(5, 3),
    "traced": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU())),
    "exported": lambda: torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),)).module(),
}


@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES.keys())
def test_library_modules_are_described_with_every_weight(make: Callable[[], nn.Module]) -> None:
    """Made twice from one seed they are equal; one element of any tensor makes them differ."""
    torch.manual_seed(0)
    module = make()
    torch.manual_seed(0)
    before = describe_module(module).digest
    assert describe_module(make()).digest == before
    for name, tensor in module.state_dict().items():
        old = tensor.clone()
        tensor[(-1,) * tensor.dim()] += 1
        assert describe_module(module).digest != before, name
        tensor.copy_(old)
    assert describe_module(module).digest == before


def test_the_graph_of_a_graph_module_counts() -> None:
    """Operators, arguments and their order, whatever the weights."""

    def traced(function: Callable[..., Any]) -> Any:
        return torch.fx.symbolic_trace(function)

    digests = {
        describe(traced(f)).digest
        for f in (
            lambda x, y: torch.add(x, y),
            lambda x, y: torch.add(y, x),
            lambda x, y: torch.sub(x, y),
            lambda x, y: torch.add(x, y, alpha=2),
            lambda x, y: torch.add(x, 1),
        )
    }
    assert len(digests) == 5


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_a_captured_module_takes_counts_though_its_operators_are_the_same() -> None:
    """How its inputs are nested, and the dtypes and shapes that it was captured for."""

    class First(nn.Module):
        def forward(self, given: Any) -> Any:
            return given[0].relu()

    def captured(given: Any) -> Any:
        module: Any = torch.export.export(First(), (given,)).module()
        return describe([[(n.op, n.name) for n in module.graph.nodes], module])

    two, three = torch.zeros(2), torch.zeros(3)
    found = [captured(given).digest for given in ((two,), [two], (three,), (two.double(),))]
    assert len(set(found)) == 4
    assert captured((two,)).digest == found[0]


def test_modules_that_hold_compiled_code_are_refused() -> None:
    with pytest.raises(Undescribable, match="TorchScript"):
        describe_module(torch.jit.script(nn.Linear(2, 2)))
    with pytest.raises(Undescribable, match=r"torch\.compile"):
        describe_module(torch.compile(nn.Linear(2, 2)))


def test_a_bound_method_stands_for_a_module_and_a_way_in() -> None:
    """A model of several methods is a mapping to bound methods."""

    class Two(nn.Module):
        def encode(self, x: Any) -> Any:
            return x + 1

        def decode(self, x: Any) -> Any:
            return eval("x")

    two = Two()
    assert describe_module(two.encode).digest != describe_module(two).digest
    with pytest.raises(Undescribable, match="made at run time"):
        describe_module(two.decode)


def test_an_attribute_that_cannot_be_described_is_named() -> None:
    module = nn.Sequential(nn.Linear(2, 2))
    module[0].stream = iter([1])  # type: ignore[assignment]
    with pytest.raises(Undescribable) as caught:
        describe_module(module)
    assert caught.value.path == "model[0].stream"


def test_the_code_of_an_autograd_function_counts() -> None:
    def of(factor: int) -> str:
        class Fn(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * factor

        class Net(nn.Module):
            def forward(self, x: Any) -> Any:
                return Fn.apply(x)

        return describe_module(Net()).digest

    assert of(2) == of(2) != of(3)


def test_a_custom_operator_in_the_code_is_refused() -> None:
    """Its implementation may be taken apart by the export, and its name does not tell of it."""
    with torch.library._scoped_library("etgraph_test_ops", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")

        class Net(nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.ops.etgraph_test_ops.twice(x) + torch.ops.aten.sin.default(x)

        with pytest.raises(Undescribable, match=r"custom operator etgraph_test_ops\.twice"):
            describe_module(Net())
        assert describe(torch.ops.etgraph_test_ops.twice.default).text == "etgraph_test_ops.twice.default"
