"""Upstream's `RecipeType`s: by name, with their keyword arguments checked, and never with a download."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from etgraph.errors import UsageError
from etgraph.recipes import closest
from etgraph.registry import registry

#: Where upstream's providers are, by how the values of their RecipeTypes begin (executorch 1.5). The registry of
#: upstream knows a provider only after its module was imported.
PROVIDERS = {
    "xnnpack": "executorch.backends.xnnpack.recipes",
    "coreml": "executorch.backends.apple.coreml.recipes",
    "coreai": "executorch.backends.apple.coreai.recipes",
    "qnn": "executorch.backends.qualcomm.recipes",
    "arm": "executorch.backends.arm.recipes",
}
#: Keyword arguments of recipes whose provider has no way to ask for them (executorch 1.5).
_OPTIONS = {
    "xnnpack_torchao_int8da_int4w_per_tensor": ("group_size",),
    "xnnpack": (),
    "coreai": (),
    "arm_ethos": ("macs", "system_config", "memory_mode", "extra_flags", "config_ini"),
    "arm": (),
}
#: What to install for a module that a provider cannot do without.
_PACKAGES = {
    "tosa_serializer": "tosa-tools==2026.5.0 ethos-u-vela==5.1.0 ml_dtypes==0.5.1",
    "coremltools": "coremltools>=9,<10",
}
#: Modules that upstream's recipes import no sooner than in the middle of a run.
_LATE_IMPORTS = {"coreai": "coreai_torch", "coreai_fp16": "coreai_opt"}
_IGNORED = "unexpected parameters"


def type_named(name: str) -> Any:
    """Return the `RecipeType` of a name; None when it does not begin as one of upstream's does.

    Raises:
        UsageError: the provider has no such recipe, or lacks something to be imported.
    """
    module = PROVIDERS.get(name.partition("_")[0])
    if module is None:
        return None
    check_sdk(name)
    try:
        provider = importlib.import_module(module)
    except ImportError as error:
        raise _missing(f"recipe {name!r}", error) from error
    from executorch.export.recipe import RecipeType

    known = {
        member.value: member
        for value in vars(provider).values()
        if isinstance(value, type) and issubclass(value, RecipeType) and value is not RecipeType
        for member in value
    }
    if name not in known:
        raise UsageError(
            f"there is no recipe {name!r}{closest(name, [*known, *registry.recipes])}",
            hint=f"Of this backend there are: {', '.join(sorted(known))}.",
        )
    return known[name]


def made(recipe_type: Any, options: Mapping[str, Any]) -> Any:
    """Return the `ExportRecipe` of a `RecipeType`.

    Raises:
        UsageError: an option is unknown, upstream refuses a value, or an SDK is missing.
    """
    from executorch.export import ExportRecipe

    name = recipe_type.value
    check_sdk(name)
    _check_options(recipe_type, options)
    with _ignored() as complaints:
        try:
            recipe = ExportRecipe.get_recipe(recipe_type, **options)
        except ImportError as error:
            raise _missing(f"recipe {name}", error) from error
        except Exception as error:
            raise UsageError(f"recipe {name} cannot be made: {error}") from error
    if complaints:
        raise UsageError(f"recipe {name} would ignore what it was given: {complaints[0]}")
    _check_deployment_target(name, recipe, options)
    return recipe


def check_sdk(name: str) -> None:
    """Refuse a recipe whose SDK is not there, before anything of the backend runs: QNN's recipes fetch theirs.

    Raises:
        UsageError: says what to install.
    """
    _check_modules(name)
    if not name.startswith("qnn"):
        return
    root = os.environ.get("QNN_SDK_ROOT", "")
    if root and Path(root).is_dir():
        return
    given = f"QNN_SDK_ROOT is {root!r}, which is no directory" if root else "QNN_SDK_ROOT is not set"
    raise UsageError(
        f"recipe {name!r} needs Qualcomm's AI Engine Direct SDK, and {given}",
        hint="Install the SDK and set QNN_SDK_ROOT to it; etgraph downloads none.",
    )


def _check_modules(name: str) -> None:
    """Refuse a recipe whose stages would look for a Python package only when they run, and not find it."""
    for prefix, module in _LATE_IMPORTS.items():
        if name.startswith(prefix) and importlib.util.find_spec(module) is None:
            raise UsageError(
                f"recipe {name!r} needs the Python package {module}, which is not installed",
                hint="It comes with Apple's Core AI tools; `etgraph doctor` shows what there is.",
            )


def _missing(what: str, error: ImportError) -> UsageError:
    package = _PACKAGES.get((error.name or "").partition(".")[0])
    install = f"pip install {package}" if package else "Install what the message names"
    return UsageError(f"{what} cannot be used here: {error}", hint=f"{install}; `etgraph doctor` shows what there is.")


def _check_options(recipe_type: Any, options: Mapping[str, Any]) -> None:
    from executorch.export.recipe_registry import recipe_registry

    name = recipe_type.value
    provider = recipe_registry._providers.get(recipe_type.get_backend_name())
    known: Any = None
    if hasattr(provider, "_get_expected_keys"):
        known = provider._get_expected_keys(recipe_type)
    else:
        matching = [prefix for prefix in _OPTIONS if name.startswith(prefix)]
        known = _OPTIONS[max(matching, key=len)] if matching else None
    for option in options:
        if known is not None and option not in known:
            raise UsageError(
                f"recipe {name} has no option {option!r}{closest(option, known)}",
                hint=f"Its options: {', '.join(sorted(known)) or 'none'}.",
            )


@contextmanager
def _ignored() -> Iterator[list[str]]:
    """Collect what upstream logs of parameters that it ignores, from providers of others too."""
    complaints: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if _IGNORED in record.getMessage():
                complaints.append(record.getMessage())

    listener = Listener(logging.WARNING)
    disabled = logging.root.manager.disable
    logging.getLogger().addHandler(listener)
    # Also where the caller has switched warnings off: what upstream ignores would then be ignored without a word.
    logging.disable(logging.NOTSET)
    try:
        yield complaints
    finally:
        logging.disable(disabled)
        logging.getLogger().removeHandler(listener)


def _check_deployment_target(name: str, recipe: Any, options: Mapping[str, Any]) -> None:
    """Refuse a Core ML deployment target that upstream replaces by its own minimum without a word."""
    wanted = options.get("minimum_deployment_target")
    if wanted is None or not name.startswith("coreml"):
        return
    from executorch.backends.apple.coreml.compiler import CoreMLBackend

    spec = CoreMLBackend.generate_minimum_deployment_target_compile_spec(wanted)
    for partitioner in recipe.lowering_recipe.partitioners:
        for used in partitioner.delegation_spec.compile_specs:
            if used.key == spec.key and used.value != spec.value:
                raise UsageError(
                    f"recipe {name} was given minimum_deployment_target={wanted}, and upstream sets its own minimum in "
                    f"its place ({used.value!r})",
                    hint="Leave minimum_deployment_target out, or make the ExportRecipe yourself.",
                )
