"""Samples to calibrate a quantizer with: per method, in any form that can be iterated, read no sooner than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from etgraph.artifact import Inputs
from etgraph.errors import Undescribable, UsageError
from etgraph.identity import describe
from etgraph.recipes import closest

__all__ = ["Calibration", "CalibrationFunctions"]

_FORMS = (
    "Give a list of samples, a function that returns an iterable of them, a generator, a DataLoader, or a mapping from "
    "method name to one of these. A sample is a tuple of positional inputs, etgraph.Inputs(*args, **kwargs), a mapping "
    "of keyword inputs, or a lone tensor."
)


class CalibrationFunctions(tuple[Callable[[], Iterable[Any]], ...]):
    """Functions of a recipe, each returning an iterable of samples, that are called one after the other.

    Upstream: `QuantizationRecipe.calibration_inputs_fn`; of several recipes, in their order.
    """


class Calibration:
    """The calibration inputs of one run.

    Planning reads none of them: a generator can be read only once, and a data loader may be slow. Once `start` was
    called they may be read. What a cache key needs is a digest of their content, for which they are read once and
    held until `release`.

    Args:
        given: what the caller gave, or None.
        methods: the methods of the program.
        example_inputs: returns the example inputs, which quantizers that look at no values can do with.

    Raises:
        UsageError: it is in a form that is not understood, or names a method that there is not.
    """

    def __init__(
        self,
        given: Any,
        methods: Iterable[str],
        example_inputs: Callable[[], Mapping[str, Sequence[Inputs]]] = dict,
    ) -> None:
        self._methods = tuple(methods)
        self._sources = _sources(given, self._methods)
        self._example_inputs = example_inputs
        self._given = given is not None
        self._started = [False]
        self._held: dict[str, list[Inputs]] = {}
        self._digests: dict[str, str] = {}
        self._used_up: set[str] = set()

    @property
    def given(self) -> bool:
        """Whether somebody gave samples for this purpose; otherwise these are the example inputs."""
        return self._given

    def missing(self) -> list[str]:
        """Return the methods without samples, as far as that can be told without reading any."""
        if self._given:
            return [method for method in self._methods if method not in self._sources]
        samples = self._example_inputs()
        return [method for method in self._methods if not samples.get(method)]

    def unless_given(self, functions: CalibrationFunctions) -> Calibration:
        """Return these where they were given, else what a recipe's functions give, for every method."""
        if self._given or not functions:
            return self
        other = Calibration(None, self._methods)
        other._given = True
        other._sources = dict.fromkeys(self._methods, functions)
        other._started, other._held = self._started, self._held
        return other

    def start(self) -> None:
        """Say that the run has begun, so that samples may be read."""
        self._started[0] = True

    def release(self) -> None:
        """Let go of samples that were read; their digests stay."""
        self._held.clear()

    def count(self, method: str) -> int | None:
        """Return how many samples there are, where that is known without reading them."""
        if method in self._held:
            return len(self._held[method])
        source = self._source(method)
        try:
            return len(source) if not isinstance(source, CalibrationFunctions) else None
        except TypeError:
            return None

    def samples(self, method: str) -> Iterator[Inputs]:
        """Read the samples of a method.

        Raises:
            UsageError: a sample is no sample; there is none; or they could be read only once, and were.
        """
        if method in self._held:
            yield from self._held[method]
            return
        if method in self._used_up:
            raise UsageError(
                f"the calibration inputs of method {method!r} are a generator that was read already",
                hint="Give a list, or a function that makes the generator.",
            )
        source = self._source(method)
        if isinstance(source, Iterator):
            self._used_up.add(method)
        position = -1
        for position, one in enumerate(_iterated(source, method)):
            yield _sample(one, method, position)
        if position < 0:
            raise UsageError(f"the calibration inputs of method {method!r} gave no sample", hint=_FORMS)

    def __etgraph_fingerprint__(self) -> Any:
        """Say what these are, for a cache key: a digest of all samples of each method.

        Raises:
            Undescribable: the run has not begun and something would have to be read.
        """
        return {method: self._digest(method) for method in self._methods}

    def __deepcopy__(self, memo: Any) -> Calibration:
        # Samples are read and not written to: a copy of each run's options need not hold them a second time.
        return self

    def _source(self, method: str) -> Any:
        if self._given:
            return self._sources[method]
        return list(self._example_inputs().get(method, ()))

    def _digest(self, method: str) -> str:
        if method not in self._digests:
            source = self._source(method)
            if not self._started[0] and not isinstance(source, list):
                raise Undescribable(
                    "calibration inputs are not read while planning",
                    path="calibration_inputs",
                    type_name=type(source).__qualname__,
                    hint="A list of samples can be described before the run.",
                )
            samples = list(self.samples(method))
            if not isinstance(source, list):
                self._held[method] = samples
            self._digests[method] = describe([(one.args, dict(one.kwargs)) for one in samples]).digest
        return self._digests[method]


def _sources(given: Any, methods: Sequence[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in methods:
                raise UsageError(
                    f"calibration inputs are given for {name!r}, and the program has "
                    f"{', '.join(methods)}{closest(str(name), methods)}",
                    hint="A mapping goes from method name to samples. A sample of keyword inputs goes into a list.",
                )
        return {name: _source(one, f"method {name!r}") for name, one in given.items()}
    if len(methods) > 1:
        raise UsageError(
            f"calibration inputs were given as a {type(given).__name__}, and the program has the methods "
            f"{', '.join(methods)}",
            hint=f"Say which are for which method: {{{methods[0]!r}: [...], {methods[1]!r}: [...]}}.",
        )
    return {methods[0]: _source(given, "the model")}


def _source(given: Any, whose: str) -> Any:
    if isinstance(given, Inputs | tuple) and not isinstance(given, CalibrationFunctions):
        return [given]
    if isinstance(given, list) and not given:
        raise UsageError(f"the calibration inputs of {whose} are an empty list", hint=_FORMS)
    numbered = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    iterable = callable(given) or isinstance(given, Iterable) or numbered
    if not iterable or isinstance(given, str | bytes) or hasattr(given, "dtype"):
        raise UsageError(f"the calibration inputs of {whose} are a {type(given).__name__}", hint=_FORMS)
    return given


def _iterated(source: Any, method: str) -> Iterator[Any]:
    if isinstance(source, CalibrationFunctions):
        for function in source:
            yield from _iterated(function, method)
        return
    if not isinstance(source, Iterable) and callable(source):
        source = source()
        if not isinstance(source, Iterable):
            raise UsageError(
                f"the function that gives the calibration inputs of method {method!r} returned a "
                f"{type(source).__name__}",
                hint=_FORMS,
            )
    if not isinstance(source, Iterable):
        # A map-style dataset: indexed, and not bound to stop by itself.
        yield from map(source.__getitem__, range(len(source)))
        return
    yield from source


def _sample(one: Any, method: str, position: int) -> Inputs:
    if isinstance(one, Inputs):
        return one
    if isinstance(one, tuple | list):
        return Inputs(*one)
    if isinstance(one, Mapping) and all(isinstance(name, str) for name in one):
        return Inputs(**one)
    if hasattr(one, "dtype") and hasattr(one, "shape"):
        return Inputs(one)
    raise UsageError(
        f"sample {position} of the calibration inputs of method {method!r} is a {type(one).__name__}", hint=_FORMS
    )
