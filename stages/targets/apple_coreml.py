"""iPhones, iPads and Macs: Core ML, and XNNPACK for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.coreml import COREML, coreml_then_xnnpack

_LOWER = etgraph.Needs(
    distributions=("coremltools>=9.0,<10",), extra="coreml", systems=("Darwin", "Linux"), machines=("x86_64",)
)
_RUN = {"ios-arm64": None, "macos-arm64": etgraph.Needs(systems=("Darwin",))}

for _place, _run in _RUN.items():

    @etgraph.target(f"{_place}-coreml-fp16", backends=COREML, to_lower=_LOWER, to_run=_run, snr=40)
    def fp16() -> etgraph.Recipe:
        """Core ML in fp16, XNNPACK in fp32 for the rest."""
        return coreml_then_xnnpack("coreml-fp16", "coreml_fp16")

    @etgraph.target(f"{_place}-coreml-fp32", backends=COREML, to_lower=_LOWER, to_run=_run, snr=80)
    def fp32() -> etgraph.Recipe:
        """Core ML in fp32, XNNPACK for the rest."""
        return coreml_then_xnnpack("coreml-fp32", "coreml_fp32")

    @etgraph.target(f"{_place}-coreml-int8", backends=COREML, to_lower=_LOWER, to_run=_run, snr=20)
    def int8() -> etgraph.Recipe:
        """Core ML in int8, static, XNNPACK for the rest; needs calibration inputs."""
        import coremltools

        # Quantized activations came with iOS 17 and macOS 14.
        return coreml_then_xnnpack(
            "coreml-int8", "coreml_pt2e_int8_static", minimum_deployment_target=coremltools.target.iOS17
        )

    @etgraph.target(f"{_place}-coreml-int4w", backends=COREML, to_lower=_LOWER, to_run=_run, snr=10)
    def int4w() -> etgraph.Recipe:
        """Core ML in fp16 with 4-bit weights of linear layers, XNNPACK for the rest; from iOS 18 and macOS 15."""
        return coreml_then_xnnpack("coreml-int4w", "coreml_torchao_int4_weight_only_per_channel")
