"""What in a foreign file could run code when it is loaded or when its program is used.

Torch's and ExecuTorch's readers hand text from the file to `sympify` (which evaluates it), to `exec` (guards), to
generated source (names), to `importlib` (containers), and bytes to `pickle` (torch/_export/serde/serialize.py and
torch/export/pt2_archive/_package.py of torch 2.13; exir/serde/export_serialize.py of executorch 1.5.1). Here each of
them is held against a closed grammar before a reader sees it.
"""

from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etgraph.errors import ArtifactFileError
from stages.codec.context import words

__all__ = ["check_crcs", "dangers_of_program", "targets_of_program"]

#: What may be called in an expression about sizes: the printers of torch and sympy write nothing else.
_CALLS = frozenset(
    words(
        "Abs CeilDiv CeilToInt CleanDiv FloatPow FloatTrueDiv FloorDiv FloorToInt Identity IntTrueDiv "
        "IsNonOverlappingAndDenseIndicator LShift Max Min Mod ModularIndexing PowByNatural PythonMod RShift "
        "RoundDecimal RoundToInt ToFloat TruncToFloat TruncToInt Where Add Mul Pow Eq Ne Lt Le Gt Ge And Or "
        "Not Piecewise Rational Integer Float Symbol Ge Unequality Equality StrictLessThan StrictGreaterThan "
        "LessThan GreaterThan floor ceiling OpaqueUnaryFn_sqrt OpaqueUnaryFn_log2 OpaqueUnaryFn_exp "
        "OpaqueUnaryFn_log OpaqueUnaryFn_cos OpaqueUnaryFn_sin sqrt max min abs"
    )
)
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.Tuple, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_SYMBOL = re.compile(r"[a-zA-Z]\w{0,63}\Z")
_PATH = re.compile(r"[\w.\-*/:\[\]<> ]*\Z")


def check_crcs(path: Path, archive: zipfile.ZipFile) -> None:
    """Read every member against its checksum; the readers of torch do not.

    Raises:
        ArtifactFileError: a member is damaged.
    """
    try:
        bad = archive.testzip()
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as e:
        raise ArtifactFileError(f"{path} is damaged: {e}", hint="Fetch it again or make it again.") from e
    if bad is not None:
        raise ArtifactFileError(
            f"{path} is damaged: its member {bad} does not match its checksum",
            hint="Fetch it again or make it again.",
        )


def dangers_of_program(program: Any) -> list[str]:
    """Name what in a serialized program could run code; empty when nothing can."""
    dangers: list[str] = []
    for key, value in _entries(program):
        if key == "expr_str" and not _is_size_expression(value):
            dangers.append(f"an expression that is evaluated ({_short(value)})")
        elif key == "guards_code" and not all(map(_is_guard, value or ())):
            dangers.append("guard code that is executed")
        elif key in ("in_spec", "out_spec") and not _is_spec(value):
            dangers.append(f"a container that is imported ({_short(value)})")
        elif key in ("name", "forward_arg_names", "class_fqn", "target", "fqn", "name_in_original_graph"):
            texts = value if isinstance(value, list) else [value]
            dangers.extend(f"a name that ends up in code ({_short(t)})" for t in texts if not _is_plain(t))
    return dangers


def targets_of_program(program: Any) -> set[str]:
    """Give the names of what the nodes of a serialized program call, delegates and branches included."""
    return {
        value["target"]
        for _, value in _entries(program)
        if isinstance(value, dict)
        and isinstance(value.get("target"), str)
        and "inputs" in value
        and "metadata" in value
    }


def _entries(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Walk JSON and the JSON inside its strings, as ExecuTorch nests delegates; metadata is not walked."""
    yield key, value
    if isinstance(value, dict):
        for name, item in value.items():
            if name != "metadata":
                yield from _entries(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item)
    elif key == "as_string" and isinstance(value, str) and value.startswith("{"):
        try:
            yield from _entries(json.loads(value))
        except ValueError:
            return


def _is_size_expression(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > 10_000:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    named = {id(n.args[0]) for n in ast.walk(tree) if _is_symbol(n)}
    return all(_is_size_node(node, id(node) in named) for node in ast.walk(tree))


def _is_size_node(node: ast.AST, names_a_symbol: bool) -> bool:
    if isinstance(node, ast.keyword):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, (bool, int))
    if not isinstance(node, _NODES):
        return False
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name) and node.func.id in _CALLS
        return plain and (not node.keywords or _is_symbol(node))
    if isinstance(node, ast.Constant):
        return names_a_symbol or isinstance(node.value, (int, float, bool))
    return not isinstance(node, ast.Name) or bool(_SYMBOL.match(node.id))


def _is_symbol(node: ast.AST) -> bool:
    """Tell whether a node is `Symbol('s0', ...)` with a plain name, as torch prints a symbol with assumptions."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Symbol"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
        and bool(_SYMBOL.match(node.args[0].value))
    )


def _is_guard(text: Any) -> bool:
    """Tell whether a guard only compares sizes of inputs, for instance `L['x'].size()[0] % 2 == 0`."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, TypeError, RecursionError):
        return False
    allowed = (*_NODES, ast.Subscript, ast.Attribute)
    methods = {"size", "stride", "storage_offset", "item"}
    for node in ast.walk(tree):
        if not isinstance(node, allowed):
            return False
        if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or not node.attr.isidentifier()):
            return False
        if isinstance(node, ast.Name) and node.id not in {
            "L",
            "math",
            "max",
            "min",
            "abs",
            "round",
            "torch",
            "True",
            "False",
        }:
            return False
        if isinstance(node, ast.Call) and not _is_harmless_call(node, methods):
            return False
    return True


def _is_harmless_call(node: ast.Call, methods: set[str]) -> bool:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in {"max", "min", "abs", "round"} and not node.keywords
    if not isinstance(function, ast.Attribute) or node.keywords:
        return False
    if isinstance(function.value, ast.Name) and function.value.id in ("math", "torch"):
        return function.attr in {
            "floor",
            "ceil",
            "trunc",
            "sqrt",
            "log2",
            "pow",
            "sym_max",
            "sym_min",
            "sym_float",
        }
    return function.attr in methods and not node.args


def _is_spec(text: Any) -> bool:
    """Tell whether a pytree spec names no function of a module: a defaultdict's factory is imported."""
    if not isinstance(text, str) or not text:
        return True
    try:
        spec = json.loads(text)
    except ValueError:
        return False
    contexts = [value for key, value in _entries(spec) if key == "context" and isinstance(value, str)]
    for context in contexts:
        if "default_factory_module" in context and json.loads(context).get("default_factory_module") != "builtins":
            return False
    return True


def _is_plain(text: Any) -> bool:
    return text is None or (isinstance(text, str) and bool(_PATH.match(text)) and len(text) < 2000)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 60 else shown[:57] + "..."
