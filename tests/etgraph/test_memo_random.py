"""Random recipes over null stages, with failures and flipped inputs, against plain evaluation."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from null_world import null_world, seed

import etgraph
from etgraph.errors import StageError
from etgraph.recipes import Recipe, Through

pytestmark = pytest.mark.filterwarnings("ignore::etgraph.errors.EtgraphWarning")

#: Options of the attached stages; a recipe names some of them, in any order.
PASSES = {
    "water": st.fixed_dictionaries({"litres": st.integers(0, 2)}),
    "sift": st.fixed_dictionaries({"mesh": st.integers(0, 2)}),
    "moody": st.fixed_dictionaries({"mood": st.sampled_from(["good", "fair", "bad"])}),
}


@st.composite
def recipes(draw):
    names = draw(st.lists(st.sampled_from(sorted(PASSES)), unique=True))
    stages = {name: draw(PASSES[name]) for name in names}
    if draw(st.booleans()):
        colour = draw(st.sampled_from(["red", "blue"]))
        return Recipe(
            name="any", stages={**stages, "bloom": {"colour": colour}}, through=(Through("flower", "blooms"),)
        )
    return Recipe(name="any", stages=stages)


def evaluated(words, recipe):
    """Say what a seed becomes, without an engine; None where a stage fails."""
    grown = [*words, "germinate"]
    for name, options in recipe.stages.items():
        if name == "water":
            grown.append(f"water {options['litres']}")
        if name == "moody" and options["mood"] == "bad":
            return None
    if "bloom" in recipe.stages:
        grown.append(f"bloom {recipe.stages['bloom']['colour']}")
    return [*grown, "ripen"]


class Runs(RuleBasedStateMachine):
    """Runs on one cache whose entries are lost and damaged meanwhile."""

    def __init__(self):
        super().__init__()
        self.world = null_world()
        self.world.__enter__()
        self.folder = tempfile.TemporaryDirectory()
        self.good = {}

    @initialize()
    def open(self):
        self.cache = etgraph.Cache(Path(self.folder.name) / "cache")

    @rule(words=st.lists(st.sampled_from(["a", "b"]), max_size=2), recipe=recipes(), refresh=st.booleans())
    def run(self, words, recipe, refresh):
        expected = evaluated(words, recipe)
        if expected is None:
            with pytest.raises(StageError, match="bad mood"):
                etgraph.run(seed(forward=words), recipe=recipe, to="fruit", cache=self.cache, refresh=refresh)
            return
        result = etgraph.run(seed(forward=words), recipe=recipe, to="fruit", cache=self.cache, refresh=refresh)
        assert list(result.artifact.methods["forward"]) == expected
        assert [step.stage for step in result.steps] == [step.stage for step in result.plan.steps]
        if refresh:
            assert {step.outcome for step in result.steps} == {"ran"}
        self.good[result.artifact.fingerprint] = (words, recipe)

    @precondition(lambda self: self.good)
    @rule(chance=st.randoms(use_true_random=False))
    def run_again(self, chance):
        """What was built and not lost is not built again."""
        words, recipe = chance.choice(list(self.good.values()))
        etgraph.run(seed(forward=words), recipe=recipe, to="fruit", cache=self.cache)
        result = etgraph.run(seed(forward=words), recipe=recipe, to="fruit", cache=self.cache)
        assert {step.outcome for step in result.steps} == {"reused"}
        assert list(result.artifact.methods["forward"]) == evaluated(words, recipe)

    @rule(chance=st.randoms(use_true_random=False))
    def flip_a_bit(self, chance):
        files = sorted(self.cache.directory.rglob("entries/*/*"))
        if files:
            path = chance.choice(files)
            data = bytearray(path.read_bytes())
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(data)

    @rule(chance=st.randoms(use_true_random=False))
    def swap_two_entries(self, chance):
        files = sorted(self.cache.directory.rglob("entries/*/*"))
        if len(files) > 1:
            one, other = chance.sample(files, 2)
            first, second = one.read_bytes(), other.read_bytes()
            one.write_bytes(second)
            other.write_bytes(first)

    @rule(chance=st.randoms(use_true_random=False))
    def lose_an_entry(self, chance):
        files = sorted(self.cache.directory.rglob("entries/*/*"))
        if files:
            chance.choice(files).unlink()

    @rule(size=st.sampled_from([0, 2000, 10_000]))
    def prune(self, size):
        self.cache.prune(size)

    @rule()
    def another_process(self):
        self.cache = etgraph.Cache(self.cache.directory)

    @invariant()
    def it_can_be_listed(self):
        if hasattr(self, "cache"):
            assert all(entry.about["stage"] for entry in self.cache.entries())

    def teardown(self):
        self.folder.cleanup()
        self.world.__exit__(None, None, None)


Runs.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestRuns = Runs.TestCase
