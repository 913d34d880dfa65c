"""Running plans on null stages: order, release, failures, events, copies of options."""

import gc
import weakref

import pytest
from null_world import FLOWERING, PLAIN, null_world, seed

import etgraph
from etgraph.artifact import KINDS
from etgraph.errors import StageError
from etgraph.recipes import Recipe


@pytest.fixture(autouse=True)
def world():
    with null_world() as registry:
        yield registry


def run(source=None, recipe=PLAIN, to="fruit", **rest):
    rest.setdefault("cache", False)
    return etgraph.run(source if source is not None else seed(), recipe=recipe, to=to, **rest)


def stage_of(function, **declaration):
    function.__globals__.update({kind.__name__: kind for kind in KINDS.values()})
    return etgraph.stage(**declaration)(function)


def test_the_steps_run_in_order_on_every_method():
    result = run(seed(encode=[], decode=["old"]), FLOWERING)
    assert dict(result.artifact.methods) == {
        "encode": ["germinate", "bloom red", "ripen"],
        "decode": ["old", "germinate", "bloom red", "ripen"],
    }
    assert [(s.stage, s.outcome) for s in result.steps] == [
        ("germinate", "ran"),
        ("bloom", "ran"),
        ("ripen", "ran"),
    ]
    assert all(step.seconds >= 0 and step.peak_bytes > 0 for step in result.steps)


def test_the_artifact_knows_what_it_went_through():
    result = run(recipe=Recipe(name="wet", stages={"water": {"litres": 2}}))
    assert [(p.stage, p.kind, p.options) for p in result.artifact.provenance] == [
        ("germinate", "sprout", ()),
        ("water", "sprout", (("litres", "2"),)),
        ("ripen", "fruit", ()),
    ]


def test_an_intermediate_is_released_after_its_last_consumer():
    alive = {}

    def watch(event):
        gc.collect()
        if event.name == "step_started" and event.planned.stage == "ripen":
            alive["germinate's"] = seen["sprout"]() is not None
        if event.name == "step_finished":
            seen[event.planned.produces] = weakref.ref(event.artifact)

    seen = {}
    run(recipe=FLOWERING, on_event=watch)
    assert alive == {"germinate's": False}


def test_a_released_intermediate_is_made_again_when_asked_for():
    result = run(recipe=FLOWERING)
    assert result["sprout"].methods["forward"] == ["germinate"]
    assert result["flower"].methods["forward"] == ["germinate", "bloom red"]
    assert result["fruit"] is result.artifact
    with pytest.raises(KeyError, match="went seed -> sprout -> fruit"):
        run()["flower"]


def test_a_kept_intermediate_stays():
    result = run(keep=["sprout"])
    assert result["sprout"] is result.kept["sprout"]
    with pytest.raises(etgraph.UsageError, match="keep names flower"):
        run(keep=["flower"])


def test_a_failure_says_stage_and_method_and_holds_the_last_good_program():
    def rot(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Fail."""
        with etgraph.at("decode"):
            raise ValueError("brown spots")

    stage_of(rot)
    with pytest.raises(StageError) as caught:
        run(recipe=Recipe(name="rotten", stages={"rot": {}}))
    assert str(caught.value).startswith("stage rot, method decode: ValueError: brown spots\n  model source: ")
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.last_good.artifact().methods["forward"] == ["germinate"]
    assert caught.value.exit_code == 1
    assert [step.stage for step in caught.value.plan.steps] == ["germinate", "rot", "ripen"]
    assert [(step.stage, step.outcome) for step in caught.value.steps] == [("germinate", "ran")]


def test_a_stage_that_returns_another_kind_than_it_declares_is_told():
    def lie(plant: "Sprout") -> "Flower":  # noqa: F821
        """Promise a flower."""
        return plant

    stage_of(lie, cost=0.0)
    with pytest.raises(StageError, match="declares that it returns flower, and returned an artifact of kind sprout"):
        run(to="flower")


def test_each_run_gets_options_of_its_own():
    def collect(plant: "Sprout", *, basket: list) -> "Sprout":  # noqa: F821
        """Keep state in an option, as a partitioner does."""
        basket.append("leaf")
        return plant.become(type(plant), methods={"forward": list(basket)})

    stage_of(collect)
    basket = []
    recipe = Recipe(name="collecting", stages={"collect": {"basket": basket}})
    assert run(recipe=recipe, to="sprout").artifact.methods["forward"] == ["leaf"]
    assert run(recipe=recipe, to="sprout").artifact.methods["forward"] == ["leaf"]
    assert basket == []


def test_a_deferred_option_is_made_when_its_stage_runs():
    made = []

    def litres():
        made.append(1)
        return 5

    from etgraph.recipes import Deferred

    with pytest.raises(etgraph.UsageError, match="module-level function"):
        Deferred(litres)
    recipe = Recipe(name="deferred", stages={"water": {"litres": Deferred(five)}})
    assert etgraph.plan(seed(), recipe=recipe, to="fruit", cache=False).steps[1].options["litres"].make is five
    assert run(recipe=recipe).artifact.methods["forward"] == ["germinate", "water 5", "ripen"]


def five():
    return 5


def test_the_plan_is_what_is_run(world):
    for recipe in (PLAIN, FLOWERING, Recipe(name="wet", stages={"water": {}})):
        planned = etgraph.plan(seed(), recipe=recipe, to="fruit", cache=False)
        assert [s.stage for s in planned.steps] == [s.stage for s in run(recipe=recipe).steps]


def test_events_tell_what_starts_and_what_has_finished():
    events = []
    run(on_event=lambda event: events.append((event.name, event.planned.stage, event.index, event.total)))
    assert events == [
        ("step_started", "germinate", 0, 2),
        ("step_finished", "germinate", 0, 2),
        ("step_started", "ripen", 1, 2),
        ("step_finished", "ripen", 1, 2),
    ]


def test_an_exception_of_the_listener_ends_the_run():
    def stop(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(on_event=stop)


def test_an_artifact_is_immutable():
    artifact = seed()
    with pytest.raises(AttributeError):
        artifact.methods = {}
    with pytest.raises(TypeError):
        artifact.methods["other"] = []
    with pytest.raises(etgraph.UsageError, match="at least one method"):
        type(artifact)(methods={})
