"""Functions and classes are described by their code and everything that it reaches."""

import textwrap
import types
from typing import Any

import pytest

from etgraph.identity import Undescribable, code_of, describe

BASE = """
import functools
import math

LIMIT = 3
TABLE = {"a": 1}

def helper(x, by=2):
    return x + by

def deeper(x):
    return helper(x) * LIMIT

def make(k):
    def inner(x):
        return x * k
    return inner

scale = make(10)

class Tool:
    step = 1
    def apply(self, x):
        return x + self.step

class Better(Tool):
    pass

def f(x, *, key="k"):
    class Inner:
        k = 1
    for i in range(3):
        if x in {1, 2, 3}:
            x = deeper(x)
        try:
            x = scale(x)
        except ValueError:
            x = -0.0
    def local(z):
        return Better().apply(z) + TABLE["a"] + math.pi
    return local(x), [y + 1 for y in key]
"""


def load(source: str, name: str = "f", file: str = "<test>") -> Any:
    """Run a source text as a module of its own and return one of its globals."""
    module = types.ModuleType("written_by_the_test")
    exec(compile(textwrap.dedent(source), file, "exec"), vars(module))
    return vars(module)[name]


def edited(old: str, new: str) -> str:
    assert BASE.count(old) == 1
    return BASE.replace(old, new)


DIFFERENT = {
    "a line of the function": ("x = deeper(x)", "x = deeper(x) + 1"),
    "a line of a helper": ("return x + by", "return x - by"),
    "a line two calls away": ("helper(x) * LIMIT", "helper(x) + LIMIT"),
    "a global constant": ("LIMIT = 3", "LIMIT = 4"),
    "the type of a global constant": ("LIMIT = 3", "LIMIT = 3.0"),
    "inside a global dict": ('{"a": 1}', '{"a": 2}'),
    "a default argument": ("by=2", "by=3"),
    "a keyword default": ('key="k"', 'key="j"'),
    "a closure value": ("make(10)", "make(11)"),
    "code behind a closure": ("return x * k", "return x ** k"),
    "a method of a class that is used": ("x + self.step", "x - self.step"),
    "an attribute of a base class": ("step = 1", "step = 2"),
    "a base class": ("class Better(Tool)", "class Better(Tool, dict)"),
    "a constant in a set": ("{1, 2, 3}", "{1, 2, 4}"),
    "the sign of zero": ("x = -0.0", "x = 0.0"),
    "what is caught": ("except ValueError", "except TypeError"),
    "a name of a library": ("math.pi", "math.e"),
    "a comprehension": ("y + 1 for y", "y + 2 for y"),
    "a nested function": ("return Better().apply(z)", "return 1 + Better().apply(z)"),
    "a comparison": ("x in {", "x not in {"),
    "a loop bound": ("range(3)", "range(4)"),
    "a method override": (
        "class Better(Tool):\n    pass",
        "class Better(Tool):\n    def apply(self, x): return x",
    ),
}

SAME = {
    "a comment": ("x = deeper(x)", "x = deeper(x)  # deeper"),
    "a blank line": ("LIMIT = 3", "\n\n\nLIMIT = 3"),
    "a docstring": ("    return x + by", '    "Add."\n    return x + by'),
    "a docstring of the function": ("    class Inner", '    """Say what."""\n    class Inner'),
    "a docstring of a class": ("    step = 1", '    """A tool."""\n    step = 1'),
    "a docstring of a nested function": (
        "        return Better()",
        '        "Nested."\n        return Better()',
    ),
    "a docstring of a class in the function": ("        k = 1", '        "Nested."\n        k = 1'),
    "layout": ("helper(x) * LIMIT", "(\n        helper( x )\n        *\n        LIMIT\n    )"),
    "quotes": ('key="k"', "key='k'"),
    "the order of constants in a set": ("{1, 2, 3}", "{3, 2, 1}"),
    "a function that is not reached": ("LIMIT = 3", "LIMIT = 3\ndef unused(): return 1"),
    "an import that is not used": ("import math", "import math\nimport json"),
    "a pass": ("            x = -0.0", "            pass\n            x = -0.0"),
}


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_an_edit_that_can_change_a_result_changes_the_digest(change: tuple[str, str]) -> None:
    assert code_of(load(edited(*change))).digest != code_of(load(BASE)).digest


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_an_edit_without_a_meaning_does_not(change: tuple[str, str]) -> None:
    assert code_of(load(edited(*change))).parts() == code_of(load(BASE)).parts()


def test_file_and_module_names_do_not_enter() -> None:
    assert code_of(load(BASE, file="/somewhere/else.py")) == code_of(load(BASE))


