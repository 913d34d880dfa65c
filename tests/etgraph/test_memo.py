"""The cache around null stages: what is reused, what runs, and why; builds are forbidden to prove it."""

import pytest
from null_world import FLOWERING, PLAIN, null_world, seed

import etgraph
from etgraph.artifact import KINDS
from etgraph.errors import CacheMismatchError, StageError
from etgraph.recipes import Recipe

BUILDS = []


@pytest.fixture(autouse=True)
def world(monkeypatch):
    BUILDS.clear()
    with null_world() as registry:
        for name, stage in list(registry.stages.items()):
            registry.stages[name] = _counted(stage)
        yield registry


def _counted(stage):
    from dataclasses import replace

    def counted(plant, **options):
        BUILDS.append(stage.name)
        return stage.function(plant, **options)

    # Keys see the stage's own function; only the calls are counted.
    counted_stage = replace(stage)
    object.__setattr__(counted_stage, "function", stage.function)
    object.__setattr__(counted_stage, "_call", counted)
    type(counted_stage).__call__ = lambda self, plant, **o: getattr(self, "_call", self.function)(plant, **o)
    return counted_stage


@pytest.fixture
def cache(tmp_path):
    return etgraph.Cache(tmp_path / "cache")


def run(cache, source=None, recipe=PLAIN, to="fruit", **rest):
    BUILDS.clear()
    result = etgraph.run(source if source is not None else seed(), recipe=recipe, to=to, cache=cache, **rest)
    return result, [step.outcome for step in result.steps], list(BUILDS)


def test_a_second_run_builds_nothing_and_gives_the_same(cache):
    first, outcomes, _ = run(cache)
    assert outcomes == ["ran", "ran"]
    second, outcomes, built = run(cache)
    assert (outcomes, built) == (["reused", "reused"], [])
    assert dict(second.artifact.methods) == dict(first.artifact.methods)
    assert second.artifact.fingerprint == first.artifact.fingerprint
    assert second.artifact.provenance == first.artifact.provenance


def test_a_changed_option_builds_from_there_and_says_which(cache):
    run(cache, recipe=Recipe(name="wet", stages={"water": {"litres": 1}}))
    result, outcomes, built = run(cache, recipe=Recipe(name="wet", stages={"water": {"litres": 2}}))
    assert (outcomes, built) == (["reused", "ran", "ran"], ["water", "ripen"])
    assert result.steps[1].reason == "option litres changed from 1 to 2"
    assert result.steps[2].reason.startswith("input changed from ")


def test_both_versions_stay_in_the_cache(cache):
    one, two = (Recipe(name="wet", stages={"water": {"litres": n}}) for n in (1, 2))
    run(cache, recipe=one)
    run(cache, recipe=two)
    assert run(cache, recipe=one)[2] == []
    assert run(cache, recipe=two)[2] == []


def test_another_input_is_another_key(cache):
    run(cache)
    assert run(cache, seed(forward=["other"]))[2] == ["germinate", "ripen"]
    assert run(cache, seed(main=[]))[2] == ["germinate", "ripen"]


def test_early_cutoff_when_another_way_gives_the_same_program(cache):
    """A stage that runs again and gives what it gave before lets everything after it be reused."""

    def sift(plant: "Sprout", *, mesh: int) -> "Sprout":  # noqa: F821
        """Change nothing."""
        BUILDS.append("sift")
        return plant.become(type(plant), methods=dict(plant.methods))

    sift.__globals__["Sprout"] = KINDS["sprout"]
    etgraph.stage(sift)
    run(cache, recipe=Recipe(name="sifted", stages={"sift": {"mesh": 1}}))
    _, outcomes, built = run(cache, recipe=Recipe(name="sifted", stages={"sift": {"mesh": 2}}))
    assert (outcomes, built) == (["reused", "ran", "reused"], ["sift"])


def test_a_failed_stage_is_not_cached_and_what_came_before_is(cache):
    def fail(plant: "Sprout", *, mood: str) -> "Sprout":  # noqa: F821
        """Fail as asked."""
        if mood == "bad":
            raise RuntimeError("bad mood")
        return plant.become(type(plant), methods=dict(plant.methods))

    fail.__globals__["Sprout"] = KINDS["sprout"]
    etgraph.stage(fail)
    for _ in range(2):
        with pytest.raises(StageError, match="bad mood"):
            run(cache, recipe=Recipe(name="moody", stages={"fail": {"mood": "bad"}}))
    assert BUILDS == []  # germinate was reused the second time, and fail is not counted
    _, outcomes, _ = run(cache, recipe=Recipe(name="moody", stages={"fail": {"mood": "good"}}))
    assert outcomes == ["reused", "ran", "ran"]


