"""Inputs on the command line: `file.py:name`, `package.module:name`, or a file of tensors."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from etgraph.cli.source import Reference, called, is_to_be_called, read_reference, value_of
from etgraph.errors import UsageError

__all__ = ["load_samples", "parse_samples"]

_FORMS = "It is file.py:name, package.module:name, or a .pt file that torch.save made of tensors."


def parse_samples(given: str, flag: str) -> Reference:
    """Read what a user wrote for inputs; nothing is imported."""
    reference = read_reference(Reference(given, what=flag, forms=_FORMS), "name")
    if reference.is_program_file and reference.path is not None and reference.path.suffix not in (".pt", ".pth"):
        raise UsageError(f"{flag} {given} is neither code nor a .pt file", hint=_FORMS)
    return reference


def load_samples(reference: Reference, *, call: bool) -> Any:
    """Import the code, or read the file, and return the samples in it, in whatever form they are.

    Args:
        reference: what `parse_samples` gave.
        call: call a function and read an iterator, for what takes nothing but samples.

    Raises:
        UsageError: the code cannot be imported, the name is not there, or the file holds more than tensors.
    """
    if reference.is_program_file:
        return _tensors_in(reference)
    value = value_of(reference)
    if call and is_to_be_called(value):
        value = called(value, reference)
    return list(value) if call and isinstance(value, Iterator) else value


def _tensors_in(reference: Reference) -> Any:
    import torch

    try:
        return torch.load(reference.path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(
            f"{reference.shown} cannot be read: {first}",
            hint="Save lists, tuples and mappings of tensors with torch.save; anything else needs code: file.py:name.",
        ) from None