def test_a_function_that_has_run_hot_is_the_same() -> None:
    """The interpreter rewrites hot code in place; the description is of what was compiled."""
    function = load("def f(x):\n    total = 0\n    for i in range(x):\n        total += i * i\n    return total")
    before = code_of(function)
    for _ in range(200):
        function(100)
    assert code_of(function) == before


def test_functions_that_call_each_other_are_described() -> None:
    source = "def f(x): return g(x - 1) if x else 0\ndef g(x): return f(x - 1) if x else {}"
    assert code_of(load(source.format(1))).digest != code_of(load(source.format(2))).digest


def test_which_part_changed_is_named() -> None:
    from etgraph.identity import differences

    old, new = code_of(load(BASE)), code_of(load(edited("return x + by", "return x - by")))
    assert [str(c) for c in differences(old.parts("passes[0]"), new.parts("passes[0]"))] == [
        "passes[0](global deeper)(global helper) has other code"
    ]


CALLABLES = """
import functools
def base(x, k=1): return x + k
class C:
    def __init__(self, k): self.k = k
    def m(self, x): return x + self.k
    @property
    def p(self): return self.k + 1
    @staticmethod
    def s(x): return x
    @functools.cached_property
    def slow(self): return self.k * 2
    @functools.lru_cache
    def cached(x): return x + 5
def deco(fn):
    @functools.wraps(fn)
    def wrapper(*a): return fn(*a)
    return wrapper
@deco
def decorated(x): return x + 100
f = EXPRESSION
"""

CALLABLE_PAIRS = [
    ("functools.partial(base, k=1)", "functools.partial(base, k=2)"),
    ("functools.partial(base, 1)", "functools.partial(base, 2)"),
    ("C(1).m", "C(2).m"),
    ("C(1).m", "C(1).s"),
    ("C(1)", "C(2)"),
    ("lambda x: x", "lambda x: x + 1"),
    ("C.cached", "C.s"),
    ("decorated", "base"),
    ("[].append", "[1].append"),
    ("len", "max"),
    ("str.upper", "str.lower"),
    ("C", "C(1)"),
]


@pytest.mark.parametrize(("one", "other"), CALLABLE_PAIRS)
def test_callables_of_every_sort_are_told_apart(one: str, other: str) -> None:
    first, again, second = (load(CALLABLES.replace("EXPRESSION", e)) for e in (one, one, other))
    assert describe(first).digest == describe(again).digest
    assert describe(first).digest != describe(second).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.k + 1", "self.k + 3"),
        ("self.k * 2", "self.k * 3"),
        ("x + 5", "x + 6"),
        ("x + self.k", "x * self.k"),
    ],
)
def test_every_member_of_a_class_counts(old: str, new: str) -> None:
    source = CALLABLES.replace("EXPRESSION", "C(1)")
    assert describe(load(source)).digest != describe(load(source.replace(old, new))).digest


def test_the_code_below_a_decorator_counts() -> None:
    source = CALLABLES.replace("EXPRESSION", "decorated")
    assert code_of(load(source)).digest != code_of(load(source.replace("x + 100", "x + 101"))).digest


def test_what_a_cached_property_holds_does_not_enter() -> None:
    tool = load(CALLABLES.replace("EXPRESSION", "C(1)"))
    before = describe(tool)
    assert tool.slow == 2
    assert describe(tool) == before


REFUSED = {
    "eval": ("def f(x): return eval(x)", "runs code that is made at run time"),
    "exec": ("def f(x): exec(x)", "runs code that is made at run time"),
    "globals": ("def f(x): return globals()[x]", "reaches any global"),
    "open": ("def f(x): return open('w.txt').read()", "reads or writes files"),
    "environ": ("import os\ndef f(x): return os.environ['A']", "asks the operating system"),
    "from environ": ("from os import environ\ndef f(x): return environ['A']", "environment of this process"),
    "clock": ("import time\ndef f(x): return time.time()", "reads the clock"),
    "from clock": ("from time import time\ndef f(x): return time()", "reads the clock"),
    "now": ("from datetime import datetime\ndef f(x): return datetime.now()", "reads the clock"),
    "random": ("import random\ndef f(x): return random.random()", "random numbers"),
    "from random": ("from random import random\ndef f(x): return random()", "random numbers"),
    "numpy random": ("import numpy as np\ndef f(x): return np.random.rand()", "random numbers"),
    "importlib": ("import importlib\ndef f(x): return importlib.import_module(x)", "imports by a name"),
    "import inside": ("def f(x):\n    import random\n    return random.random()", "random numbers"),
    "dynamic getattr": ("import math\ndef f(x): return getattr(math, x)(1)", "name is made at run time"),
    "getattr of a sum": ("def f(x, y): return getattr(x + 'a', y + 'b')", "name is made at run time"),
    "getattr passed on": ("def f(x): return map(getattr, x)", "name is made at run time"),
    "in a helper": ("def h(x): return eval(x)\ndef f(x): return h(x)", "f(global h)"),
    "__file__": ("__file__ = 'x'\ndef f(x): return __file__", "where the file is"),
    "generator in a global": ("it = (i for i in 'ab')\ndef f(x): return next(it)", "only once"),
}


