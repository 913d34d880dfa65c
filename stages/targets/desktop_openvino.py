"""Intel's processors on desktops: OpenVINO, and XNNPACK for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.openvino import openvino_fp32, openvino_int8
from stages.recipes.xnnpack import xnnpack_fp32

_BACKENDS = ("OpenvinoBackend", "XnnpackBackend")
#: executorch 1.5 asks for these; nncf 3.0.0 and 3.4.0 cannot be imported beside torch 2.13.
_PACKAGES = ("openvino>=2025.4,<2026", "nncf==3.1.0")
_LOWER = etgraph.Needs(distributions=_PACKAGES, extra="openvino")
#: On processors that multiply in bfloat16, OpenVINO (2025.4) does so unless told otherwise: a linear layer is then at
#: 50 dB. It is told when a model is loaded (INFERENCE_PRECISION_HINT); what is set when it is compiled is not kept in
#: the compiled model, and ExecuTorch's runtime (1.5) sets nothing. Without bfloat16 it is above 120 dB.
_SNR_IN_BFLOAT16 = 40

for _place, _system in (("linux-x86_64", "Linux"), ("windows-x86_64", "Windows")):
    _RUN = etgraph.Needs(distributions=_PACKAGES[:1], extra="openvino", systems=(_system,), machines=("x86_64",))

    @etgraph.target(f"{_place}-openvino-fp32", backends=_BACKENDS, to_lower=_LOWER, to_run=_RUN, snr=_SNR_IN_BFLOAT16)
    def fp32() -> etgraph.Recipe:
        """OpenVINO in fp32, computed in bfloat16 where the processor can, XNNPACK for the rest."""
        return etgraph.get_recipe([openvino_fp32(), xnnpack_fp32()])

    @etgraph.target(f"{_place}-openvino-int8", backends=_BACKENDS, to_lower=_LOWER, to_run=_RUN, snr=20)
    def int8() -> etgraph.Recipe:
        """OpenVINO in int8, static, XNNPACK for the rest; needs calibration inputs."""
        return etgraph.get_recipe([openvino_int8(), xnnpack_fp32()])
