"""What enters a cache key and what does not, on null stages."""

import importlib
import importlib.metadata
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from keying import full_key, key, planned
from null_world import null_world, seed

import etgraph
from etgraph.artifact import KINDS, Inputs, Provenance
from etgraph.errors import Undescribable
from etgraph.held import Held
from etgraph.identity import origin
from etgraph.keys import describe_code, describe_option, why_changed
from etgraph.recipes import Deferred
from etgraph.registry import registry


@pytest.fixture(autouse=True)
def world():
    with null_world() as world:
        world.services["input_values"] = lambda plant: [
            (one.args, dict(one.kwargs)) for samples in plant.example_inputs.values() for one in samples
        ]
        yield world


def declare(function, **declaration):
    """Register a function as a stage over sprouts, in the place of one of that name."""
    registry.stages.pop(declaration.get("name", function.__name__), None)
    function.__globals__["Sprout"] = KINDS["sprout"]
    return etgraph.stage(**declaration)(function)


def sprout(inputs=(), **more):
    samples = {"example_inputs": {"forward": tuple(Inputs(*one) for one in inputs)}} if inputs else {}
    return KINDS["sprout"](methods={"forward": []}, **samples, **more)


def test_a_key_is_the_same_for_the_same_step_on_the_same_program():
    assert key("water", sprout(), litres=1) == key("water", sprout(), litres=1)


def test_the_parts_of_a_key_have_names():
    parts = full_key("water", sprout(), litres=1).parts
    assert parts["stage"] == "water: sprout -> sprout"
    assert parts["option litres"] == "1"
    heads = {name.partition("(")[0] for name in parts}
    assert {"stage", "code", "input", "input values", "option litres", "toolchain.torch"} <= heads
    assert "toolchain.etgraph code" in heads


def test_the_stage_the_kind_the_program_and_each_option_enter():
    keys = [
        key("water", sprout(), litres=1),
        key("water", sprout(), litres=2),
        key("water", sprout(), litres=1.0),
        key("water", sprout(), litres=True),
        key("water", sprout()),
        key("sift", sprout(), mesh=1),
        key("moody", sprout(), mood="good"),
        key("water", KINDS["sprout"](methods={"other": []}), litres=1),
        key("water", KINDS["sprout"](methods={"forward": ["x"]}), litres=1),
        key("ripen", sprout()),
        key("ripen", KINDS["flower"](methods={"forward": []})),
        key("germinate", seed()),
    ]
    assert len(set(keys)) == len(keys)


def test_label_provenance_and_order_of_sets_do_not_enter():
    assert key("water", Held.of(sprout(), "this")) == key("water", Held.of(sprout(), "that"))
    history = (Provenance("germinate", "sprout", (("a", "b"),)),)
    assert key("water", sprout(provenance=history)) == key("water", sprout())
    words = [f"word {i}" for i in range(50)]
    backwards = words[::-1]
    assert key("water", sprout(), litres=set(words)) == key("water", sprout(), litres=set(backwards))


@pytest.mark.parametrize("name", list(origin.toolchain()))
def test_each_part_of_the_toolchain_enters(monkeypatch, name):
    before = full_key("water", sprout())
    if name == "python":
        monkeypatch.setattr(origin, "_PYTHON", "python 9.9")
    elif name == "platform":
        monkeypatch.setattr(origin.platform, "machine", lambda: "abacus")
    else:
        real = origin.installed_version
        monkeypatch.setattr(origin, "installed_version", lambda asked: "0.0.7" if asked == name else real(asked))
    after = full_key("water", sprout())
    assert after.digest != before.digest
    assert why_changed(before.parts, after.parts).startswith(f"toolchain.{name} changed from ")


def test_the_code_of_etgraph_itself_enters(monkeypatch):
    from etgraph import keys
    from etgraph.identity import Description

    before = key("water", sprout())
    monkeypatch.setattr(keys, "describe_own_code", lambda: Description("files", "other"))
    assert key("water", sprout()) != before


