"""A stage's signature is its declaration; mistakes are told when it is declared."""

import pytest

import etgraph
from etgraph.artifact import Edge, Exported, Lowered, Quantized
from etgraph.declaration import declare
from etgraph.errors import StageDeclarationError


def works(program: Exported | Quantized, *, level: int = 1, must: str) -> Edge:
    """Do something."""


def test_the_signature_says_everything():
    stage = declare(works, way="split", cost=3)
    assert stage.name == "works"
    assert stage.consumes == ("exported", "quantized")
    assert stage.produces == "edge"
    assert list(stage.options) == ["level", "must"]
    assert stage.required == ("must",)
    assert stage.summary == "Do something."
    assert not stage.attached


def test_a_stage_that_returns_the_kind_it_takes_is_attached_and_on_request():
    def passes(program: Lowered) -> Lowered:
        """Stay."""

    stage = declare(passes)
    assert stage.attached
    assert stage.on_request
    assert stage.result_of("lowered") == "lowered"


def _two(program: Exported, other: Exported) -> Edge:
    """Take two."""


def _none() -> Edge:
    """Take none."""


def _star(program: Exported, **options) -> Edge:
    """Take anything."""


def _untyped(program) -> Edge:
    """Say nothing."""


def _unknown(program: "Nowhere") -> Edge:  # noqa: F821
    """Say something that is not there."""


def _not_a_kind(program: int) -> Edge:
    """Take a number."""


def _no_return(program: Exported):
    """Return who knows what."""


def _two_kinds(program: Exported) -> Edge | Lowered:
    """Return one of two."""


def _silent(program: Exported) -> Edge: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_two, "2 positional parameters"),
        (_none, "0 positional parameters"),
        (_star, r"\*\*options"),
        (_untyped, "'program' is missing"),
        (_unknown, "cannot be read"),
        (_not_a_kind, "not a kind of artifact"),
        (_no_return, "the return value is missing"),
        (_two_kinds, "returns 2 kinds"),
        (_silent, "no docstring"),
    ],
)
def test_a_wrong_signature_is_refused_with_the_signature_and_the_rule(function, why):
    with pytest.raises(StageDeclarationError, match=why) as caught:
        declare(function)
    assert function.__name__ in str(caught.value)
    assert "A stage takes one artifact" in str(caught.value)


def test_only_functions_are_stages():
    with pytest.raises(StageDeclarationError, match="takes a function"):
        declare(42)


def test_covering_a_pass_needs_an_option_of_its_name():
    with pytest.raises(StageDeclarationError, match="covers 'edge_passes'"):
        declare(works, covers=("edge_passes",))


def test_costs_are_not_negative():
    with pytest.raises(StageDeclarationError, match="negative"):
        declare(works, cost=-1)


def test_two_stages_of_one_name_are_refused_naming_both():
    with etgraph.registry.registry.scratch():

        @etgraph.stage
        def twin(program: Exported) -> Edge:
            """Be first."""

        other = declare(works, name="twin")
        with pytest.raises(StageDeclarationError, match=r"works.*twin"):
            etgraph.registry.registry.add_stage(other)


def test_a_declared_stage_is_called_like_its_function():
    def double(program: Exported, *, by: int = 2) -> Exported:
        """Multiply."""
        return (program, by)

    assert declare(double)(3, by=4) == (3, 4)


def test_a_kind_is_declared_once():
    with pytest.raises(StageDeclarationError, match="declares kind 'edge'"):

        class Again(etgraph.Artifact, kind="edge"):
            pass