def test_an_option_without_a_description_makes_its_step_run_and_says_how_to_declare_it(cache):
    class Opaque:
        __slots__ = ("handle",)

        def __init__(self):
            self.handle = open(__file__)  # noqa: SIM115

        def __deepcopy__(self, memo):
            return self

    recipe = Recipe(name="opaque", stages={"water": {"litres": Opaque()}})
    for _ in range(2):
        result, outcomes, _ = run(cache, recipe=recipe)
        assert outcomes[1] == "ran"
    assert "ran uncached" in result.steps[1].reason
    assert "litres.handle" in result.steps[1].reason
    assert outcomes == ["reused", "ran", "reused"]  # what comes out is what came out before


def test_refresh_builds_everything_anew(cache):
    run(cache)
    result, outcomes, built = run(cache, refresh=True)
    assert (outcomes, built) == (["ran", "ran"], ["germinate", "ripen"])
    assert result.steps[0].reason == "asked to refresh"


def test_without_a_cache_nothing_is_kept(cache):
    run(False)
    assert run(False)[2] == ["germinate", "ripen"]
    assert cache.entries() == []


def test_check_cache_builds_what_it_reuses_and_compares(cache):
    run(cache)
    assert run(cache, check_cache=True)[2] == ["germinate", "ripen"]


def test_check_cache_finds_a_stage_that_is_not_deterministic(cache):
    def dice(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Give something else each time."""
        import random

        return plant.become(type(plant), methods={"forward": [str(random.random())]})

    dice.__globals__["Sprout"] = KINDS["sprout"]
    etgraph.stage(dice)
    recipe = Recipe(name="gamble", stages={"dice": {}})
    _, outcomes, _ = run(cache, recipe=recipe)
    with pytest.raises(CacheMismatchError, match="not deterministic"):
        run(cache, recipe=recipe, check_cache=True)


def test_what_a_stage_captured_enters_its_key(cache):
    def made(litres):
        def pour(plant: "Sprout") -> "Sprout":  # noqa: F821
            """Water by what was captured."""
            return plant.become(type(plant), methods={"forward": [f"poured {litres}"]})

        pour.__globals__["Sprout"] = KINDS["sprout"]
        return pour

    recipe = Recipe(name="pouring", stages={"pour": {}})
    for litres in (1, 2):
        with etgraph.registry.registry.scratch():
            etgraph.stage(made(litres))
            result, _, _ = run(cache, recipe=recipe, to="sprout")
        assert result.artifact.methods["forward"] == [f"poured {litres}"]


def test_a_damaged_entry_is_built_again_and_told(cache):
    first, _, _ = run(cache)
    entries = sorted(cache.directory.rglob("entries/*/*"))
    assert len(entries) == 2
    for path in entries:
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    with pytest.warns(etgraph.EtgraphWarning, match="damaged|cannot be read"):
        result, _, built = run(cache)
    assert dict(result.artifact.methods) == dict(first.artifact.methods)
    assert "ripen" in built
    assert result.cache_problems
    assert run(cache)[2] == []


def test_an_intermediate_is_rebuilt_when_its_entry_is_gone_and_it_is_needed(cache):
    run(cache, recipe=FLOWERING)
    for entry in cache.entries():
        if entry.about["stage"] == "germinate":
            cache.remove(entry.key)
    result, _, built = run(
        cache, recipe=Recipe(name="flowering", stages={"bloom": {"colour": "blue"}}, through=FLOWERING.through)
    )
    assert built == ["germinate", "bloom", "ripen"]
    assert result.artifact.methods["forward"] == ["germinate", "bloom blue", "ripen"]


def test_what_a_stage_told_is_told_again_when_its_result_is_reused(cache):
    def warned(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Tell something."""
        etgraph.warn("leaves are yellow")
        return plant.become(type(plant), methods=dict(plant.methods))

    warned.__globals__["Sprout"] = KINDS["sprout"]
    etgraph.stage(warned)
    recipe = Recipe(name="told", stages={"warned": {}})
    for _ in range(2):
        with pytest.warns(etgraph.EtgraphWarning, match="leaves are yellow"):
            run(cache, recipe=recipe)


def test_a_way_that_is_in_the_cache_is_preferred_and_said(cache):
    """Two ways to one fruit: the dearer is taken when its work is there already."""
    recipe = Recipe(name="express", stages={"grow_at_once": {}})
    run(cache, recipe=recipe, path="express")
    planned = etgraph.plan(seed(), recipe=recipe, to="fruit", cache=cache)
    assert [step.stage for step in planned.steps] == ["germinate", "ripen"]  # no choice of ways on the usual one


def test_the_cache_argument_is_checked():
    with pytest.raises(etgraph.UsageError, match="cache='here'"):
        run("here")
