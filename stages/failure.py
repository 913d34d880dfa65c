"""Where a stage failed: the method, the node and the line of the model, read from an exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import etgraph
from etgraph.artifact import Artifact
from stages.support.source_lines import is_library, line_of

_OPERATOR = re.compile(r"\b(?:torch\._ops\.|torch\.ops\.)?(\w+)(?:::|\.)(\w+)(?:\.(\w+))?\b")
_OURS = tuple(str(Path(package).resolve().parent) for package in (etgraph.__file__, __file__) if package)


@etgraph.service("explain_failure")
def explain_failure(given: Artifact, error: BaseException) -> dict[str, str]:
    """Return what is known of `problem`, `method`, `node`, `source_line` and `hint` for a failure."""
    found: dict[str, str] = {}
    for one in _chain(error):
        node = _node_in_traceback(one)
        if node is not None:
            found.setdefault("node", node.name)
            line = line_of(node.meta.get("stack_trace") or "")
            if line:
                found.setdefault("source_line", line)
    named = _node_named_in(str(error), given)
    if named is not None:
        method, node = named
        found.setdefault("method", method)
        found["node"] = node.name
        line = line_of(node.meta.get("stack_trace") or "")
        if line:
            found["source_line"] = line
    if "source_line" not in found:
        line = next((text for one in _chain(error) if (text := line_of(str(one)) or _user_frame(one))), "")
        if line:
            found["source_line"] = line
    found["problem"] = f"{type(error).__name__}: {_first_part(str(error))}"
    said = next((log for one in _chain(error) if (log := getattr(one, "etgraph_compiler_log", ""))), "")
    hints = [_hint(str(error)), "The backend's compiler printed last:\n" + said if said else ""]
    if any(hints):
        found["hint"] = "\n".join(filter(None, hints)).replace("\n", "\n  ")
    return found


def _first_part(message: str) -> str:
    """Leave out the advice and the lists that upstream appends; they stay in the chained exception."""
    for tail in ("There are a few things to try", "This op was registered by", "The following ops:"):
        message = message.partition(tail)[0]
    return message.strip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames[::-1]


def _node_in_traceback(error: BaseException) -> Any:
    """Return the graph node that the innermost frame that has one was at work on."""
    from torch.fx import Node

    for frame, _ in _frames(error):
        for name in ("node", "n", "curr_node", "self"):
            value = frame.f_locals.get(name)
            if isinstance(value, Node) and value.op == "call_function":
                return value
    return None


def _node_named_in(message: str, given: Artifact) -> tuple[str, Any] | None:
    """Return the first node of the input whose operator the message names, as `aten.erfinv` or `aten::erfinv`."""
    from torch.export import ExportedProgram

    named = {(m[1], m[2]) for m in _OPERATOR.finditer(message)}
    for method, program in given.methods.items():
        if not isinstance(program, ExportedProgram):
            continue
        for node in program.graph.nodes:
            schema = getattr(node.target, "_schema", None)
            if schema is not None and tuple(schema.name.split("::")) in named:
                return method, node
    return None


def _user_frame(error: BaseException) -> str:
    import linecache

    for frame, number in _frames(error):
        name = frame.f_code.co_filename
        if not is_library(name) and not name.startswith(_OURS) and not name.startswith("<"):
            code = linecache.getline(name, number).strip()
            return f"{name}:{number} in {frame.f_code.co_name}" + (f": {code}" if code else "")
    return ""


def _hint(message: str) -> str:
    if "_native_batch_norm_legit" in message and "no_training" not in message:
        return "A batch norm was exported in training mode: call model.eval(), or export with --eval (eval_mode)."
    if "Missing out variants" in message:
        return (
            "ExecuTorch has no kernel for this operator: take a backend that delegates it, replace the operator in the "
            "model, or import the library that registers its out variant before the run."
        )
    if "is not Core ATen" in message or "not in Core ATen" in message or "CATEN" in message:
        return (
            "Core ATen lacks this operator and no decomposition is known: replace it in the model, keep it for a "
            "backend that takes it (preserve_ops), or allow it (EdgeCompileConfig._core_aten_ops_exception_list)."
        )
    if "expected compiled_fn to be GraphModule" in message:
        return (
            "Two names of this program stand for one tensor, and it is written to, which torch cannot take apart. A "
            "module that keeps tensors outside its buffers, as transformers' caches do, is exported with strict=True."
        )
    if "was not decomposed or delegated" in message:
        return (
            "The combined call kept this operator whole for a backend that then did not take it: go the split way "
            "without keeping operators (path='split'), or take another recipe."
        )
    return ""


@etgraph.service("state_of")
def state_of(artifact: Artifact) -> Any:
    """Return something that changes when a tensor of a source is written to or replaced."""
    state = []
    for held in artifact.methods.values():
        owner = getattr(held, "__self__", held)
        tensors = []
        if hasattr(owner, "named_parameters"):
            tensors = [*owner.parameters(), *owner.buffers()]
        elif hasattr(owner, "state_dict"):
            values = [*owner.state_dict.values(), *owner.constants.values()]
            tensors = [value for value in values if hasattr(value, "is_inference")]
        # Inference tensors count no versions; nobody can write to them outside of inference mode.
        state.append(tuple((id(t), None if t.is_inference() else t._version) for t in tensors))
    return tuple(state)
