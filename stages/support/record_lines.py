"""Which operators and lines of a model the debug handles of a `.pte` stand for, read from an ETRecord.

The record's programs are read as the JSON that they are: nothing in them is loaded or executed.
"""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etgraph.errors import ArtifactFileError
from stages.support.source_lines import line_of

_EDGE = "edge_dialect_exported_program"
_NO_PROGRAM = ("_state_dict", "_constants", "_example_inputs")


@dataclass
class Lines:
    """What is known of the instructions of methods.

    Args:
        handles: method to instruction to debug handles.
        nodes: method to debug handle to `(operator, source line)`.
    """

    handles: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    nodes: dict[str, dict[int, list[tuple[str, str]]]] = field(default_factory=dict)

    def of(self, method: str, instruction: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the operators that an instruction stands for, and their lines."""
        known = self.nodes.get(method, {})
        found = [one for handle in self.handles.get(method, {}).get(instruction, ()) for one in known.get(handle, ())]
        operators = tuple(dict.fromkeys(operator for operator, _ in found))
        return operators, tuple(dict.fromkeys(line for _, line in found if line))


def read_lines(path: Path, methods: list[str]) -> Lines:
    """Read an ETRecord.

    Raises:
        ArtifactFileError: it is none, or damaged, or has no map of debug handles.
    """
    lines = Lines()
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "ETRECORD_V0" not in names:
                raise ArtifactFileError(
                    f"{path} is an archive, and no ETRecord", hint="`etgraph run ... --etrecord FILE` writes one."
                )
            if "debug_handle_map" not in names:
                raise ArtifactFileError(f"{path} has no map of debug handles", hint="Write it after to_executorch.")
            for method, handles in json.loads(archive.read("debug_handle_map")).items():
                lines.handles[method] = {int(instruction): _tuple(one) for instruction, one in handles.items()}
            for name in names:
                if name.startswith(_EDGE) and not name.endswith(_NO_PROGRAM):
                    method = name.removeprefix(_EDGE).lstrip("/") or (methods[0] if len(methods) == 1 else "forward")
                    lines.nodes[method] = _nodes(json.loads(archive.read(name)))
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactFileError(
            f"{path} is no ETRecord that can be read: {type(error).__name__}: {error}", hint="Make it again."
        ) from error
    return lines


def lines_of_programs(programs: Mapping[str, Any], handles: Mapping[str, Any]) -> Lines:
    """Take the same from programs in memory.

    Args:
        programs: method to its edge program.
        handles: method to the map of its debug handles.
    """
    from stages.support.graph_text import target_name
    from stages.support.programs import all_nodes

    lines = Lines()
    for method, program in programs.items():
        known = lines.nodes[method] = {}
        for node in all_nodes(program):
            handle = node.meta.get("debug_handle")
            if handle and node.op == "call_function" and hasattr(node.target, "_schema"):
                line = line_of(node.meta.get("stack_trace") or "")
                known.setdefault(handle, []).append((target_name(node.target), line))
    for method, found in handles.items():
        lines.handles[method] = {int(instruction): _tuple(one) for instruction, one in found.items()}
    return lines


def _tuple(handles: Any) -> tuple[int, ...]:
    return (handles,) if isinstance(handles, int) else tuple(handles)


def _nodes(program: Any) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for node in _all_nodes(program["graph_module"]["graph"]):
        metadata = node.get("metadata", {})
        handle = metadata.get("debug_handle", "")
        if handle.isdigit() and int(handle):
            found[int(handle)].append((_operator(node["target"]), line_of(metadata.get("stack_trace", ""))))
    return dict(found)


def _all_nodes(graph: Any) -> Iterator[Any]:
    """Walk the nodes of a serialized graph and of those in its arguments: branches."""
    for node in graph["nodes"]:
        yield node
        for argument in node.get("inputs", ()):
            inner = (argument.get("arg") or {}).get("as_graph")
            if inner:
                yield from _all_nodes(inner["graph"])


def _operator(target: str) -> str:
    return target.removeprefix("executorch.exir.dialects.edge.ops.").removeprefix("torch.ops.")
