"""Symbolic shapes: sympy expressions as trees of a closed set of node classes, and the ShapeEnv that they live in.

Nothing is parsed as text and nothing is evaluated: a class is looked up by name in a table, and a symbol by name in
the environment that the document describes.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse, words

__all__ = ["read_environment", "read_expression", "read_symbolic", "write_expression", "write_symbolic"]

_SYMPY = words(
    "Abs Add And Eq Equality GreaterThan Ge Gt LessThan Le Lt Mul Ne Not Or Piecewise Pow "
    "StrictGreaterThan StrictLessThan Unequality ceiling floor"
)
_TORCH = words(
    "BitwiseFn_bitwise_and BitwiseFn_bitwise_or BitwiseFn_bitwise_xor CeilDiv CeilToInt CleanDiv FloatPow "
    "FloatTrueDiv FloorDiv FloorToInt Identity IntTrueDiv IsNonOverlappingAndDenseIndicator LShift Max "
    "Min Mod ModularIndexing OpaqueUnaryFn_acos OpaqueUnaryFn_asin OpaqueUnaryFn_asinh OpaqueUnaryFn_atan "
    "OpaqueUnaryFn_cos OpaqueUnaryFn_cosh OpaqueUnaryFn_exp OpaqueUnaryFn_log OpaqueUnaryFn_log2 "
    "OpaqueUnaryFn_sin OpaqueUnaryFn_sinh OpaqueUnaryFn_sqrt OpaqueUnaryFn_tan OpaqueUnaryFn_tanh "
    "PowByNatural PythonMod RShift RoundDecimal RoundToInt ToFloat TruncToFloat TruncToInt Where"
)
_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "And", "Or"})
_ASSUMPTIONS = frozenset({"integer", "positive", "nonnegative", "negative", "real", "finite", "zero", "nonzero"})
_PYTYPES: dict[str, type] = {"int": int, "float": float, "bool": bool}


@functools.cache
def _classes() -> dict[str, Any]:
    import sympy
    import torch.utils._sympy.functions as torch_functions

    table = {name: getattr(sympy, name) for name in _SYMPY}
    table.update({name: getattr(torch_functions, name) for name in _TORCH if hasattr(torch_functions, name)})
    return {cls.__name__: cls for cls in table.values()}


@functools.cache
def _constants() -> dict[str, Any]:
    import sympy
    from torch.utils._sympy.numbers import int_oo

    return {
        "int_oo": int_oo,
        "-int_oo": -int_oo,
        "oo": sympy.oo,
        "-oo": -sympy.oo,
        "zoo": sympy.zoo,
        "nan": sympy.nan,
    }


def write_expression(writer: Writer, env: int, expr: Any) -> Any:
    """Encode an expression: int, bool, `"$n"` for a symbol, `["Class", ...]`, `["Rational", p, q]` and such.

    Symbols are numbered in the order in which they are met: torch numbers unbacked ones from a counter that every
    tracing with the same environment moves on. Arguments whose order means nothing are sorted, since sympy keeps
    those of Max and Min in sets.
    """
    import sympy

    if isinstance(expr, (bool, int)):
        return expr
    if isinstance(expr, float):
        return ["Float", repr(expr), 53]
    if isinstance(expr, sympy.Symbol):
        symbols = writer.used_symbols.setdefault(env, {})
        return f"${symbols.setdefault(expr, len(symbols))}"
    if isinstance(expr, sympy.Integer):
        return int(expr)
    if isinstance(expr, sympy.Rational):
        return ["Rational", int(expr.p), int(expr.q)]
    if isinstance(expr, sympy.Float):
        return ["Float", repr(float(expr)), int(expr._prec)]
    if expr is sympy.true or expr is sympy.false:
        return bool(expr)
    for name, constant in _constants().items():
        if expr is constant:
            return ["Constant", name]
    if _classes().get(type(expr).__name__) is not type(expr):
        if isinstance(expr, sympy.functions.elementary.piecewise.ExprCondPair):
            return ["Pair", *(write_expression(writer, env, a) for a in expr.args)]
        raise refuse(
            writer.where,
            f"a symbolic expression with {type(expr).__module__}.{type(expr).__name__} ({expr})",
            "Save an earlier kind, or report the model: the class must be added to stages/codec/symbols.py.",
        )
    args = [write_expression(writer, env, a) for a in expr.args]
    return [type(expr).__name__, *(sorted(args, key=str) if type(expr).__name__ in _COMMUTATIVE else args)]


def read_expression(symbols: dict[str, Any], encoded: Any) -> Any:
    """Build an expression; symbols are looked up by name.

    Raises:
        ArtifactFileError: a class, constant or symbol that is not in the tables.
    """
    import sympy

    if isinstance(encoded, bool):
        return sympy.true if encoded else sympy.false
    if isinstance(encoded, int):
        return sympy.Integer(encoded)
    if isinstance(encoded, str):
        if encoded not in symbols:
            raise malformed("the name of a symbol of the program", encoded)
        return symbols[encoded]
    if not isinstance(encoded, list) or not encoded:
        raise malformed("a symbolic expression", encoded)
    head, *rest = encoded
    if head == "Rational":
        return sympy.Rational(*map(int, rest))
    if head == "Float":
        return sympy.Float(float(rest[0]), precision=int(rest[1]))
    if head == "Constant" and rest[0] in _constants():
        return _constants()[rest[0]]
    args = [read_expression(symbols, item) for item in rest]
    if head == "Pair":
        return tuple(args)
    if head not in _classes():
        raise malformed("a symbolic expression", encoded)
    return _classes()[head](*args)


def write_environment(writer: Writer, env: Any) -> int:
    """Number a ShapeEnv; its contents are encoded when all that uses it is, by `finish_environments`."""
    position, _ = writer.number("environment", env, writer.environments)
    writer.environments[position] = env
    return position


def write_symbolic(writer: Writer, value: Any) -> Any:
    """Encode a SymInt, SymFloat or SymBool: environment, type, expression and hint.

    The expression is simplified by the environment: the same size can be held as `s27` or as `s94 + 1`, depending on
    what was traced before with the same environment.
    """
    node = value.node
    if getattr(node, "_expr", None) is None or node.shape_env is None:
        raise refuse(
            writer.where,
            f"a symbolic number without an expression ({value})",
            "Export with plain dynamic shapes.",
        )
    env = write_environment(writer, node.shape_env)
    expr = node.shape_env.simplify(node._expr)
    hint = None if _backed(node.shape_env, expr) else node._hint
    if not (hint is None or isinstance(hint, (bool, int, float))):
        hint = None
    return {"sym": [env, node.pytype.__name__, write_expression(writer, env, expr), hint]}


def _backed(env: Any, expr: Any) -> bool:
    """Tell whether an expression has a value for the example inputs, so that its hint need not be kept."""
    return all(symbol in env.backed_var_to_val for symbol in expr.free_symbols)


def read_symbolic(reader: Reader, encoded: Any) -> Any:
    """Make the SymInt, SymFloat or SymBool again, in the environment that the document describes."""
    import torch
    from torch.fx.experimental.sym_node import SymNode

    position, pytype, tree, hint = encoded
    if pytype not in _PYTYPES or not (hint is None or isinstance(hint, (bool, int, float))):
        raise malformed("a symbolic number", encoded)
    env = read_environment(reader, position)
    key = (position, tree if isinstance(tree, str) else json.dumps(tree))
    if key not in reader.expressions:
        reader.expressions[key] = read_expression(env.etgraph_symbols, tree)
    expr, kind = reader.expressions[key], _PYTYPES[pytype]
    if hint is None and _backed(env, expr):
        hint = kind(expr.xreplace(env.backed_var_to_val))
    node = SymNode(expr, env, kind, hint)
    return {"int": torch.SymInt, "float": torch.SymFloat, "bool": torch.SymBool}[pytype](node)


def finish_environments(writer: Writer) -> tuple[list[Any], list[Any]]:
    """Encode the environments: what the programs' own symbols mean, and apart from it all else that they hold."""
    from stages.codec import environments

    pairs = [environments.write(writer, i, env) for i, env in enumerate(writer.environments)]
    return [meaning for meaning, _ in pairs], [debug for _, debug in pairs]


def read_environment(reader: Reader, position: int) -> Any:
    """Give the ShapeEnv at a position of the document, made on first use."""
    if position not in reader.environments:
        from stages.codec import environments

        reader.environments[position] = environments.read(
            reader.meaning["environments"][position], reader.debug["environments"][position]
        )
    return reader.environments[position]


def write_symbol(symbol: Any) -> dict[str, bool]:
    """Encode what is assumed of a symbol; equal names with other assumptions are other symbols."""
    return {k: bool(v) for k, v in sorted(symbol._assumptions_orig.items()) if k in _ASSUMPTIONS}


def read_symbol(name: str, assumptions: dict[str, bool]) -> Any:
    """Make a symbol."""
    import sympy

    if not set(assumptions) <= _ASSUMPTIONS or not name.replace("_", "").isalnum():
        raise malformed("a symbol", [name, assumptions])
    return sympy.Symbol(name, **{k: bool(v) for k, v in assumptions.items()})
