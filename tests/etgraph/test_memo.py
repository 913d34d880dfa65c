"""The cache around null stages: what is reused, what runs, and why; builds are forbidden to prove it."""

import threading
from dataclasses import fields

import pytest
from null_world import FLOWERING, PLAIN, null_world, pourer, seed

import etgraph
from etgraph.artifact import KINDS
from etgraph.declaration import Stage
from etgraph.errors import CacheEntryError, CacheMismatchError, StageError, Undescribable
from etgraph.held import Held
from etgraph.memo import Memo
from etgraph.recipes import Recipe
from etgraph.registry import registry

BUILDS = []


@pytest.fixture(autouse=True)
def world():
    BUILDS.clear()
    with null_world() as world:
        for name, stage in list(world.stages.items()):
            world.stages[name] = Counted(**{f.name: getattr(stage, f.name) for f in fields(stage)})
        yield world


class Counted(Stage):
    """A stage that says when it is called; its key is that of the function, as always."""

    def __call__(self, plant, **options):
        BUILDS.append(self.name)
        return self.function(plant, **options)


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


def test_a_step_says_what_its_result_takes_in_the_cache_and_how_long_it_took_when_it_was_built(cache):
    entries = {}
    first, _, _ = run(cache)
    for entry in cache.entries():
        entries[entry.about["stage"]] = entry
    assert [(s.result_bytes, s.built_seconds) for s in first.steps] == [
        (entries[s.stage].nbytes, 0) for s in first.steps
    ]
    second, _, _ = run(cache)
    assert [(s.result_bytes, s.built_seconds) for s in second.steps] == [
        (entries[s.stage].nbytes, entries[s.stage].about["seconds"]) for s in second.steps
    ]
    assert all(step.built_seconds > 0 for step in second.steps)
    assert all(step.result_bytes == 0 for step in etgraph.run(seed(), recipe=PLAIN, to="fruit", cache=False).steps)


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


def test_the_reason_is_told_against_the_last_run_though_that_built_nothing(cache):
    one, two, three = (Recipe(name="wet", stages={"water": {"litres": n}}) for n in (1, 2, 3))
    for recipe in (one, two, one):
        run(cache, recipe=recipe)
    assert run(cache, recipe=three)[0].steps[1].reason == "option litres changed from 1 to 3"


def test_of_two_runs_at_once_one_builds_and_the_other_takes_what_it_built(cache, world):
    """Each with a cache object of its own, as two processes have; the second has seen that nothing is there yet."""
    building, asked = threading.Event(), threading.Event()

    class Lingering(Counted):
        def __call__(self, plant, **options):
            building.set()
            assert asked.wait(30)
            return super().__call__(plant, **options)

    class Second(etgraph.Cache):
        def building(self, key):
            asked.set()
            return super().building(key)

    stage = world.stages["germinate"]
    world.stages["germinate"] = Lingering(**{f.name: getattr(stage, f.name) for f in fields(stage)})
    results = {}

    def start(name, its_cache):
        results[name] = etgraph.run(seed(), recipe=PLAIN, to="sprout", cache=its_cache)

    threads = [threading.Thread(target=start, args=("first", cache))]
    threads.append(threading.Thread(target=start, args=("second", Second(cache.directory))))
    threads[0].start()
    assert building.wait(30)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert BUILDS == ["germinate"]
    assert [step.outcome for name in ("first", "second") for step in results[name].steps] == ["ran", "reused"]
    assert results["first"].artifact.methods == results["second"].artifact.methods


def test_nothing_is_kept_that_was_made_by_code_that_was_edited_meanwhile(cache, monkeypatch):
    """A key says which code made the entry."""

    def edited():
        raise Undescribable("edited after this process began", path="etgraph code", type_name="module")

    monkeypatch.setattr(etgraph.memo, "describe_own_code", edited)
    result, outcomes, _ = run(cache)
    assert (outcomes, cache.entries()) == (["ran", "ran"], [])
    assert result.artifact.methods["forward"] == ["germinate", "ripen"]


def test_another_input_is_another_key(cache):
    run(cache)
    assert run(cache, seed(forward=["other"]))[2] == ["germinate", "ripen"]
    assert run(cache, seed(main=[]))[2] == ["germinate", "ripen"]


def test_early_cutoff_when_a_stage_gives_what_it_gave_before(cache):
    """A stage that runs again and gives the same program lets everything after it be reused."""
    run(cache, recipe=Recipe(name="sifted", stages={"sift": {"mesh": 1}}))
    result, outcomes, built = run(cache, recipe=Recipe(name="sifted", stages={"sift": {"mesh": 2}}))
    assert (outcomes, built) == (["reused", "ran", "reused"], ["sift"])
    assert result.steps[1].reason == "option mesh changed from 1 to 2"


