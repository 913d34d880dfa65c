"""Arm's Cortex-M microcontrollers without an accelerator: operators of a library on CMSIS-NN."""

from __future__ import annotations

import etgraph
from stages.recipes.cortex_m import cortex_m_int8

_BACKENDS = ("cortex_m",)
#: executorch 1.5.1: the passes of Cortex-M import those of Arm's other backends, and these import tosa_serializer.
_LOWER = etgraph.Needs(distributions=("tosa-tools==2026.5.0",), extra="cortex-m")


@etgraph.target("baremetal-cortex_m4-cmsis_nn-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def m4() -> etgraph.Recipe:
    """CMSIS-NN on Cortex-M4 in int8, by operator library; needs calibration inputs."""
    return cortex_m_int8(cpu="cortex-m4")


@etgraph.target("baremetal-cortex_m7-cmsis_nn-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def m7() -> etgraph.Recipe:
    """CMSIS-NN on Cortex-M7 in int8, by operator library; needs calibration inputs."""
    return cortex_m_int8(cpu="cortex-m7")


@etgraph.target("baremetal-cortex_m33-cmsis_nn-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def m33() -> etgraph.Recipe:
    """CMSIS-NN on Cortex-M33 in int8, by operator library; needs calibration inputs."""
    return cortex_m_int8(cpu="cortex-m33")


@etgraph.target("baremetal-cortex_m55-cmsis_nn-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def m55() -> etgraph.Recipe:
    """CMSIS-NN on Cortex-M55 in int8, by operator library; needs calibration inputs."""
    return cortex_m_int8(cpu="cortex-m55")


@etgraph.target("baremetal-cortex_m85-cmsis_nn-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def m85() -> etgraph.Recipe:
    """CMSIS-NN on Cortex-M85 in int8, by operator library; needs calibration inputs."""
    return cortex_m_int8(cpu="cortex-m85")
