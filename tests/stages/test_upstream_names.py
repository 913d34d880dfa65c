"""Names of upstream's recipes, read without importing them, are the names that upstream has."""

from __future__ import annotations

import subprocess
import sys

from etgraph.registry import registry


def test_names_are_those_of_upstreams_enumerations() -> None:
    """Core ML and XNNPACK can be imported here to compare with; QNN may not be, as that starts a download."""
    from executorch.backends.apple.coreml.recipes import CoreMLRecipeType
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType

    found = registry.service("foreign_recipes")()
    for enumeration in (CoreMLRecipeType, XNNPackRecipeType):
        listed = [row["name"] for row in found if row["owner"] == enumeration.__name__]
        # XNNPACK writes long names over two lines; all of them count.
        assert sorted(listed) == sorted(member.value for member in enumeration)
    assert {row["backend"] for row in found} >= {"xnnpack", "apple/coreml", "qualcomm", "arm"}


def test_every_name_belongs_to_a_provider_that_is_known() -> None:
    from stages.support.upstream_types import PROVIDERS

    names = [row["name"] for row in registry.service("foreign_recipes")()]
    assert [name for name in names if name.partition("_")[0] not in PROVIDERS] == []


def test_nothing_of_executorch_is_imported() -> None:
    code = (
        "import sys; from etgraph.registry import registry; print(len(registry.service('foreign_recipes')()));"
        "print([n for n in ('executorch', 'torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, imported = done.stdout.splitlines()
    assert int(count) > 10
    assert imported == "[]"
