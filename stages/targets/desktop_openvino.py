"""Intel's processors on desktops: OpenVINO, and XNNPACK for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.openvino import openvino_fp32, openvino_int8
from stages.recipes.xnnpack import xnnpack_fp32

_BACKENDS = ("OpenvinoBackend", "XnnpackBackend")
#: executorch 1.5 asks for these; nncf 3.0.0 and 3.4.0 cannot be imported beside torch 2.13.
_PACKAGES = ("openvino>=2025.4,<2026", "nncf==3.1.0")
_LOWER = etgraph.Needs(distributions=_PACKAGES, extra="openvino")

for _place, _system in (("linux-x86_64", "Linux"), ("windows-x86_64", "Windows")):
    _RUN = etgraph.Needs(distributions=_PACKAGES[:1], extra="openvino", systems=(_system,), machines=("x86_64",))

    @etgraph.target(f"{_place}-openvino-fp32", backends=_BACKENDS, to_lower=_LOWER, to_run=_RUN, snr=50)
    def fp32() -> etgraph.Recipe:
        """OpenVINO in fp32, XNNPACK for the rest."""
        return etgraph.get_recipe([openvino_fp32(), xnnpack_fp32()])

    @etgraph.target(f"{_place}-openvino-int8", backends=_BACKENDS, to_lower=_LOWER, to_run=_RUN, snr=20)
    def int8() -> etgraph.Recipe:
        """OpenVINO in int8, static, XNNPACK for the rest; needs calibration inputs."""
        return etgraph.get_recipe([openvino_int8(), xnnpack_fp32()])