def test_a_failed_stage_is_not_cached_and_what_came_before_is(cache):
    for _ in range(2):
        with pytest.raises(StageError, match="bad mood"):
            run(cache, recipe=Recipe(name="moody", stages={"moody": {"mood": "bad"}}))
    assert BUILDS == ["moody"]
    _, outcomes, _ = run(cache, recipe=Recipe(name="moody", stages={"moody": {"mood": "good"}}))
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
    recipe = Recipe(name="gamble", stages={"dice": {}})
    result, _, _ = run(cache, recipe=recipe)
    assert "uncached" not in result.steps[1].reason
    with pytest.raises(CacheMismatchError, match="not deterministic"):
        run(cache, recipe=recipe, check_cache=True)


def test_what_a_stage_captured_enters_its_key(cache):
    recipe = Recipe(name="pouring", stages={"pour": {}})
    for litres in (1, 2, 1):
        with registry.scratch():
            pour = pourer(litres)
            pour.__globals__["Sprout"] = KINDS["sprout"]
            etgraph.stage(pour)
            result, outcomes, _ = run(cache, recipe=recipe, to="sprout")
        assert result.artifact.methods["forward"] == [f"poured {litres}"]
    assert outcomes == ["reused", "reused"]


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
    again, _, built = run(etgraph.Cache(cache.directory))
    assert (built, again.cache_problems) == ([], ())


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


def test_planning_neither_builds_nor_stores_what_is_lost(cache):
    """Loading it while planning fails, and nothing is put in its place."""
    run(cache)
    plan = etgraph.plan(seed(), recipe=PLAIN, to="fruit", cache=cache)
    memo, source = Memo(cache), Held.of(seed(), "Seed")
    sprout = memo.peek(plan.steps[0], source)
    assert memo.peek(plan.steps[1], sprout).kind == "fruit"
    for entry in cache.entries():
        cache.remove(entry.key)
    with pytest.raises(CacheEntryError, match="nothing is built while planning"):
        sprout.artifact()
    assert cache.entries() == []
    assert memo.peek(plan.steps[0], source) is None


def test_a_program_that_was_built_again_and_came_out_different_has_the_key_of_what_it_is(cache):
    """A stage that is not deterministic: what is made of its second result is not kept as made of its first."""
    recipe = Recipe(name="gamble", stages={"dice": {}, "water": {"litres": 1}})
    run(cache, recipe=recipe, to="sprout")

    def lose(event):
        if event.name == "step_finished" and event.planned.stage == "dice":
            for entry in cache.entries():
                cache.remove(entry.key)

    other = Recipe(name="gamble", stages={"dice": {}, "water": {"litres": 2}})
    with pytest.warns(etgraph.EtgraphWarning, match="what dice gave was lost"):
        result, outcomes, built = run(cache, recipe=other, to="sprout", on_event=lose)
    assert (outcomes[:2], built) == (["reused", "reused"], ["germinate", "dice", "water"])
    kept = {entry.about["stage"]: entry.about for entry in cache.entries()}
    assert kept["water"]["parts"]["input"].split(" ")[0] == kept["dice"]["fingerprint"][:16]
    again, outcomes, built = run(cache, recipe=other, to="sprout")
    assert (outcomes[-1], built) == ("reused", [])
    assert again.artifact.methods["forward"] == result.artifact.methods["forward"]


def test_a_step_that_failed_is_not_taken_for_one_that_has_run(cache):
    recipe = Recipe(name="moody", stages={"moody": {"mood": "bad"}})
    for _ in range(2):
        with pytest.raises(StageError):
            run(cache, recipe=recipe)
    good = Recipe(name="moody", stages={"moody": {"mood": "good"}})
    assert run(cache, recipe=good)[0].steps[1].reason == "it has not run on this before"


def test_what_a_stage_told_is_told_again_when_its_result_is_reused(cache):
    recipe = Recipe(name="told", stages={"grumble": {}})
    for outcome in ("ran", "reused"):
        with pytest.warns(etgraph.EtgraphWarning, match="leaves are yellow"):
            _, outcomes, _ = run(cache, recipe=recipe)
        assert outcomes[1] == outcome


def test_the_cache_argument_is_checked():
    with pytest.raises(etgraph.UsageError, match="cache='here'"):
        run("here")
