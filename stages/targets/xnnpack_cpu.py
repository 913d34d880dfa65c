"""CPUs of phones and desktops: XNNPACK, portable kernels for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.xnnpack import xnnpack_fp32
from stages.recipes.xnnpack_int8 import xnnpack_int8, xnnpack_int8_dynamic
from stages.recipes.xnnpack_weights import xnnpack_8da4w, xnnpack_int4_weight_only, xnnpack_int8_weight_only

_ANYWHERE = etgraph.Needs()
_BACKENDS = ("XnnpackBackend",)
_PLACES = ("android-arm64", "linux-x86_64", "linux-arm64", "macos-arm64", "windows-x86_64")

for _place in _PLACES:
    etgraph.target(f"{_place}-xnnpack-fp32", backends=_BACKENDS, to_run=_ANYWHERE, snr=80)(xnnpack_fp32)
    etgraph.target(f"{_place}-xnnpack-int8", backends=_BACKENDS, to_run=_ANYWHERE, snr=20)(xnnpack_int8)
    etgraph.target(f"{_place}-xnnpack-int8_dynamic", backends=_BACKENDS, to_run=_ANYWHERE, snr=20)(xnnpack_int8_dynamic)
    etgraph.target(f"{_place}-xnnpack-8da4w", backends=_BACKENDS, to_run=_ANYWHERE, snr=10)(xnnpack_8da4w)
    etgraph.target(f"{_place}-xnnpack-int8_weight_only", backends=_BACKENDS, to_run=_ANYWHERE, snr=30)(
        xnnpack_int8_weight_only
    )
    etgraph.target(f"{_place}-xnnpack-int4_weight_only", backends=_BACKENDS, to_run=_ANYWHERE, snr=10)(
        xnnpack_int4_weight_only
    )
