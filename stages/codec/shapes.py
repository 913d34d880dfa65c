"""Dynamic shapes as `torch.export.export(dynamic_shapes=)` takes them."""

from __future__ import annotations

from typing import Any

from stages.codec.context import Reader, Writer, malformed, refuse

__all__ = ["read_shapes", "write_shapes"]

_HINTS = ("AUTO", "DYNAMIC", "STATIC")


def write_shapes(writer: Writer, shapes: Any) -> Any:
    """Encode nested containers of None, int, `Dim`, and `Dim.AUTO`, `Dim.DYNAMIC`, `Dim.STATIC`.

    Raises:
        UsageError: anything else, for instance a ShapesCollection, which is tied to tensors by identity.
    """
    if shapes is None or isinstance(shapes, (bool, int, str)):
        return shapes
    if isinstance(shapes, dict):
        return {"d": [[key, write_shapes(writer, value)] for key, value in shapes.items()]}
    if isinstance(shapes, list):
        return [write_shapes(writer, value) for value in shapes]
    if type(shapes) is tuple:
        return {"t": [write_shapes(writer, value) for value in shapes]}
    kind = type(shapes).__name__
    if kind == "_DimHint":
        return {"hint": [shapes.type.name, shapes.min, shapes.max, shapes._factory]}
    if kind == "_StaticDim":
        return {"static": shapes.value}
    if kind == "_DerivedDim":
        # torch.export permits linear functions with integer coefficients only
        intercept = shapes.fn(0)
        return {
            "derived": [
                shapes.__name__,
                write_shapes(writer, shapes.root),
                shapes.fn(1) - intercept,
                intercept,
            ]
        }
    if kind == "Dim":
        return {"dim": [shapes.__name__, _bound(shapes.min), _bound(shapes.max)]}
    raise refuse(
        writer.where,
        f"dynamic shapes of type {type(shapes).__module__}.{type(shapes).__qualname__}",
        "Give them as a mapping or tuple that follows the inputs.",
    )


def _bound(value: Any) -> Any:
    return int(value) if isinstance(value, int) or str(value).lstrip("-").isdigit() else str(value)


def read_shapes(reader: Reader, encoded: Any) -> Any:
    """Make dynamic shapes again; equal dimensions are one object, as torch.export wants them."""
    if encoded is None or isinstance(encoded, (bool, int, str)):
        return encoded
    if isinstance(encoded, list):
        return [read_shapes(reader, value) for value in encoded]
    ((tag, body),) = encoded.items()
    if tag == "d":
        return {key: read_shapes(reader, value) for key, value in body}
    if tag == "t":
        return tuple(read_shapes(reader, value) for value in body)
    return _read_dimension(reader, tag, body)


def _read_dimension(reader: Reader, tag: str, body: Any) -> Any:
    from torch.export import Dim
    from torch.export.dynamic_shapes import _DimHint, _DimHintType, _StaticDim
    from torch.utils._sympy.numbers import int_oo

    if tag == "hint" and body[0] in _HINTS:
        return _DimHint(_DimHintType[body[0]], *body[1:])
    if tag == "static":
        return _StaticDim(int(body))
    key = ("dim", str(body))
    if key in reader.shared:
        return reader.shared[key]
    if tag == "derived":
        _, root, factor, intercept = body
        dimension = read_shapes(reader, root)
        if factor != 1:
            dimension = int(factor) * dimension
        if intercept:
            dimension = dimension + int(intercept)
    elif tag == "dim":
        bounds = [{"int_oo": int_oo, "-int_oo": -int_oo}.get(b, b) for b in body[1:]]
        dimension = Dim(body[0], min=bounds[0], max=bounds[1])
    else:
        raise malformed("a dynamic dimension", {tag: body})
    reader.shared[key] = dimension
    return dimension
