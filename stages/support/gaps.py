"""How far one value is from another."""

from __future__ import annotations

import math
from typing import Any

import torch

from etgraph.numerics import Gap

#: Of what cannot be compared number by number: another shape, another plain value.
NOTHING_ALIKE = Gap(math.inf, math.inf, -math.inf, 0.0)


def gap_between(got: Any, wanted: Any) -> Gap:
    """Compare two values element by element; two that are not tensors, nor numbers, by equality.

    Two NaN at one place are the same, and so are two infinities of one sign.
    """
    if not _is_numeric(wanted) or not _is_numeric(got):
        return Gap() if type(got) is type(wanted) and got == wanted else NOTHING_ALIKE
    a, b = torch.as_tensor(got).detach(), torch.as_tensor(wanted).detach()
    if a.shape != b.shape:
        return NOTHING_ALIKE
    if not b.numel():
        return Gap()
    a, b = _wide(a), _wide(b)
    same = (a == b) | (a.isnan() & b.isnan())
    gap = torch.where(same, torch.zeros_like(a), a - b).abs().to(torch.float64).nan_to_num(nan=math.inf)
    finite = b.isfinite()
    absolute = float(gap.max())
    scale = float(b[finite].abs().max()) if bool(finite.any()) else 0.0
    return Gap(
        absolute=absolute,
        relative=absolute / scale if scale else absolute,
        snr=decibel(b[finite].abs(), gap),
        cosine=_cosine(a, b),
        argmax=_same_largest(a, b),
    )


def _is_numeric(value: Any) -> bool:
    return isinstance(value, torch.Tensor | bool | int | float)


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def decibel(wanted: torch.Tensor, gap: torch.Tensor) -> float:
    """Return ten times the logarithm of the energy of a signal over that of an error."""
    signal, noise = float(wanted.square().sum()), float(gap.square().sum())
    if noise == 0.0:
        return math.inf
    return 10.0 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf


def _cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    both = a.isfinite() & b.isfinite()
    a, b = a[both], b[both]
    lengths = float(torch.linalg.vector_norm(a) * torch.linalg.vector_norm(b))
    if lengths == 0.0:
        return 1.0 if torch.equal(a, b) else 0.0
    return min(1.0, float(torch.vdot(b, a).real) / lengths)


def _same_largest(a: torch.Tensor, b: torch.Tensor) -> float | None:
    if b.is_complex() or not b.dim() or b.shape[-1] < 2:
        return None
    return float((a.argmax(-1) == b.argmax(-1)).to(torch.float64).mean())
