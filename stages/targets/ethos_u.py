"""Microcontrollers with Arm's Ethos-U accelerator, compiled for by Vela; boundaries in operators of Cortex-M."""

from __future__ import annotations

import etgraph

_BACKENDS = ("EthosUBackend",)
_LOWER = etgraph.Needs(
    distributions=("ethos-u-vela==5.1.0", "tosa-tools==2026.5.0", "ml_dtypes==0.5.1"), extra="ethos-u"
)


@etgraph.target("corstone300-cortex_m55-ethos_u55-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def u55() -> etgraph.Recipe:
    """Ethos-U55 with 128 MACs in int8; needs calibration inputs."""
    return etgraph.get_recipe("arm_ethos_u55_int8")


@etgraph.target("corstone300-cortex_m55-ethos_u65-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def u65() -> etgraph.Recipe:
    """Ethos-U65 with 256 MACs in int8; needs calibration inputs."""
    return etgraph.get_recipe("arm_ethos_u65_int8")


@etgraph.target("corstone320-cortex_m85-ethos_u85-int8", backends=_BACKENDS, to_lower=_LOWER, snr=20)
def u85() -> etgraph.Recipe:
    """Ethos-U85 with 256 MACs in int8; needs calibration inputs."""
    return etgraph.get_recipe("arm_ethos_u85_int8")