@pytest.mark.parametrize(("source", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_code_that_cannot_be_followed_is_refused(source: str, message: str) -> None:
    """The message says what stopped it and where, and the hint how to declare it."""
    with pytest.raises(Undescribable) as caught:
        code_of(load(source))
    assert message in str(caught.value)
    assert caught.value.hint


FOLLOWED = {
    "constant getattr": "def f(x): return getattr(x, 'y', None)",
    "constant getattr of a call": "def f(x): return getattr(len(x), 'real')",
    "library import inside": "def f(x):\n    import json.decoder\n    from math import pi\n    return pi",
    "time for timing": "import time\ndef f(x): return time.perf_counter()",
    "paths as text": "import os\ndef f(x): return os.path.join(x, 'a')",
    "own attribute by name": "class C:\n    a1 = 1\n    def m(self, i): return getattr(self, i)\nf = C().m",
    "a logger": "import logging\nlog = logging.getLogger('a')\ndef f(x): log.info(x); print(x)",
    "a pattern": "import re\nP = re.compile('a+', re.I)\ndef f(x): return P.match(x)",
    "a lock": "import threading\nL = threading.Lock()\ndef f(x):\n    with L: return x",
    "decimal": "import decimal\nD = decimal.Decimal('1.5')\ndef f(x): return x + D",
}


@pytest.mark.parametrize("source", FOLLOWED.values(), ids=FOLLOWED.keys())
def test_code_that_can_be_followed_is(source: str) -> None:
    assert code_of(load(source)) == code_of(load(source))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x): return getattr(x, 'y')", "def f(x): return getattr(x, 'z')"),
        ("def f(x):\n    from math import pi", "def f(x):\n    from math import e"),
        (
            "import re\nP = re.compile('a+')\ndef f(x): return P",
            "import re\nP = re.compile('b+')\ndef f(x): return P",
        ),
        ("from decimal import *\nf = Decimal('1').sqrt", "from decimal import *\nf = Decimal('2').sqrt"),
        ("f = (lambda: (lambda x: x + 1))()", "f = (lambda: (lambda x: x + 2))()"),
        ("def f(x, y): return x", "def f(y, x): return x"),
        (
            "def f(x, y):\n  try:\n    x()\n    y()\n  except KeyError: return 1",
            "def f(x, y):\n  x()\n  try:\n    y()\n  except KeyError: return 1",
        ),
        ("def f(x): return x", "def f(*x): return x"),
        ("def f(x, y): return x", "def f(x, *, y): return x"),
        ("def f(x: int): return x", "def f(x: float): return x"),
        ("def f(x):\n  try: return x()\n  finally: x(1)", "def f(x):\n  try: x()\n  finally: return x(1)"),
    ],
)
def test_small_differences_in_code_are_seen(one: str, other: str) -> None:
    assert code_of(load(one)).digest != code_of(load(other)).digest


def test_a_function_can_be_declared_by_a_version() -> None:
    """A function with a version of its own is described by it; its code is not followed."""
    first, second = (load("def f(x): return eval(x)") for _ in range(2))
    first.__etgraph_fingerprint__ = "v1"
    second.__etgraph_fingerprint__ = "v2"
    assert code_of(first).digest != code_of(second).digest
    second.__etgraph_fingerprint__ = "v1"
    assert code_of(first) == code_of(second)


def test_library_code_enters_by_version() -> None:
    """A library's function is its name and the version of its distribution."""
    import json

    assert code_of(json.dumps).own.startswith("json.dumps @ python 3.")
    assert code_of(pytest.approx).own.endswith(f"@ pytest {pytest.__version__}")


def test_a_library_function_with_a_closure_counts_what_it_holds() -> None:
    """A library's filter made for one name is not the filter made for another."""
    import operator

    assert describe(operator.attrgetter("a")).digest != describe(operator.attrgetter("b")).digest


def test_a_user_function_patched_into_a_library_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from fractions import Fraction

    before = describe(Fraction).digest
    monkeypatch.setattr(Fraction, "limit_denominator", lambda self, n: self)
    assert describe(Fraction).digest != before
