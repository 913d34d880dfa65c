"""TOSA 1.0, the operator set that Arm's compilers take: for tools that go on from it."""

from __future__ import annotations

import etgraph

_BACKENDS = ("TOSABackend",)
_LOWER = etgraph.Needs(distributions=("tosa-tools==2026.5.0", "ml_dtypes==0.5.1"), extra="tosa")


@etgraph.target("generic-tosa_1.0-tosa-fp32", backends=_BACKENDS, to_lower=_LOWER, snr=80)
def fp32() -> etgraph.Recipe:
    """TOSA 1.0 in floating point."""
    return etgraph.get_recipe("arm_tosa_fp")


@etgraph.target("generic-tosa_1.0-tosa-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def int8() -> etgraph.Recipe:
    """TOSA 1.0 in int8; needs calibration inputs."""
    return etgraph.get_recipe("arm_tosa_int8")
