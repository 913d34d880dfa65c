"""The planner on null stages: ways, passes, insisted kinds, reasons and refusals."""

import pytest
from null_world import FLOWERING, PLAIN, null_world

from etgraph import planner
from etgraph.artifact import Kind, Provenance
from etgraph.errors import PlanError, UsageError
from etgraph.planned import Request
from etgraph.recipes import Recipe, Through


@pytest.fixture(autouse=True)
def world():
    with null_world() as registry:
        yield registry


def plan(world, start="seed", goal="fruit", recipe=PLAIN, **rest):
    rest.setdefault("passed", frozenset({start}))
    return planner.make(Request(start=Kind(start), goal=Kind(goal), recipe=recipe, **rest), world.stages)


def names(plan):
    return [step.stage for step in plan.steps]


EXPRESS = Recipe(name="express", stages={"grow_at_once": {}})


def test_the_cheapest_way_is_taken(world):
    made = plan(world)
    assert names(made) == ["germinate", "ripen"]
    assert made.kinds == ("seed", "sprout", "fruit")


def test_a_stage_on_request_is_used_only_when_a_recipe_names_it(world):
    assert names(plan(world, recipe=EXPRESS)) == ["germinate", "ripen"]  # cheaper, and allowed
    assert names(plan(world, recipe=EXPRESS, path="express")) == ["grow_at_once"]


def test_an_insisted_kind_is_passed(world):
    assert names(plan(world, recipe=FLOWERING)) == ["germinate", "bloom", "ripen"]


def test_an_insisted_kind_beyond_the_goal_is_not_missed(world):
    assert names(plan(world, goal="sprout", recipe=FLOWERING)) == ["germinate"]


def test_a_program_that_passed_the_insisted_kind_does_not_pass_it_twice(world):
    made = plan(world, start="sprout", recipe=FLOWERING, passed=frozenset({"sprout", "flower"}))
    assert names(made) == ["ripen"]
    assert "blooms, which is not done twice" in made.notes[0]


def test_a_pass_runs_at_its_kind_with_its_options_in_the_recipes_order(world):
    made = plan(world, recipe=Recipe(name="wet", stages={"water": {"litres": 3}}))
    assert names(made) == ["germinate", "water", "ripen"]
    assert made.steps[1].options == {"litres": 3}


def test_a_pass_runs_at_the_start_and_at_the_goal_too(world):
    wet = Recipe(name="wet", stages={"water": {}})
    assert names(plan(world, start="sprout", goal="sprout", recipe=wet)) == ["water"]


def test_a_pass_that_has_run_on_the_program_is_not_run_again(world):
    wet = Recipe(name="wet", stages={"water": {}})
    made = plan(world, start="sprout", recipe=wet, provenance=(Provenance("water", "sprout"),))
    assert names(made) == ["ripen"]
    assert "not run again" in made.notes[0]


def test_a_stage_that_covers_a_pass_gets_its_options(world):
    recipe = Recipe(name="wet express", stages={"water": {"litres": 2}, "grow_at_once": {}}, way="express")
    made = plan(world, recipe=recipe)
    assert names(made) == ["grow_at_once"]
    assert made.steps[0].options == {"water": {"litres": 2}}


def test_a_way_that_would_skip_a_pass_is_not_taken(world):
    def dash(plant: "Seed") -> "Fruit":  # noqa: F821
        """Be cheap."""

    from etgraph.artifact import KINDS
    from etgraph.registry import stage

    dash.__globals__.update(Seed=KINDS["seed"], Fruit=KINDS["fruit"])
    stage(cost=0.1)(dash)
    assert names(plan(world)) == ["dash"]
    assert names(plan(world, recipe=Recipe(name="wet", stages={"water": {}}))) == ["germinate", "water", "ripen"]


def test_each_choice_says_why_and_what_was_rejected(world):
    text = plan(world, recipe=FLOWERING).explain()
    assert "from seed to fruit under recipe flowering" in text
    assert "not ripen: it would pass by flower, and recipe flowering blooms" in text
    assert "not grow_at_once: recipe flowering does not name it" in text


