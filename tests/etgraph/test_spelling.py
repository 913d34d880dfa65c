"""Options of recipes and targets as text."""

import pytest

import etgraph
from etgraph.errors import UsageError
from etgraph.lookup import get_target, recipe_of
from etgraph.spelling import read_options, shown_with


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("plain", "plain", {}),
        ("r(group_size=64)", "r", {"group_size": 64}),
        ("r( a = None, b='x', c=[1, -2], d=True )", "r", {"a": None, "b": "x", "c": [1, -2], "d": True}),
        ("linux-x86_64-xnnpack-8da4w(group_size=64)", "linux-x86_64-xnnpack-8da4w", {"group_size": 64}),
        ("r()", "r", {}),
    ],
)
def test_a_name_and_its_options_are_read_and_written(text, name, options):
    assert read_options(text) == (name, options)
    assert read_options(shown_with(name, options)) == (name, options)


@pytest.mark.parametrize("text", ["r(64)", "r(a=1", "r(a=1)b", "(a=1)", "r(**{'a': 1})", "r(a=1)(b=2)", "r(a=1, a=2)"])
def test_what_is_no_name_with_options_is_refused(text):
    with pytest.raises(UsageError, match=r"is not a name with options\n.*option=value"):
        read_options(text)


def test_a_value_that_is_no_literal_is_refused_with_how_to_write_it():
    with pytest.raises(UsageError, match=r"option a of r is given as exit\(1\), which is no literal(?s:.*)quotation"):
        read_options("r(a=exit(1))")
    with pytest.raises(UsageError, match=r"a='word'"):
        read_options("r(a=word)")


def test_an_option_that_is_written_is_an_option_that_is_given():
    written = etgraph.get_recipe("xnnpack_8da4w(group_size=64)")
    given = etgraph.get_recipe("xnnpack_8da4w", group_size=64)
    assert written == given
    assert written.name == "xnnpack_8da4w(group_size=64)"
    assert written.stages["quantize_weights"]["config"]["group_size"] == 64
    assert etgraph.get_recipe("xnnpack_8da4w").name == "xnnpack_8da4w"


def test_an_option_is_given_once_and_known_by_name():
    with pytest.raises(UsageError, match="group_size of xnnpack_8da4w is given twice"):
        etgraph.get_recipe("xnnpack_8da4w(group_size=64)", group_size=32)
    with pytest.raises(UsageError, match="no option 'group_sise'; did you mean 'group_size'"):
        etgraph.get_recipe("xnnpack_8da4w(group_sise=64)")
    with pytest.raises(UsageError, match="target linux-x86_64-xnnpack-8da4w has no option 'groups'"):
        get_target("linux-x86_64-xnnpack-8da4w(groups=64)")
    with pytest.raises(UsageError, match="no target 'linux-x86_64-xnnpack-8da5w'; did you mean"):
        get_target("linux-x86_64-xnnpack-8da5w(group_size=64)")


def test_a_target_takes_the_options_of_its_recipe():
    target = get_target("linux-x86_64-xnnpack-8da4w(group_size=64)")
    recipe = recipe_of(target)
    assert target.name == recipe.name == "linux-x86_64-xnnpack-8da4w(group_size=64)"
    assert target.precision == "8da4w"
    assert recipe.stages["quantize_weights"]["config"]["group_size"] == 64
