"""The objects that people pass to ExecuTorch are described, in every process alike."""

import copy
import importlib.util
import pathlib
import re
from typing import Any

import pytest

from etgraph.identity import describe, differences

HERE = pathlib.Path(__file__).parent


def _sibling(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def three_seeds() -> list[dict[str, dict[str, str]]]:
    run_worker = _sibling("test_identity_modules").run_worker
    return [run_worker("real", seed=seed) for seed in ("0", "1", "2")]


def test_real_objects_are_the_same_in_three_processes_with_three_hash_seeds(
    three_seeds: list[dict[str, dict[str, str]]],
) -> None:
    first, second, third = three_seeds
    assert first == second == third
    assert {name: said["digest"] for name, said in first.items()} == {n: s["again"] for n, s in first.items()}


def test_no_two_real_objects_are_taken_for_one(three_seeds: list[dict[str, dict[str, str]]]) -> None:
    digests = [said["digest"] for said in three_seeds[0].values()]
    assert len(set(digests)) == len(digests) > 30


def test_the_change_of_one_option_is_told_in_its_own_words() -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    old, new = (describe([XnnpackPartitioner(per_op_mode=mode)]).parts("partitioners") for mode in (False, True))
    assert "partitioners[0].per_op_mode changed from False to True" in [str(c) for c in differences(old, new)]


#: What copy.deepcopy does not copy faithfully: an XnnpackPartitioner holds a mappingproxy, which it refuses; of an
#: edge operator it makes the ATen operator; the tracer of a pass becomes a plain one (it makes a new one per call);
#: a copied graph module loses its hooks, a copied hook of torch what it wraps.
UNFAITHFUL = re.compile("xnnpack|recipe|.*edge operator|.*pass$|exported module|parametrized")


def test_real_objects_and_their_copies_are_the_same() -> None:
    """The runner may copy an object before each use."""
    real = _sibling("identity_worker").real_objects()
    checked = {name: make() for name, make in real.items() if not UNFAITHFUL.match(name)}
    assert len(checked) > 20
    for name, made in checked.items():
        assert describe(copy.deepcopy(made)).digest == describe(made).digest, name
