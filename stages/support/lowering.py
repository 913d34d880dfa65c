"""What the stages around edge share: partitioners per method, passes per method, edge programs for a recipe."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.pass_manager import PassManager
from executorch.exir.program._program import _gen_edge_manager_for_partitioners
from torch.export import ExportedProgram
from torch.fx.passes.infra.pass_manager import PassManager as GraphModulePassManager

from etgraph.errors import UsageError

Partitioners = Sequence[Partitioner] | Mapping[str, Sequence[Partitioner]]


def partitioners_by_method(partitioners: Partitioners, methods: Iterable[str]) -> dict[str, list[Partitioner]]:
    """Spread partitioners over methods: a list is for every method, a mapping names them."""
    names = list(methods)
    if isinstance(partitioners, Mapping):
        unknown = sorted(set(partitioners) - set(names))
        if unknown:
            raise UsageError(
                f"partitioners are given for {', '.join(unknown)}, and the program has {', '.join(names)}",
                hint="Name methods of this program, or give one list for all of them.",
            )
        spread = {name: list(chosen) for name, chosen in partitioners.items()}
    else:
        spread = {name: list(partitioners) for name in names}
    for name, chosen in spread.items():
        for one in chosen:
            if not isinstance(one, Partitioner):
                raise UsageError(
                    f"method {name!r} is given {one!r} as a partitioner, which is a {type(one).__name__}",
                    hint="A partitioner is an instance of executorch.exir.backend.partitioner.Partitioner.",
                )
    return spread


def edge_for_partitioners(
    programs: Mapping[str, ExportedProgram],
    partitioners: dict[str, list[Partitioner]],
    constant_methods: Mapping[str, Any],
    config: EdgeCompileConfig,
) -> EdgeProgramManager:
    """Make the edge program that `to_edge_transform_and_lower` makes inside for these partitioners.

    It is upstream's own first half (executorch 1.5, `exir/program/_program.py`), so that stopping here and going on
    by `to_backend` gives what the combined call gives, whatever the partitioners keep whole.
    """
    return _gen_edge_manager_for_partitioners(
        partitioners, dict(programs), config, dict(constant_methods) or None
    )


def delegate(
    manager: EdgeProgramManager, partitioners: Mapping[str, Sequence[Partitioner]]
) -> EdgeProgramManager:
    """Run partitioners in rounds: the first of every method, then the second, as the combined call does."""
    for round_ in zip_longest(*partitioners.values()):
        chosen = {m: p for m, p in zip(partitioners, round_, strict=True) if p is not None}
        manager = manager.to_backend(chosen)
    return manager


PassFunction = Callable[[str, ExportedProgram], Any]


def resolve_passes(
    passes: Sequence[Any] | Mapping[str, Sequence[Any]] | PassManager | GraphModulePassManager,
    programs: Mapping[str, ExportedProgram],
) -> Any:
    """Return what `EdgeProgramManager.transform` takes, from any form in which edge passes are given.

    A list holds passes, or functions `(method, program) -> list of passes or a PassManager` as in upstream's
    `LoweringRecipe.edge_transform_passes`; a mapping names methods; a PassManager is for all methods.
    Returns None when there is nothing to do.
    """
    if isinstance(passes, (PassManager, GraphModulePassManager)):
        return passes
    if isinstance(passes, Mapping):
        return {method: list(chosen) for method, chosen in passes.items() if chosen} or None
    resolved: dict[str, list[Any]] = {method: [] for method in programs}
    for given in passes:
        if not is_pass_function(given):
            for chosen in resolved.values():
                chosen.append(given)
            continue
        for method, program in programs.items():
            answer = given(method, program)
            if isinstance(answer, (PassManager, GraphModulePassManager)):
                if len(passes) > 1 or len(programs) > 1:
                    raise UsageError(
                        f"the edge pass function {given!r} returned a PassManager, which is for all methods at once, "
                        f"while {len(passes)} functions and {len(programs)} methods were given",
                        hint="Return a list of passes, or give the PassManager itself.",
                    )
                return answer
            resolved[method].extend(answer or ())
    return {method: chosen for method, chosen in resolved.items() if chosen} or None


def is_pass_function(given: Any) -> bool:
    """Whether it makes passes for a method, rather than being a pass itself."""
    import inspect

    from executorch.exir.pass_base import ExportedProgramPassBase
    from torch.fx.passes.infra.pass_base import PassBase

    if isinstance(given, (PassBase, ExportedProgramPassBase)):
        return False
    try:
        return len(inspect.signature(given).parameters) == 2
    except (TypeError, ValueError):
        return False


def own_config(config: EdgeCompileConfig | None) -> EdgeCompileConfig:
    """Return a copy of a config; upstream writes into the one that it is given."""
    return copy.deepcopy(config) if config is not None else EdgeCompileConfig()
