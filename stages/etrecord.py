"""ETRecords: the programs that a `.pte` was made from, with the maps by which profiles are traced back to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch
from etgraph.errors import ArtifactFileError, EtgraphError, UsageError


@etgraph.service("write_etrecord")
def write_etrecord(
    path: Path, *, program: Executorch, edge: Artifact, exported: Artifact | None, transformed: Artifact | None
) -> Path:
    """Write an ETRecord as `executorch.devtools` reads it.

    Args:
        edge: the program before anything was delegated; its nodes have the debug handles that the maps name.
        transformed: the same after edge passes, where the run had some.

    Raises:
        UsageError: the `.pte` came without debug maps.
        ArtifactFileError: a program cannot be serialized, or the system refused.
    """
    if not program.debug.get("debug_handle_map"):
        raise UsageError(
            "this .pte came without its debug maps, so that nothing can be traced back by an ETRecord of it",
            hint="Run from the program that it was made from.",
        )
    from etgraph.files import replace_file

    record = _record(program, edge, exported, transformed)
    try:
        replace_file(path, record.save)
    except EtgraphError:
        raise
    except Exception as error:
        said: Any = str(error).strip().splitlines()
        raise ArtifactFileError(
            f"the ETRecord {path} cannot be written: {type(error).__name__}: {said[0] if said else ''}",
            hint="The .pte itself is whole. executorch cannot serialize one of the programs that it was made from.",
        ) from error
    return path


def _record(program: Executorch, edge: Artifact, exported: Artifact | None, transformed: Artifact | None) -> Any:
    from executorch.devtools.etrecord import ETRecord

    graphs: dict[str, Any] = {}
    if transformed is not None:
        graphs.update({f"edge_after_transform/{method}": ep for method, ep in transformed.methods.items()})
    main = _main(exported.methods) if exported is not None else None
    if exported is not None:
        # A record has one exported program; those of the other methods go where further graphs go.
        graphs.update({f"exported/{method}": ep for method, ep in exported.methods.items() if ep is not main})
    programs = dict(edge.methods)
    return ETRecord(
        exported_program=main,
        export_graph_id=_graph_id(main, programs.values()) if main is not None else None,
        edge_dialect_program=programs if len(programs) > 1 else next(iter(programs.values())),
        graph_map=graphs or None,
        _debug_handle_map=program.debug["debug_handle_map"],
        _delegate_map=program.debug.get("delegate_map"),
        _instruction_id_to_num_outs_map=program.debug.get("instruction_id_to_num_outs_map"),
        _representative_inputs=_representative(edge, exported, program),
    )


def _main(methods: Any) -> Any:
    return methods.get("forward", next(iter(methods.values())))


def _graph_id(exported: Any, programs: Any) -> int:
    """Return the id by which nodes of the edge program name the graph of the exported one.

    It is that of an object in the process that made the program, which need not be this one.
    """
    from stages.support.interpreting import ancestors_of

    names = {node.name for node in exported.graph.nodes}
    for program in programs:
        for node in program.graph.nodes:
            chain = list(ancestors_of(node))
            if chain and node.op == "call_function" and chain[-1][0] in names:
                return chain[-1][1]
    return id(exported.graph)


def _representative(*artifacts: Artifact | None) -> list[Any] | None:
    from stages.support.executing import leaves_of

    for artifact in artifacts:
        samples: Any = artifact.example_inputs.get("forward") if artifact is not None else None
        if samples:
            return _bundled(leaves_of(samples[0]))
    return None


def _bundled(values: list[Any]) -> list[Any] | None:
    import torch

    plain = all(isinstance(value, torch.Tensor | bool | int | float) for value in values)
    return [value.detach() if isinstance(value, torch.Tensor) else value for value in values] if plain else None