def test_a_request_with_nothing_to_do_says_so(world):
    made = plan(world, start="fruit")
    assert made.steps == ()
    assert "nothing to do" in made.explain()


def test_going_back_is_refused_with_what_is_possible(world):
    with pytest.raises(PlanError, match="already at fruit") as caught:
        plan(world, start="fruit", goal="seed")
    assert "nothing further" in str(caught.value)


def test_a_recipe_that_comes_too_late_is_refused_with_another(world):
    with pytest.raises(PlanError) as caught:
        plan(world, start="fruit", goal="fruit", recipe=FLOWERING)
    assert str(caught.value) == (
        "this program is already at fruit; recipe flowering blooms, which happens between sprout and fruit\n"
        "  Start from a program at seed or sprout, or use plain."
    )


def test_a_pass_that_comes_too_late_is_refused(world):
    with pytest.raises(PlanError, match="names water, which runs at sprout"):
        plan(world, start="fruit", goal="fruit", recipe=Recipe(name="wet", stages={"water": {}}))


def test_a_path_that_is_ruled_out_names_the_stages_and_the_reasons(world):
    with pytest.raises(PlanError, match="bloom: recipe plain does not name it"):
        plan(world, goal="flower")


def test_a_missing_option_is_named(world):
    recipe = Recipe(name="dull", stages={"bloom": {}}, through=(Through("flower", "blooms"),))
    with pytest.raises(PlanError, match="needs the option colour"):
        plan(world, recipe=recipe)
    assert names(plan(world, recipe=recipe, supplied={"colour": "blue"})) == ["germinate", "bloom", "ripen"]


def test_a_recipe_that_can_only_go_one_way_contradicts_another_path(
    world,
):
    recipe = Recipe(name="express", stages={"grow_at_once": {}}, way="express", way_reason="it is in a hurry")
    assert names(plan(world, recipe=recipe)) == ["grow_at_once"]
    with pytest.raises(UsageError, match="path='slow' is not one of auto, express"):
        plan(world, recipe=recipe, path="slow")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"goal": "friut"}, "did you mean 'fruit'"),
        ({"path": "fast"}, "not one of auto, express"),
        ({"recipe": Recipe(name="r", stages={"watr": {}})}, "did you mean 'water'"),
        ({"recipe": Recipe(name="r", stages={"water": {"liters": 1}})}, "did you mean 'litres'"),
    ],
)
def test_a_mistyped_name_is_told_with_the_closest(world, change, words):
    with pytest.raises(UsageError, match=words):
        plan(world, **change)


def test_asking_for_a_path_where_there_is_no_choice_is_noted(world):
    made = plan(world, start="sprout", path="express")
    assert "changes nothing here" in made.notes[0]


def test_a_plan_draws_itself(world):
    made = plan(world)
    assert "seed == germinate ==> sprout" in made.to_mermaid()
    assert '"sprout" -> "fruit" [label="ripen", penwidth=3];' in made.to_dot()
    assert made.to_dict()["kinds"] == ["seed", "sprout", "fruit"]
    assert made.graph.has_edge("seed", "sprout", key="germinate")


def test_a_stage_from_outside_is_used_without_a_central_edit(world):
    """Ten lines: a kind, a stage, and the planner goes by it."""
    from dataclasses import dataclass

    import etgraph
    from etgraph.artifact import KINDS

    @dataclass(frozen=True, kw_only=True, eq=False, repr=False)
    class Jam(etgraph.Artifact, kind="jam"):
        """What becomes of fruit."""

    def boil(plant: "Fruit") -> "Jam":  # noqa: F821
        """Cook."""
        return plant.become(Jam, methods=dict(plant.methods))

    boil.__globals__.update(Jam=Jam, Fruit=KINDS["fruit"])
    etgraph.stage(boil)
    assert names(plan(world, goal="jam")) == ["germinate", "ripen", "boil"]
