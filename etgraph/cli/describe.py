"""The words of `etgraph inspect` for what the service `inspect` says about a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from etgraph.cli.output import counted, size, table

__all__ = ["describe"]


def describe(source: str, about: Mapping[str, Any]) -> str:
    """Return what is known of a program, as lines of text."""
    lines = [f"{source}: {about['kind']}", f"  recognised as {about['recognised_by']}"]
    if about["quantized"]:
        lines.append("  quantized")
    for name, method in about["methods"].items():
        lines += ["", f"method {name}", *_indented(_method(method))]
    for part in (_weights(about["weights"]), _emitted(about), _belongings(about)):
        found = list(part)
        lines += ["", *found] if found else []
    for name, method in about["methods"].items():
        if "graph" in method:
            lines += ["", f"graph of {name}", *_indented(method["graph"])]
    return "\n".join(lines)


def _indented(lines: Any) -> list[str]:
    return [f"  {line}" for line in lines]


def _method(method: Mapping[str, Any]) -> Iterator[str]:
    for title, values in (("inputs", method["inputs"]), ("outputs", method["outputs"])):
        if values:
            yield title
            yield from _indented(table([(f"{v['name']}", _type(v), _remark(v)) for v in values]).splitlines())
    if method.get("mutated_buffers"):
        yield f"buffers that it updates: {', '.join(method['mutated_buffers'])}"
    for symbol, (lower, upper) in method.get("symbols", {}).items():
        yield f"{symbol} ranges from {lower} to {'any size' if upper is None else upper}"
    if "layers" in method:
        yield f"layers: {_counts(method['layers'])}"
        yield "in training mode" if method["training"] else "in eval mode"
    if method.get("operators"):
        yield f"operators: {_counts(method['operators'])}"
    yield from _delegation(method)


def _type(value: Mapping[str, Any]) -> str:
    if value.get("type") == "tensor":
        return f"{value['dtype']}[{', '.join(map(str, value['shape']))}]"
    shown = str(value.get("type", ""))
    return f"{shown} = {value['value']}" if "value" in value else shown


def _remark(value: Mapping[str, Any]) -> str:
    remarks = [
        "written to" if value.get("mutated") else "",
        "optional" if value.get("optional") else "",
        "up to that size" if value.get("dynamic") else "",
        value["role"] if value.get("role", "output") != "output" else "",
    ]
    return ", ".join(filter(None, remarks))


def _counts(counts: Any) -> str:
    if isinstance(counts, Mapping):
        return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())
    return ", ".join(counts)


def _delegation(method: Mapping[str, Any]) -> Iterator[str]:
    if method.get("delegates"):
        nodes = method["nodes"]
        yield f"delegates: {counted(nodes['delegated'], 'node')} inside, {nodes['others']} outside"
        rows = [(d["name"], d["backend"], counted(d["nodes"], "node"), size(d["bytes"])) for d in method["delegates"]]
        yield from _indented(table(rows, right=(2, 3)).splitlines())
    if method.get("backends"):
        yield f"backends: {', '.join(method['backends'])}"
    if method.get("arena_bytes"):
        yield f"planned memory: {', '.join(map(size, method['arena_bytes']))}"


def _weights(weights: Mapping[str, Any] | None) -> Iterator[str]:
    if not weights or not weights["count"]:
        return
    count = counted(weights["count"], "tensor")
    yield f"weights: {count}, {counted(weights['numbers'], 'number')}, {size(weights['bytes'])}"
    rows = [
        (f"  {w['name']}", f"{w['dtype']}[{', '.join(map(str, w['shape']))}]", size(w["bytes"]))
        for w in weights["largest"]
    ]
    yield from table(rows, right=(2,)).splitlines()


def _emitted(about: Mapping[str, Any]) -> Iterator[str]:
    if "size" in about:
        yield f"program: {size(about['size']['program'])}"
        for name, count in about["size"]["data_files"].items():
            yield f"data file {name}: {size(count)}"
    host = about.get("host")
    if host is None:
        return
    if not host["runtime"]:
        yield "this host has no ExecuTorch runtime to execute it with"
    elif not host["missing_backends"] and not host["missing_operators"]:
        yield "this host's runtime has every backend and kernel that it needs"
    for what in ("backends", "operators"):
        if host[f"missing_{what}"]:
            yield f"this host's runtime lacks the {what} {', '.join(host[f'missing_{what}'])}"


def _belongings(about: Mapping[str, Any]) -> Iterator[str]:
    inputs = about["example_inputs"]
    counts = ", ".join(f"{name} ({len(samples)})" for name, samples in inputs.items())
    yield f"example inputs: {counts or 'none'}"
    for name, shapes in about["dynamic_shapes"].items():
        yield f"dynamic shapes of {name}: {shapes}"
    for name, value in about["constant_methods"].items():
        yield f"constant method {name}: {value}"
    config = about["compile_config"]
    if config:
        chosen = ", ".join(f"{key}={value}" for key, value in config.items() if not key.endswith(("_ops", "_list")))
        yield f"EdgeCompileConfig: {chosen}"
        whole = sorted({*config["preserve_ops"], *config["core_aten_ops_exception_list"]})
        yield f"operators kept whole: {', '.join(whole) or 'none'}"
    if about["provenance"]:
        yield f"came by: {' -> '.join(step['stage'] for step in about['provenance'])}"
    yield f"versions: {', '.join(f'{name} {version}' for name, version in about['versions'].items() if version)}"
    yield f"fingerprint: {about['fingerprint'] or 'none, as ' + about['no_fingerprint']}"
