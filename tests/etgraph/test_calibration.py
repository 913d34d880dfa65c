"""Calibration inputs: every form, read once, never while planning, described by content."""

import copy

import pytest

from etgraph.artifact import Inputs
from etgraph.calibration import Calibration, CalibrationFunctions
from etgraph.errors import Undescribable, UsageError


class Loader:
    """Iterable again and again, as a data loader is; says how often it was read."""

    def __init__(self, samples):
        self.samples = samples
        self.read = 0

    def __iter__(self):
        self.read += 1
        return iter(self.samples)


class Dataset:
    """Indexed, and never stops by itself."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return (index,)


def values(calibration, method="forward"):
    return [one.args for one in calibration.samples(method)]


def digest(given):
    calibration = Calibration(given, ["forward"])
    calibration.start()
    return calibration.__etgraph_fingerprint__()


@pytest.mark.parametrize(
    "given",
    [
        [(0,), (1,)],
        [Inputs(0), [1]],
        lambda: [(0,), (1,)],
        lambda: ((i,) for i in range(2)),
        iter([(0,), (1,)]),
        Loader([(0,), [1]]),
        Dataset(),
        {"forward": [(0,), (1,)]},
    ],
)
def test_every_form_gives_the_same_samples_and_the_same_digest(given):
    form = copy.copy(given) if not isinstance(given, dict) else given
    assert values(Calibration(form, ["forward"])) == [(0,), (1,)]
    if not hasattr(given, "__next__"):
        assert digest(given) == digest([(0,), (1,)])


def test_a_mapping_sample_is_keyword_inputs():
    (sample,) = Calibration([{"mask": 1}], ["forward"]).samples("forward")
    assert dict(sample.kwargs) == {"mask": 1}


def test_planning_reads_nothing():
    loader = Loader([(0,)])
    calibration = Calibration(loader, ["forward"])
    assert calibration.missing() == []
    with pytest.raises(Undescribable, match="not read while planning"):
        calibration.__etgraph_fingerprint__()
    assert loader.read == 0


def test_a_generator_is_read_once_and_serves_the_key_and_the_calibration():
    calibration = Calibration(((i,) for i in range(3)), ["forward"])
    calibration.start()
    calibration.__etgraph_fingerprint__()
    assert values(calibration) == [(0,), (1,), (2,)]
    key = calibration.__etgraph_fingerprint__()
    calibration.release()
    assert calibration.__etgraph_fingerprint__() == key
    with pytest.raises(UsageError, match="a generator that was read already"):
        values(calibration)


def test_a_loader_is_read_once_for_key_and_calibration_together():
    loader = Loader([(0,), (1,)])
    calibration = Calibration(loader, ["forward"])
    calibration.start()
    calibration.__etgraph_fingerprint__()
    assert values(calibration) == [(0,), (1,)]
    assert loader.read == 1


def test_a_changed_sample_changes_the_digest():
    assert digest([(0,), (1,)]) != digest([(0,), (2,)]) != digest([(0,)])


def test_keyword_inputs_and_the_order_of_samples_are_in_the_digest():
    """Observers that average see the last samples more."""
    assert digest([{"mask": 1}]) != digest([{"mask": 2}]) != digest([{"other": 2}])
    assert digest([Inputs(0, mask=1)]) != digest([(0,)])
    assert digest([(0,), (1,)]) != digest([(1,), (0,)])


def test_copies_of_options_do_not_copy_samples():
    calibration = Calibration([(0,)], ["forward"])
    assert copy.deepcopy(calibration) is calibration


def test_without_any_the_example_inputs_are_taken():
    calibration = Calibration(None, ["forward"], lambda: {"forward": (Inputs(7),)})
    assert not calibration.given
    assert values(calibration) == [(7,)]


def test_functions_of_a_recipe_give_way_to_what_the_run_was_given():
    functions = CalibrationFunctions((lambda: [(1,)], lambda: [(2,)]))
    assert values(Calibration(None, ["forward"]).unless_given(functions)) == [(1,), (2,)]
    given = Calibration([(0,)], ["forward"])
    assert given.unless_given(functions) is given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "are an empty list"),
        (3, "are a int"),
        ("abc", "are a str"),
        ({"forwrd": []}, "did you mean 'forward'"),
    ],
)
def test_what_is_no_calibration_input_is_refused_at_once(given, message):
    with pytest.raises(UsageError, match=message):
        Calibration(given, ["forward"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(0,), 3], "sample 1 .* is a int"),
        (lambda: 3, "returned a int"),
        (lambda: iter(()), "gave no sample"),
    ],
)
def test_what_gives_no_samples_is_told_when_it_is_read(given, message):
    with pytest.raises(UsageError, match=message):
        values(Calibration(given, ["forward"]))


def test_several_methods_need_a_mapping():
    with pytest.raises(UsageError, match="Say which are for which method"):
        Calibration([(0,)], ["encode", "decode"])
    partly = Calibration({"encode": [(0,)]}, ["encode", "decode"])
    assert partly.missing() == ["decode"]
