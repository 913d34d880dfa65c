"""What the stages around edge share: partitioners per method, passes per method, edge programs for a recipe."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import torch
from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.backend.canonical_partitioners.config_partitioner import ConfigerationBasedPartitioner
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.graph_module import get_control_flow_submodules
from executorch.exir.pass_manager import PassManager
from executorch.exir.program._program import _gen_edge_manager_for_partitioners
from torch.export import ExportedProgram
from torch.fx.passes.infra.pass_manager import PassManager as GraphModulePassManager

from etgraph.errors import UsageError
from stages.support.corrections import corrected
from stages.support.partition_order import leaving_delegates

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
    return {name: [corrected(one) for one in chosen] for name, chosen in spread.items()}


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
    return _gen_edge_manager_for_partitioners(partitioners, dict(programs), config, dict(constant_methods) or None)


class _OnlyOutsideBranches(Partitioner):
    """A partitioner that keeps operators whole where it can delegate them, and not inside control-flow branches."""

    def __init__(self, partitioner: Partitioner) -> None:
        super().__init__()
        self._partitioner = partitioner

    def partition(self, exported_program: ExportedProgram) -> Any:
        return self._partitioner.partition(exported_program)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
        operators, check = self._partitioner.ops_to_not_decompose(ep)

        def keep(node: torch.fx.Node) -> bool:
            # Upstream stores the branches of cond, while_loop and map as submodules of the method's module.
            in_branch = any(node.graph is branch.graph for _, branch, _ in get_control_flow_submodules(ep.graph_module))
            return not in_branch and (check is None or check(node))

        return operators, keep

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        return self._partitioner.transform_for_pre_decomposition(exported_program)


def fit_to_branches(
    partitioners: dict[str, list[Partitioner]], programs: Mapping[str, ExportedProgram]
) -> dict[str, list[Partitioner]]:
    """Keep nothing whole inside the branches of `cond` and its like for partitioners that never look into them.

    `ConfigerationBasedPartitioner` (XNNPACK's) walks the top graph only. Left as it is, an operator that it keeps
    whole in a branch ends the combined call in "was not decomposed or delegated". Programs without branches, and
    all other partitioners, are untouched.
    """
    return {
        method: [
            _OnlyOutsideBranches(one)
            if isinstance(one, ConfigerationBasedPartitioner)
            and get_control_flow_submodules(programs[method].graph_module)
            else one
            for one in chosen
        ]
        for method, chosen in partitioners.items()
    }


def what_stays_whole(partitioners: Partitioners) -> Any:
    """Return, of each partitioner, what decides which operators it keeps whole; all of it where that is not known.

    A `ConfigerationBasedPartitioner` asks its configs, one per operator; its other settings, such as XNNPACK's
    `per_op_mode`, come in only when it partitions.
    """
    if isinstance(partitioners, Mapping):
        return {method: what_stays_whole(chosen) for method, chosen in partitioners.items()}
    return [
        (type(one), one.target_partitioner_configs)
        if isinstance(one, ConfigerationBasedPartitioner)
        and type(one).ops_to_not_decompose is ConfigerationBasedPartitioner.ops_to_not_decompose
        and type(one).transform_for_pre_decomposition is Partitioner.transform_for_pre_decomposition
        and not {"ops_to_not_decompose", "transform_for_pre_decomposition"}.intersection(vars(one))
        else one
        for one in partitioners
    ]


def delegate(manager: EdgeProgramManager, partitioners: Mapping[str, Sequence[Partitioner]]) -> EdgeProgramManager:
    """Run partitioners in rounds: the first of every method, then the second, as the combined call does."""
    partitioners = {method: leaving_delegates(chosen) for method, chosen in partitioners.items()}
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
