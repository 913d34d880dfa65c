"""The rules of the house: imports run one way, types hold, nothing heavy is imported to begin with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command, **env):
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **env}, timeout=300
    )


@pytest.mark.parametrize(
    "command",
    [("lint-imports",), ("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=lambda command: " ".join(command),
)
def test_the_checks_of_make_check_pass(command):
    tool = Path(sys.executable).parent / command[0]
    done = run(str(tool), *command[1:])
    assert done.returncode == 0, done.stdout + done.stderr


HEAVY = ("torch", "executorch", "torchao", "coremltools", "transformers")


@pytest.mark.parametrize(
    "statement",
    [
        "import etgraph",
        "import stages",
        "import etgraph, etgraph.planner, etgraph.recipes; etgraph.get_recipe('xnnpack_fp32')",
        "from etgraph.registry import registry; registry.load_plugins()",
        "import etgraph.cli",
    ],
)
def test_nothing_heavy_is_imported_to_begin_with(statement):
    seen = f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = run(sys.executable, "-c", seen)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_name_of_the_public_surface_is_there():
    import etgraph

    for name in etgraph.__all__:
        assert getattr(etgraph, name) is not None
    assert set(etgraph.__all__) == set(etgraph._HOME_OF)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        etgraph.nothing  # noqa: B018


def test_no_submodule_hides_a_call_of_the_same_name():
    import pkgutil

    import etgraph

    modules = {module.name for module in pkgutil.iter_modules(etgraph.__path__)}
    assert modules.isdisjoint(etgraph.__all__)
