"""`--shape 1x3x224x224[:dtype]` and `--shape name=...`: example inputs of random numbers, the same every time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etgraph.errors import UsageError
from etgraph.recipes import closest

__all__ = ["DTYPES", "ShapeSpec", "parse_shape", "random_inputs"]

_FLOATS = ("float32", "float16", "bfloat16", "float64")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
DTYPES = (*_FLOATS, *_INTEGERS)

_SHAPE = re.compile(r"(?:(?P<name>[^\W\d]\w*)=)?(?P<sizes>scalar|\d+(?:x\d+)*)(?::(?P<dtype>\w+))?")
_HINT = (
    "Write sizes with x between them and the dtype after a colon: 1x3x224x224, 1x16:int64, scalar:float32, "
    "mask=1x16:bool for a keyword input."
)


@dataclass(frozen=True)
class ShapeSpec:
    """One input: its name where it is a keyword input, its sizes, its dtype as torch names it."""

    name: str
    sizes: tuple[int, ...]
    dtype: str


def parse_shape(given: str) -> ShapeSpec:
    """Read one `--shape`; torch is not needed for it."""
    match = _SHAPE.fullmatch(given.strip())
    if match is None:
        raise UsageError(f"--shape {given} cannot be read", hint=_HINT)
    dtype = match["dtype"] or "float32"
    if dtype not in DTYPES:
        raise UsageError(
            f"--shape {given}: there is no dtype {dtype!r} for inputs{closest(dtype, DTYPES)}",
            hint=f"Dtypes: {', '.join(DTYPES)}.",
        )
    sizes = () if match["sizes"] == "scalar" else tuple(map(int, match["sizes"].split("x")))
    return ShapeSpec(name=match["name"] or "", sizes=sizes, dtype=dtype)


def random_inputs(specs: Sequence[ShapeSpec]) -> Any:
    """Return `etgraph.Inputs` of random tensors, drawn from seed 0 in the order given.

    Floating-point numbers come from a standard normal distribution; integers and bool are 0 or 1, which every
    embedding table and mask can take.
    """
    import torch

    from etgraph.artifact import Inputs

    generator = torch.Generator().manual_seed(0)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for spec in specs:
        if spec.dtype in _FLOATS:
            drawn = torch.randn(spec.sizes, generator=generator)
        else:
            drawn = torch.randint(0, 2, spec.sizes, generator=generator)
        tensor = drawn.to(getattr(torch, spec.dtype))
        if not spec.name:
            args.append(tensor)
        elif spec.name in kwargs:
            raise UsageError(f"--shape gives the input {spec.name!r} twice")
        else:
            kwargs[spec.name] = tensor
    return Inputs(*args, **kwargs)
