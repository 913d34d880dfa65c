"""Recipes and targets with options as text: `xnnpack_8da4w(group_size=64)`, as it is typed and as plans show it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from etgraph.errors import UsageError

__all__ = ["read_options", "shown_with"]


def read_options(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name(option=value, ...)` into the name and the options; text without parentheses has none.

    Values are Python literals: numbers, True, None, 'text', lists.

    Raises:
        UsageError: it is not of that form.
    """
    name, opened, _ = text.partition("(")
    if not opened:
        return text, {}
    name = name.strip()
    try:
        call = ast.parse(f"_({text.partition('(')[2]}", mode="eval").body
    except SyntaxError:
        call = None
    if not name or not _is_plain(call):
        raise UsageError(
            f"{text!r} is not a name with options",
            hint=f"Write {name or 'NAME'}(option=value), commas between options; within quotation marks in a shell.",
        )
    assert isinstance(call, ast.Call)
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        try:
            options[str(keyword.arg)] = ast.literal_eval(keyword.value)
        except ValueError:
            given = ast.unparse(keyword.value)
            raise UsageError(
                f"option {keyword.arg} of {name} is given as {given}, which is no literal value",
                hint=f"Write a number, True, False, None, or text within quotation marks: {keyword.arg}='{given}'.",
            ) from None
    return name, options


def _is_plain(call: ast.expr | None) -> bool:
    """Whether it is one call with nothing but options, each given once."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        return False
    given = [keyword.arg for keyword in call.keywords]
    return None not in given and len(set(given)) == len(given)


def shown_with(name: str, options: Mapping[str, Any]) -> str:
    """Write a name with its options, as `read_options` reads it."""
    return f"{name}({', '.join(f'{option}={value!r}' for option, value in options.items())})" if options else name