def test_numbers_in_example_inputs_enter_unless_the_stage_is_known_to_look_at_none():
    def look(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Look at the inputs, as a stage that calibrates does."""
        return plant

    declare(look)
    assert key("look", sprout([(1.0,)])) != key("look", sprout([(2.0,)]))
    assert key("look", sprout([(1.0,)])) != key("look", sprout([(1.0,), (1.0,)]))
    declare(look, reads_inputs=False)
    assert key("look", sprout([(1.0,)])) == key("look", sprout([(2.0,)]))


def test_whether_a_stage_looks_at_inputs_can_hang_on_its_options():
    def look(plant: "Sprout", *, closely: bool = False) -> "Sprout":  # noqa: F821
        """Look at the inputs when asked to."""
        return plant

    declare(look, reads_inputs=lambda options: options["closely"])
    one, two = sprout([(1.0,)]), sprout([(2.0,)])
    assert key("look", one, closely=False) == key("look", two, closely=False)
    assert key("look", one, closely=True) != key("look", two, closely=True)


def test_provenance_enters_for_a_stage_that_looks_at_it():
    def remember(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Do something else after some stages."""
        return plant

    declare(remember, reads_provenance=True)
    history = (Provenance("germinate", "sprout"),)
    assert key("remember", sprout(provenance=history)) != key("remember", sprout())


def test_options_that_a_stage_cannot_read_make_its_step_run_uncached():
    def narrow(plant: "Sprout", *, parts: list) -> "Sprout":  # noqa: F821
        """Take parts."""
        return plant

    declare(narrow, key_options=lambda options: {"parts": [part.name for part in options["parts"]]})
    with pytest.raises(Undescribable, match=r"the options of narrow .* TypeError"):
        key("narrow", sprout(), parts=3)


def test_defaults_captures_and_globals_of_a_stage_enter():
    def made(litres, default, captured):
        def pour(plant: "Sprout", *, by: int = default) -> "Sprout":  # noqa: F821
            """Water by what was captured."""
            return plant.become(type(plant), methods={"forward": [captured, by, AMOUNT]})

        declare(pour)
        return key("pour", sprout())

    keys = [made(1, 2, 3), made(1, 4, 3), made(1, 2, 5)]
    globals()["AMOUNT"] = [1, 3]
    keys.append(made(1, 2, 3))
    globals()["AMOUNT"] = [1, 2]
    assert len(set(keys)) == len(keys)
    assert made(1, 2, 3) == keys[0]


AMOUNT = [1, 2]


def test_defaults_and_captures_of_a_stage_that_cannot_be_followed_enter():
    """It asks where its file is; that file speaks for its code, and not for what was given to it."""

    def made(default, captured):
        def pour(plant: "Sprout", *, by: int = default) -> "Sprout":  # noqa: F821
            """Water by what was captured."""
            return plant.become(type(plant), methods={"forward": [captured, by, __file__]})

        return describe_code(pour).digest

    assert len({made(2, 3), made(4, 3), made(2, 5)}) == 3
    assert made(2, 3) == made(2, 3)


def test_a_stage_in_a_cell_that_is_still_empty_has_a_key():
    def pour(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Call what is defined below."""
        return later(plant)

    declare(pour)
    assert key("pour", sprout())

    def later(plant):
        return plant


STAGE = """
import etgraph
from etgraph.artifact import KINDS
from null_helpers import times

Sprout = KINDS["sprout"]


class Can:
    def pour(self, plant):
        return times(2)


@etgraph.stage(name="{name}")
def water_from_file(plant: Sprout) -> Sprout:
    "Water."
    return Can().pour(plant)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write and import a stage of a third party, anew each time."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(module="null_stage", text=STAGE, helpers="def times(n):\n    return n\n"):
        for name, content in ((module, text.format(name="from_file")), ("null_helpers", helpers)):
            if content is not None:
                (tmp_path / f"{name}.py").write_text(content)
                sys.modules.pop(name, None)
        registry.stages.pop("from_file", None)
        importlib.invalidate_caches()
        importlib.import_module(module)
        return key("from_file", sprout())

    yield load
    for name in ("null_stage", "other_name", "null_helpers"):
        sys.modules.pop(name, None)


def test_the_file_of_a_stage_and_what_it_imports_enter_and_comments_do_not(project, tmp_path):
    before = project()
    assert project(text=STAGE.replace("times(2)", "times(3)")) != before
    assert project(helpers="def times(n):\n    return n + 1\n") != before
    assert project(text="# a comment\n" + STAGE.replace('"Water."', '"Other words."')) == before
    assert project(module="other_name") == before
    os.utime(tmp_path / "other_name.py", (1, 1))
    assert key("from_file", sprout()) == before


@pytest.mark.parametrize(
    ("old", "new"), [("times(2)", "times(3)"), ("Can().pour(plant)", "Can().pour(None)"), ("pour(self", "_(self")]
)
def test_a_stage_whose_file_was_edited_after_the_import_has_no_key(project, tmp_path, old, new):
    """What runs is not what the file says: a result under the new text would be served to those who run it."""
    project()
    path = tmp_path / "null_stage.py"
    path.write_text(STAGE.format(name="from_file").replace(old, new))
    with pytest.raises(Undescribable, match="changed after the import"):
        key("from_file", sprout())


def first():
    return [1]


def second():
    return [2]


def test_a_deferred_option_is_described_by_the_function_that_makes_it():
    assert describe_option("x", Deferred(first)).digest == describe_option("x", Deferred(first)).digest
    assert describe_option("x", Deferred(first)).digest != describe_option("x", Deferred(second)).digest


SETTINGS = Path("settings.txt")


def from_a_file():
    return SETTINGS.read_text()


def test_a_deferred_option_that_is_read_from_outside_is_described_by_its_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    digests = []
    for text in ("one", "two", "one"):
        SETTINGS.write_text(text)
        digests.append(describe_option("x", Deferred(from_a_file)).digest)
    assert digests[0] == digests[2] != digests[1]


def test_a_stage_that_reads_from_outside_has_a_key_only_when_it_says_what_it_depends_on():
    def fetch(plant: "Sprout") -> "Sprout":  # noqa: F821
        """Depend on the environment."""
        return plant.become(type(plant), methods={"forward": [os.environ["WEATHER"]]})

    declare(fetch)
    with pytest.raises(Undescribable, match=r"os\.environ, which asks the operating system"):
        key("fetch", sprout())
    fetch.__etgraph_fingerprint__ = "sunny"
    sunny = key("fetch", sprout())
    fetch.__etgraph_fingerprint__ = "windy"
    assert key("fetch", sprout()) != sunny


def test_how_a_kind_is_kept_enters():
    before = key("water", sprout())
    kept = registry.codecs["sprout"]
    registry.codecs["sprout"] = replace(kept, decode=lambda document, blobs: None)
    assert key("water", sprout()) != before


def test_the_first_reasons_are_told_and_the_others_counted():
    old = {f"option {i}": "1" for i in range(5)}
    new = {f"option {i}": "2" for i in range(5)}
    assert why_changed(old, new) == (
        "option 0 changed from 1 to 2; option 1 changed from 1 to 2; option 2 changed from 1 to 2; and 2 more"
    )
    assert why_changed(None, new) == "it has not run on this before"
    assert why_changed(new, new) == "its entry is gone from the cache"


def test_a_planned_step_knows_its_key_without_being_run():
    step = replace(planned("moody", "sprout", mood="bad"))
    assert step.options == {"mood": "bad"}
    assert key("moody", sprout(), mood="bad")
