"""Compiled code as content: what it does and names, without lines, files, comments and docstrings.

Instructions are taken one by one with their arguments resolved, so that the numbering of constants and names
(which a docstring shifts) plays no part. `dis` gives them as compiled, whatever the interpreter specialised
meanwhile.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from blake3 import blake3

__all__ = ["References", "code_digest", "constant_text", "references"]

_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CONSTANTS = frozenset(dis.hasconst)
_SILENT = frozenset({"NOP", "EXTENDED_ARG", "CACHE"})
_CALLS = frozenset({"PRECALL", "CALL", "CALL_FUNCTION"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})

#: optimized, newlocals, varargs, varkeywords, generator, coroutine, iterable coroutine, async generator
_FLAGS = 0x3AF


@functools.lru_cache(maxsize=4096)
def _instructions(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    """The instructions that count; a class body's docstring and line number are left out."""
    kept: list[dis.Instruction] = []
    for item in dis.get_instructions(code):
        if item.opname in _SILENT:
            continue
        if item.opname == "STORE_NAME" and item.argval in ("__doc__", "__firstlineno__"):
            kept.pop()
            continue
        kept.append(item)
    return tuple(kept)


def code_digest(code: types.CodeType) -> str:
    """Return the blake3 of what a code object does, nested code included, what its globals mean excluded."""
    return _code_digest(code)


@functools.lru_cache(maxsize=4096)
def _code_digest(code: types.CodeType) -> str:
    kept = _instructions(code)
    index = [item.offset for item in kept]
    lines = [
        f"args {code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}",
        f"flags {code.co_flags & _FLAGS}",
        f"names {code.co_varnames[: _argument_count(code)]} {code.co_freevars} {sorted(code.co_cellvars)}",
    ]
    for item in kept:
        if item.opcode in _JUMPS:
            shown = f"to {_position(index, item.argval)}"
        elif item.opcode in _CONSTANTS:
            shown = constant_text(item.argval)
        else:
            shown = item.argrepr or str(item.arg)
        lines.append(f"{item.opname} {shown}")
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        where = (_position(index, entry.start), _position(index, entry.end), _position(index, entry.target))
        lines.append(f"except {where} {entry.depth} {entry.lasti}")
    return blake3("\0".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _argument_count(code: types.CodeType) -> int:
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_argcount + code.co_kwonlyargcount + stars


def _position(offsets: Sequence[int], offset: int) -> int:
    """Number of the first kept instruction at or after a byte offset."""
    from bisect import bisect_left

    return bisect_left(offsets, offset)


def constant_text(value: object) -> str:
    """A compiled constant as exact text; the order in a frozenset does not enter."""
    if isinstance(value, types.CodeType):
        return f"code {value.co_name} {code_digest(value)}"
    if isinstance(value, tuple):
        return f"tuple({', '.join(constant_text(v) for v in value)})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(constant_text(v) for v in value))})"
    return f"{type(value).__name__} {value!r}"


@dataclass
class References:
    """What a function's code names, nested code included, in the order of the code.

    Args:
        chains: global names with the attributes that follow them: `("helpers", "f")`.
        attributes: every attribute name that the code asks for.
        imports: (level, module, names) of import statements inside.
        dynamic: asks for an attribute whose name is made at run time, of something else than `self`.
        dynamic_self: the same, of the first argument.
    """

    chains: dict[tuple[str, ...], None] = field(default_factory=dict)
    attributes: dict[str, None] = field(default_factory=dict)
    imports: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    dynamic: bool = False
    dynamic_self: bool = False


def references(code: types.CodeType) -> References:
    """Collect the names that a code object and the code nested in it reach."""
    found = References()
    _collect(code, found)
    return found


def _collect(code: types.CodeType, found: References) -> None:
    kept = _instructions(code)
    for i, item in enumerate(kept):
        if item.opname in _ATTRIBUTES:
            found.attributes[str(item.argval)] = None
        elif item.opname in _GLOBALS:
            chain = tuple(_chain(kept, i))
            found.chains[chain] = None
            if chain == ("getattr",):
                _note_getattr(code, kept, i, found)
        elif item.opname == "IMPORT_NAME":
            level, names = kept[i - 2].argval, kept[i - 1].argval
            found.imports.append((level if isinstance(level, int) else 0, item.argval, tuple(names or ())))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _collect(constant, found)


def _chain(kept: Sequence[dis.Instruction], i: int) -> Iterator[str]:
    yield str(kept[i].argval)
    for item in kept[i + 1 :]:
        if item.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return
        yield str(item.argval)


def _note_getattr(code: types.CodeType, kept: Sequence[dis.Instruction], i: int, found: References) -> None:
    """Read the arguments of `getattr(object, name[, default])` off the stack that the code builds."""
    last_at: dict[int, int] = {}
    depth = 0
    for j in range(i + 1, len(kept)):
        item = kept[j]
        if item.opname in _CALLS and item.arg == depth and depth in (2, 3):
            last_at[depth] = j
            break
        if item.opcode in _JUMPS:
            last_at = {}
            break
        last_at[depth] = j
        argument = item.arg if item.opcode >= dis.HAVE_ARGUMENT else None
        depth += dis.stack_effect(item.opcode, argument, jump=False)
        if depth < 0:
            last_at = {}
            break
    else:
        last_at = {}
    first, second, third = (last_at.get(k, -1) for k in range(3))
    constant = second > 0 and third == second + 1 and kept[second].opcode in _CONSTANTS
    if constant and isinstance(kept[second].argval, str):
        found.attributes[kept[second].argval] = None
        return
    owner = kept[first].argval if first > 0 and kept[first].opname.startswith("LOAD_FAST") else None
    if isinstance(owner, tuple) and second == -1:  # Python 3.13 loads two locals in one instruction
        owner, second = owner[0], first + 1
    if second == first + 1 and code.co_argcount and owner == code.co_varnames[0]:
        found.dynamic_self = True
    else:
        found.dynamic = True
