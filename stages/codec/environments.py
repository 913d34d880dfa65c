"""The ShapeEnv of a program: symbols with hints, ranges and sources, guards, and run-time assertions."""

from __future__ import annotations

from typing import Any

from stages.codec.context import Writer, malformed
from stages.codec.symbols import read_expression, read_symbol, write_expression, write_symbol

__all__ = ["read", "write"]

_SETTINGS = (
    "allow_scalar_outputs",
    "allow_dynamic_output_shape_ops",
    "assume_static_by_default",
    "specialize_zero_one",
    "duck_shape",
    "prefer_deferred_runtime_asserts_over_guards",
    "trace_asserts",
)
_COUNTERS = ("unbacked_symint_counter", "unbacked_symfloat_counter", "num_deferred_runtime_asserts")
_FLAGS = ("frozen", "runtime_asserts_frozen")
_SOURCE_FIELDS = {
    "LocalSource": ("local_name", "is_input"),
    "AttrSource": ("member",),
    "GetItemSource": ("index", "index_is_slice"),
    "DictGetItemSource": ("index",),
    "TensorPropertySource": ("idx",),
    "ConstantSource": ("source_name",),
}


def write(writer: Writer, position: int, env: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Encode a ShapeEnv in two halves.

    The programs' own symbols, with what is known of each, are meaning. Tracing other programs with the same
    environment, as lowering does, adds guards and symbols to it: those are kept and are no part of the meaning.
    """

    def expression(expr: Any) -> Any:
        return write_expression(writer, position, expr)

    own = _close(writer, position, env)
    meaning = {
        "settings": {name: bool(getattr(env.settings, name)) for name in _SETTINGS},
        "symbols": [_write_facts(env, symbol, expression) for symbol in own],
    }
    for symbol in {**env.var_to_range, **env.backed_var_to_val, **env.replacements}:
        expression(symbol)
    debug: dict[str, Any] = {
        "guards": [expression(guard.expr) for guard in env.guards],
        "assertions": [
            [None if k is None else expression(k), [[expression(a.expr), a.msg] for a in asserts]]
            for k, asserts in env.deferred_runtime_asserts.items()
        ],
        "divisible": sorted((expression(e) for e in env.divisible), key=str),
        "source_to_var": {k: expression(v) for k, v in env.source_to_var.items() if v in env.backed_var_to_val},
        "val_to_var": [[k, expression(v)] for k, v in env.val_to_var.items()],
        "unique_ids": sorted(env.unique_ids),
        "renamings": [[expression(k), expression(v)] for k, v in env.unbacked_renamings.items()],
        "counters": {name: getattr(env, name) for name in _COUNTERS},
        "flags": {name: bool(getattr(env, name)) for name in _FLAGS},
    }
    everything = _close(writer, position, env)
    debug["symbols"] = [_write_facts(env, symbol, expression) for symbol in everything[len(own) :]]
    debug["names"] = [symbol.name for symbol in everything]
    debug["sources"] = [
        [s for s in map(_write_source, env.var_to_sources.get(symbol, ())) if s is not None] for symbol in everything
    ]
    debug["order"] = [everything.index(symbol) for symbol in env.var_to_range]
    return meaning, debug


def _close(writer: Writer, position: int, env: Any) -> list[Any]:
    """Give the symbols used so far, and those that their replacements use in turn, in the order of their numbers."""
    used = writer.used_symbols.setdefault(position, {})
    done: set[Any] = set()
    while todo := [symbol for symbol in used if symbol not in done]:
        for symbol in todo:
            done.add(symbol)
            if symbol in env.replacements:
                write_expression(writer, position, env.replacements[symbol])
    return list(used)


def _write_facts(env: Any, symbol: Any, expression: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"is": write_symbol(symbol)}
    if symbol in env.backed_var_to_val:
        facts["hint"] = expression(env.backed_var_to_val[symbol])
    if symbol in env.var_to_range:
        values = env.var_to_range[symbol]
        facts["range"] = [expression(values.lower), expression(values.upper)]
    if symbol in env.replacements:
        facts["stands_for"] = expression(env.replacements[symbol])
    if symbol in env.size_like:
        facts["size_like"] = True
    return facts


def read(meaning: dict[str, Any], debug: dict[str, Any]) -> Any:
    """Make a ShapeEnv; its symbols by number are in its attribute `etgraph_symbols`."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv(**{name: bool(meaning["settings"][name]) for name in _SETTINGS})
    facts = [*meaning["symbols"], *debug["symbols"]]
    symbols = {f"${i}": read_symbol(debug["names"][i], known["is"]) for i, known in enumerate(facts)}
    env.etgraph_symbols = symbols

    def expression(encoded: Any) -> Any:
        return read_expression(symbols, encoded)

    for i in [*debug["order"], *(i for i in range(len(facts)) if i not in debug["order"])]:
        _read_facts(env, symbols[f"${i}"], facts[i], expression)
    _read_history(env, debug, symbols, expression)
    env._update_version_counter()
    return env


def _read_facts(env: Any, symbol: Any, facts: dict[str, Any], expression: Any) -> None:
    from torch.fx.experimental.symbolic_shapes import ValueRanges, ValueRangesSLoc
    from torch.utils._traceback import CapturedTraceback

    sloc = env._get_sloc()
    env.var_to_stack[symbol] = CapturedTraceback.extract(skip=1)
    if "hint" in facts:
        env.backed_var_to_val[symbol] = expression(facts["hint"])
    if "range" in facts:
        env.var_to_range[symbol] = ValueRanges(*map(expression, facts["range"]))
        env.var_to_range_sloc[symbol] = ValueRangesSLoc(sloc, sloc)
    if "stands_for" in facts:
        env.replacements[symbol] = expression(facts["stands_for"])
        env.replacements_slocs[symbol] = sloc
    if facts.get("size_like"):
        env.size_like.add(symbol)


def _read_history(env: Any, debug: dict[str, Any], symbols: dict[str, Any], expression: Any) -> None:
    from torch.fx.experimental.symbolic_shapes import RuntimeAssert, ShapeGuard
    from torch.utils._traceback import CapturedTraceback

    sloc = env._get_sloc()
    env.guards.extend(ShapeGuard(expression(e), sloc, True) for e in debug["guards"])
    for key, asserts in debug["assertions"]:
        stack = CapturedTraceback.extract(skip=1)
        env.deferred_runtime_asserts[None if key is None else expression(key)] = [
            RuntimeAssert(expression(e), str(msg), stack) for e, msg in asserts
        ]
    env.divisible.update(map(expression, debug["divisible"]))
    env.source_to_var.update({str(k): expression(v) for k, v in debug["source_to_var"].items()})
    env.val_to_var.update({k: expression(v) for k, v in debug["val_to_var"]})
    env.unique_ids.update(map(int, debug["unique_ids"]))
    env.unbacked_renamings.update({expression(k): expression(v) for k, v in debug["renamings"]})
    for i, sources in enumerate(debug["sources"]):
        if sources:
            env.var_to_sources[symbols[f"${i}"]] = [_read_source(s) for s in sources]
    for name in _COUNTERS:
        setattr(env, name, int(debug["counters"][name]))
    for name in _FLAGS:
        setattr(env, name, bool(debug["flags"][name]))


def _write_source(source: Any) -> Any:
    """Encode where a symbol's value is read from at run time; None for a kind of source that is not known."""
    kind = type(source).__name__
    if kind not in _SOURCE_FIELDS:
        return None
    values = [getattr(source, name) for name in _SOURCE_FIELDS[kind]]
    if not all(v is None or isinstance(v, (str, int, bool)) for v in values):
        return None
    encoded: list[Any] = [kind, *values]
    if kind == "TensorPropertySource":
        encoded.append(source.prop.name)
    if hasattr(source, "base"):
        base = _write_source(source.base)
        if base is None:
            return None
        encoded.append(base)
    return encoded


def _read_source(encoded: Any) -> Any:
    """Make a source. Torch prints its names into code that checks inputs, so they must be plain names."""
    from torch._dynamo import source as sources

    kind, *rest = encoded
    names = _SOURCE_FIELDS.get(kind)
    if names is None:
        raise malformed("the source of a symbol", encoded)
    fields = dict(zip(names, rest, strict=False))
    for name, value in fields.items():
        plain = (
            value is None
            or isinstance(value, (int, bool))
            or (isinstance(value, str) and value.replace("_", "").isalnum())
        )
        if not plain or (name == "member" and not str(value).isidentifier()):
            raise malformed("the source of a symbol", encoded)
    rest = rest[len(names) :]
    if kind == "TensorPropertySource":
        fields["prop"] = sources.TensorProperty[rest.pop(0)]
    if rest:
        fields["base"] = _read_source(rest[0])
    return getattr(sources, kind)(**fields)
