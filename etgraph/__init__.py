"""etgraph: a stage-graph orchestration engine for PyTorch ExecuTorch.

    import etgraph
    result = etgraph.run(model, example_inputs, recipe="xnnpack_fp32")
    result.save("model.pte")

Importing this package imports neither torch nor executorch; names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any

#: Before any other module of this package is read: one that is written later is not what runs (`etgraph.owncode`).
_imported_at: float = globals().get("_imported_at") or time.time()

if TYPE_CHECKING:
    from etgraph.api import detect, fingerprint, get_recipe, load, plan, run
    from etgraph.artifact import (
        Artifact,
        Edge,
        EdgeConfig,
        Executorch,
        Exported,
        Inputs,
        Kind,
        Lowered,
        Module,
        Prepared,
        Quantized,
        Source,
    )
    from etgraph.checking import check
    from etgraph.comparison import compare
    from etgraph.declaration import Situation, Stage, at, progress, warn
    from etgraph.delegation import BackendCheck, DelegationCheck, MethodCheck, Operator, Untaken
    from etgraph.difference import Difference, ProgramChange
    from etgraph.differing import diff
    from etgraph.errors import (
        ArtifactFileError,
        BackendUnavailableError,
        CacheMismatchError,
        EtgraphError,
        EtgraphWarning,
        PlanError,
        StageDeclarationError,
        StageError,
        UntrustedFileError,
        UsageError,
    )
    from etgraph.many import Results
    from etgraph.numerics import Comparison
    from etgraph.planned import Plan
    from etgraph.profiles import Profile
    from etgraph.profiling import profile
    from etgraph.recipes import Deferred, Recipe, Through
    from etgraph.registry import codec, recipe, recipe_adapter, recognizer, service, stage, target
    from etgraph.result import Result, Verification
    from etgraph.runner import Event, Step
    from etgraph.store import Cache
    from etgraph.targets import Needs, Target

_HOMES = {
    "api": ("detect", "fingerprint", "get_recipe", "load", "plan", "run"),
    "artifact": (
        "Artifact", "Edge", "EdgeConfig", "Executorch", "Exported", "Inputs", "Kind", "Lowered", "Module",
        "Prepared", "Quantized", "Source",
    ),
    "checking": ("check",),
    "comparison": ("compare",),
    "declaration": ("Situation", "Stage", "at", "progress", "warn"),
    "delegation": ("BackendCheck", "DelegationCheck", "MethodCheck", "Operator", "Untaken"),
    "difference": ("Difference", "ProgramChange"),
    "differing": ("diff",),
    "errors": (
        "ArtifactFileError", "BackendUnavailableError", "CacheMismatchError", "EtgraphError", "EtgraphWarning",
        "PlanError", "StageDeclarationError", "StageError", "UntrustedFileError", "UsageError",
    ),
    "many": ("Results",),
    "numerics": ("Comparison",),
    "planned": ("Plan",),
    "profiles": ("Profile",),
    "profiling": ("profile",),
    "recipes": ("Deferred", "Recipe", "Through"),
    "registry": ("codec", "recipe", "recipe_adapter", "recognizer", "service", "stage", "target"),
    "result": ("Result", "Verification"),
    "runner": ("Event", "Step"),
    "store": ("Cache",),
    "targets": ("Needs", "Target"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Artifact", "ArtifactFileError", "BackendCheck", "BackendUnavailableError", "Cache", "CacheMismatchError",
    "Comparison", "Deferred", "DelegationCheck", "Difference", "Edge", "EdgeConfig", "EtgraphError",
    "EtgraphWarning", "Event", "Executorch", "Exported", "Inputs", "Kind", "Lowered", "MethodCheck", "Module",
    "Needs", "Operator", "Plan", "PlanError", "Prepared", "Profile", "ProgramChange", "Quantized", "Recipe", "Result",
    "Results", "Situation", "Source", "Stage", "StageDeclarationError", "StageError", "Step", "Target", "Through",
    "Untaken", "UntrustedFileError", "UsageError", "Verification", "at", "check", "codec", "compare", "detect",
    "diff", "fingerprint", "get_recipe", "load", "plan", "profile", "progress", "recipe", "recipe_adapter",
    "recognizer", "run", "service", "stage", "target", "warn",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'etgraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"etgraph.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
