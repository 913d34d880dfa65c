"""Tensors and the small values of torch are described by what they hold."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from etgraph.identity import Undescribable, describe
from etgraph.identity.tensors import hash_tensor


def base() -> torch.Tensor:
    return torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)


def one_bit() -> torch.Tensor:
    t = base()
    t.view(torch.int32).view(-1)[17] ^= 1
    return t


def attributed() -> torch.Tensor:
    t = base()
    t.scale = 2  # type: ignore[attr-defined]
    return t


OTHERS = {
    "one bit of one element": one_bit(),
    "dtype": base().double(),
    "same bytes, other dtype": base().view(torch.int32),
    "shape": base().reshape(3, 2, 4),
    "strides": base().permute(2, 1, 0).contiguous().permute(2, 1, 0),
    "order of dimensions": base().permute(0, 2, 1),
    "requires grad": base().requires_grad_(),
    "parameter": torch.nn.Parameter(base(), requires_grad=False),
    "meta": base().to("meta"),
    "a list of numbers": base().tolist(),
    "an attribute": attributed(),
    "numpy": base().numpy(),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_every_trait_of_a_tensor_counts(other: Any) -> None:
    assert describe(other).digest != describe(base()).digest


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t,
    "permuted": lambda t: t.permute(2, 0, 1),
    "sliced": lambda t: t[:, 1:, ::2],
    "expanded": lambda t: t[:, :1, :].expand(2, 5, 4),
    "overlapping": lambda t: t.as_strided((3, 4), (2, 1)),
    "offset": lambda t: t[1],
    "scalar": lambda t: t[1, 2, 3],
    "bool": lambda t: t > 3,
    "int8": lambda t: t.to(torch.int8),
    "bfloat16": lambda t: t.bfloat16(),
    "float8": lambda t: t.to(torch.float8_e4m3fn),
    "complex": lambda t: torch.complex(t, t),
    "conjugated": lambda t: torch.complex(t, t).conj(),
    "negated": lambda t: torch.complex(t, t).conj().imag,
    "sparse": lambda t: t.to_sparse(),
    "csr": lambda t: t[0].to_sparse_csr(),
    "channels last": lambda t: t[None].to(memory_format=torch.channels_last),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_is_described_by_its_values(layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change each element below: the digest changes exactly when a value that the layout shows does."""

    def values(t: torch.Tensor) -> Any:
        return layout(t).to_dense().resolve_conj().resolve_neg().to(torch.complex64).tolist()

    before = describe(layout(base()))
    assert describe(layout(base())) == before
    seen = 0
    for i in range(24):
        changed = base()
        changed.view(-1)[i] += 100
        differs = values(changed) != values(base())
        assert (describe(layout(changed)).digest != before.digest) is differs, i
        seen += differs
    assert seen


