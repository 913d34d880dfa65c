"""The words of `etgraph inspect` for what the service `inspect` says about a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from etgraph.words import WIDTH, counted, size, table, wrapped

__all__ = ["describe"]


def describe(source: str, about: Mapping[str, Any]) -> str:
    """Return what is known of a program, as lines of text."""
    lines = [f"{source}: {about['kind']}", *_indented(_filled(f"recognised as {about['recognised_by']}"))]
    if about["quantized"]:
        lines.append(f"  quantized{_few_bits(about['weights'])}")
    for name, method in about["methods"].items():
        lines += ["", f"method {name}", *_indented(_method(method))]
    for part in (_weights(about["weights"]), _emitted(about), _belongings(about)):
        found = list(part)
        lines += ["", *found] if found else []
    for name, method in about["methods"].items():
        if "graph" in method:
            lines += ["", f"graph of {name}", *_indented(method["graph"])]
    return "\n".join(lines)


def _few_bits(weights: Mapping[str, Any] | None) -> str:
    if not weights or not weights["quantized_numbers"]:
        return ""
    return f"; {100 * weights['quantized_numbers'] / weights['numbers']:.0f}% of the weights in 8 bits or fewer"


def _filled(text: str) -> list[str]:
    """Wrap a long list of names that will be indented."""
    return wrapped(text, 0, 2, width=WIDTH - 2)


def _indented(lines: Any) -> list[str]:
    return [f"  {line}" for line in lines]


def _method(method: Mapping[str, Any]) -> Iterator[str]:
    if method.get("constant"):
        yield "a constant method: it computes nothing"
    for title, values in (("inputs", method["inputs"]), ("outputs", method["outputs"])):
        if values:
            yield title
            yield from _indented(table([(f"{v['name']}", _type(v), _remark(v)) for v in values]).splitlines())
    if method.get("mutated_buffers"):
        yield f"buffers that it updates: {', '.join(method['mutated_buffers'])}"
    for symbol, (lower, upper) in method.get("symbols", {}).items():
        yield f"{symbol} ranges from {lower} to {'any size' if upper is None else upper}"
    if "layers" in method:
        yield from _filled(f"layers: {_counts(method['layers'])}")
        yield "in training mode" if method["training"] else "in eval mode"
    if method.get("operators"):
        yield from _filled(f"operators: {_counts(method['operators'])}")
    share = method.get("quantization")
    if share and share["quantized"]:
        whole = counted(share["operators"], "operator")
        yield f"quantized: {share['quantized']} of {whole} take or give quantized values"
    yield from _delegation(method)


def _type(value: Mapping[str, Any]) -> str:
    if value.get("type") == "tensor":
        return f"{value['dtype']}[{', '.join(map(str, value['shape']))}]"
    shown = str(value.get("type", ""))
    return f"{shown} = {value['value']}" if "value" in value else shown


def _remark(value: Mapping[str, Any]) -> str:
    remarks = [
        "by the example input" if value.get("example") else "",
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
        yield _inside(method)
        rows = [
            (d["name"], d["backend"], counted(d["nodes"], "node") if d["nodes"] is not None else "", size(d["bytes"]))
            for d in method["delegates"]
        ]
        yield from _indented(table(rows, right=(2, 3)).splitlines())
    if method.get("backends"):
        yield f"backends: {', '.join(method['backends'])}"
    if method.get("arena_bytes"):
        yield f"planned memory: {', '.join(map(size, method['arena_bytes']))}"


def _inside(method: Mapping[str, Any]) -> str:
    """Say how much is in delegates; a `.pte` knows it only from the run that made it."""
    if "nodes" in method:
        nodes = method["nodes"]
        return f"delegates: {counted(nodes['delegated'], 'node')} inside, {nodes['others']} outside"
    known = method.get("delegation")
    if not known:
        return "delegates"
    inside = sum(one["nodes"] for one in known["backends"])
    return f"delegates: {counted(inside, 'operator')} inside, {known['others']} outside"


def _weights(weights: Mapping[str, Any] | None) -> Iterator[str]:
    if not weights or not weights["count"]:
        return
    numbers = f", {counted(weights['numbers'], 'number')}" if weights["numbers"] is not None else ""
    yield f"weights: {counted(weights['count'], 'tensor')}{numbers}, {size(weights['bytes'])}"
    rows = [(f"  {w['name']}", _weight_type(w), size(w["bytes"]), _place(w)) for w in weights["largest"]]
    yield from table(rows, right=(2,)).splitlines()
    if weights["count"] > len(rows):
        yield f"  and {weights['count'] - len(rows)} smaller ones"


def _weight_type(weight: Mapping[str, Any]) -> str:
    return f"{weight['dtype']}[{', '.join(map(str, weight['shape']))}]" if weight["shape"] is not None else ""


def _place(weight: Mapping[str, Any]) -> str:
    return f"in {weight['place']}" if weight["place"] else ""


def _emitted(about: Mapping[str, Any]) -> Iterator[str]:
    if "size" in about:
        sections = [(f"  {name}", size(count)) for name, count in about["size"]["sections"].items() if count]
        yield "sizes"
        yield from table(sections, right=(1,)).splitlines()
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
    yield f"example inputs: {counts or 'none; --verify and the like need some'}"
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
    if about.get("written_with"):
        yield f"written with: {_versions(about['written_with'])}"
    if about["provenance"]:
        yield f"came by: {' -> '.join(step['stage'] for step in about['provenance'])}"
    yield f"versions: {_versions(about['versions'])}"
    yield from _filled(f"fingerprint: {about['fingerprint'] or 'none, as ' + about['no_fingerprint']}")
    for note in about["notes"]:
        yield from _filled(f"note: {note}")


def _versions(versions: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version)
