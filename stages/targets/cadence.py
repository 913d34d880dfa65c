"""Cadence's Xtensa DSPs, by operator library."""

from __future__ import annotations

import etgraph
from stages.recipes.cadence import cadence_int8

#: executorch 1.5.1, `backends/cadence/aot/fuse_ops.py`.
_LOWER = etgraph.Needs(python=((3, 12), "executorch's Cadence passes import typing.override"))

etgraph.target("baremetal-xtensa-cadence-int8", backends=("cadence",), to_lower=_LOWER, snr=20)(cadence_int8)
