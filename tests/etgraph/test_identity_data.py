"""Calibration data: loaders are described by dataset and order, or by what they give."""

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from etgraph.identity import Undescribable, describe


def dataset(last: float = 5.0) -> TensorDataset:
    return TensorDataset(torch.tensor([[0.0], [1.0], [last]]))


class FromFile(Dataset[torch.Tensor]):
    """Reads a file in a way that its attributes do not tell."""

    def __init__(self, path: Any) -> None:
        self.path = str(path)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> torch.Tensor:
        with open(self.path) as file:
            return torch.tensor(float(file.read().split()[i]))


class Noisy(FromFile):
    def __getitem__(self, i: int) -> torch.Tensor:
        return super().__getitem__(i) + torch.rand(())


def test_a_loader_is_its_dataset_and_its_batching() -> None:
    same, other = DataLoader(dataset()), DataLoader(dataset(6.0))
    assert describe(same) == describe(DataLoader(dataset()))
    assert len({describe(x).digest for x in (same, other, DataLoader(dataset(), batch_size=2))}) == 3


def test_a_loader_that_shuffles_without_a_seed_is_refused() -> None:
    with pytest.raises(Undescribable, match="shuffles with a generator that has no seed"):
        describe(DataLoader(dataset(), shuffle=True))


def test_a_loader_that_shuffles_with_a_seed_counts_it() -> None:
    def seeded(seed: int) -> Any:
        return DataLoader(dataset(), shuffle=True, generator=torch.Generator().manual_seed(seed))

    assert describe(seeded(0)) == describe(seeded(0))
    assert describe(seeded(0)).digest != describe(seeded(1)).digest


def test_a_loader_of_files_is_what_it_gives(tmp_path: Any) -> None:
    """Its dataset reads files, so its content is read: a changed file is another loader."""
    file = tmp_path / "data.txt"
    file.write_text("1 2 3")
    before = describe(DataLoader(FromFile(file)))
    assert describe(DataLoader(FromFile(file))) == before
    file.write_text("1 2 4")
    assert describe(DataLoader(FromFile(file))).digest != before.digest


def test_a_loader_that_gives_other_samples_each_time_is_refused(tmp_path: Any) -> None:
    (tmp_path / "data.txt").write_text("1 2 3")
    with pytest.raises(Undescribable, match="other samples"):
        describe(DataLoader(Noisy(tmp_path / "data.txt")))


def test_describing_a_loader_leaves_the_random_state(tmp_path: Any) -> None:
    (tmp_path / "data.txt").write_text("1 2 3")
    torch.manual_seed(7)
    expected = torch.rand(())
    torch.manual_seed(7)
    describe(DataLoader(FromFile(tmp_path / "data.txt")))
    assert torch.equal(torch.rand(()), expected)


def test_samples_in_lists_are_described_by_value() -> None:
    one, other = ([(torch.ones(2),), (torch.full((2,), v),)] for v in (1.0, 2.0))
    assert describe(one).digest != describe(other).digest