def test_a_large_strided_tensor_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are only a way of reading: every element counts, and two layouts of a piece do not mix."""
    from etgraph.identity import tensors

    t = torch.arange(3000, dtype=torch.int64).reshape(30, 100)[:, 1:]
    whole = tensors.hash_tensor(t)
    monkeypatch.setattr(tensors, "_PIECE", 1000)
    assert tensors.hash_tensor(t) == whole
    changed = t.clone().as_strided((30, 99), (99, 1))
    changed[29, 98] += 1
    assert tensors.hash_tensor(changed) != whole


def test_conjugated_values_are_the_values_seen() -> None:
    t = torch.tensor([1 + 2j])
    assert describe(t.conj()).digest == describe(torch.tensor([1 - 2j])).digest


def test_strides_count_though_shape_and_memory_are_equal() -> None:
    square = torch.arange(4.0).reshape(2, 2)
    assert describe(square).digest != describe(square.t()).digest
    assert describe(torch.ones(2, 2)).digest != describe(torch.ones(2, 2).t()).digest


def test_ties_inside_one_description_are_visible() -> None:
    """Two references, two views of one storage, and two equal copies are three things."""
    t = torch.ones(4)
    assert len({describe(v).digest for v in ([t, t], [t, t.view(4)], [t, t.clone()])}) == 3
    row = torch.zeros(4)
    assert describe([row[:2], row[1:3]]).digest != describe([row[:2], row[2:]]).digest
    assert describe([t, t]) == describe(copy.deepcopy([t, t]))


@pytest.mark.parametrize("second", [slice(2, 4), slice(0, 4), slice(0, 4, 2)])
def test_each_number_of_views_of_one_storage_counts(second: slice) -> None:
    """Only a second look at the very same numbers is not read again; another place, size or step is another look."""
    numbers = torch.zeros(4)
    found = {describe([numbers[:2], numbers[second]]).digest}
    for place in (0, 2):
        numbers[place] += 1
        found.add(describe([numbers[:2], numbers[second]]).digest)
    assert len(found) == 3


def test_where_a_tensor_lies_in_its_storage_does_not_enter() -> None:
    """Saving and loading may move a view to a storage of its own."""
    assert describe(torch.ones(10)[3:5]) == describe(torch.ones(2))


def test_the_tensor_is_only_read() -> None:
    t = base().requires_grad_()
    version = t._version
    describe(t)
    assert (t._version, t.requires_grad, t.grad) == (version, True, None)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


SMALL = [
    (torch.float32, torch.float64),
    (torch.device("cpu"), torch.device("meta")),
    (torch.contiguous_format, torch.channels_last),
    (torch.Size([1, 2]), torch.Size([2, 1])),
    (torch.Size([1, 2]), (1, 2)),
    (torch.ops.aten.add.Tensor, torch.ops.aten.add.Scalar),
    (torch.ops.aten.add, torch.ops.aten.sub),
    (torch.ops.aten.add, torch.ops.aten.add.Tensor),
    (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop),
    (_generator(0), _generator(1)),
    (torch.export.Dim("b", min=1, max=8), torch.export.Dim("b", min=1, max=9)),
    (torch.export.Dim("b"), torch.export.Dim("c")),
    (torch.export.Dim.AUTO, torch.export.Dim.STATIC),
    (torch.nn.functional.relu, torch.nn.functional.gelu),
    (np.float32(1), np.float64(1)),
    (np.dtype("f4"), np.dtype("f8")),
    (np.random.default_rng(0), np.random.default_rng(1)),
    (np.arange(4), np.arange(1, 5)),
    (np.arange(4), np.arange(4).reshape(2, 2)),
    (np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2).T),
    (np.array([{"a": 1}], dtype=object), np.array([{"a": 2}], dtype=object)),
]


@pytest.mark.parametrize(("one", "other"), SMALL, ids=lambda v: str(v)[:20].replace("\n", " "))
def test_small_values_are_told_apart(one: Any, other: Any) -> None:
    assert describe(one) == describe(one)
    assert describe(one).digest != describe(other).digest


def test_tensor_subclasses_are_described_by_their_inner_tensors() -> None:
    """torchao's quantized weights are wrapper subclasses."""
    from torch.testing._internal.two_tensor import TwoTensor

    one = TwoTensor(torch.ones(2), torch.zeros(2))
    assert describe(one) == describe(TwoTensor(torch.ones(2), torch.zeros(2)))
    assert describe(one).digest != describe(TwoTensor(torch.ones(2), torch.ones(2))).digest


def test_a_symbolic_size_is_its_expression() -> None:
    ep = torch.export.export(
        torch.nn.Identity(), (torch.ones(4, 2),), dynamic_shapes={"input": {0: torch.export.Dim("b")}}
    )
    sizes = [n.meta["val"].shape for n in ep.graph.nodes if "val" in n.meta]
    assert describe(sizes[0][0]).own.startswith("SymInt ")


def test_a_tensor_that_cannot_be_read_is_refused() -> None:
    lazy = torch.nn.LazyLinear(3)
    with pytest.raises(Undescribable, match="no shape yet"):
        describe(lazy.weight, "w")
    with pytest.raises(Undescribable, match="bare storage"):
        describe(torch.ones(2).untyped_storage())


def test_a_tensor_that_was_described_can_still_be_resized() -> None:
    tensor = torch.arange(6.0)
    before = describe(tensor)
    tensor.resize_(12)
    tensor.resize_(6)
    assert describe(tensor) == before


def test_a_tensor_without_memory_is_not_read() -> None:
    with FakeTensorMode():
        fake = torch.ones(3)
    assert "without values" in describe(fake).own
    with pytest.raises(ValueError, match="without memory"):
        hash_tensor(fake)
