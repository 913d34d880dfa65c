"""The suffix says the form, and an intermediate never goes under the suffix of the final product."""

from __future__ import annotations

import pytest
import torch
from codec_support import artifact

from etgraph.artifact import Executorch
from etgraph.errors import UsageError
from stages.codec import fingerprint
from stages.codec.foreign import load_file
from stages.keeping import save_file


def test_each_suffix_gives_its_form(tmp_path):
    """A container, torch's own file, and the plain bytes with data files beside them."""
    source = artifact("linear", "exported")
    save_file(source, tmp_path / "m.exported.etg")
    assert fingerprint(load_file(tmp_path / "m.exported.etg")) == fingerprint(source)
    save_file(source, tmp_path / "m.pt2")
    assert torch.export.load(tmp_path / "m.pt2").graph_module.code == source["forward"].graph_module.code
    product = Executorch(methods={"forward": {}}, pieces=(b"ab", b"c"), data_pieces={"w.ptd": (b"weights",)})
    save_file(product, tmp_path / "m.pte")
    assert (tmp_path / "m.pte").read_bytes() == b"abc"
    assert (tmp_path / "w.ptd").read_bytes() == b"weights"
    save_file(product, tmp_path / "m.executorch.etg")
    assert load_file(tmp_path / "m.executorch.etg").buffer == b"abc"
    assert len(list(tmp_path.iterdir())) == 5


def test_a_wrong_suffix_is_refused_with_the_right_one(tmp_path):
    """No intermediate as .pte, no edge program as .pt2, no unknown suffix, no data file elsewhere."""
    edge = artifact("linear", "edge")
    for name in ("m.pte", "m.pt2", "m.bin", "m"):
        with pytest.raises(UsageError, match="a program at edge is not written") as error:
            save_file(edge, tmp_path / name)
        assert "edge.etg" in str(error.value)
    with pytest.raises(UsageError, match="would not lie beside it"):
        save_file(Executorch(methods={"f": {}}, pieces=(b"x",), data_pieces={"../w.ptd": (b"y",)}), tmp_path / "m.pte")
    assert not list(tmp_path.iterdir())
