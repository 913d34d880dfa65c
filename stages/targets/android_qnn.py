"""NPUs of Qualcomm's phones: QNN, and XNNPACK for what it leaves."""

from __future__ import annotations

import etgraph
from stages.recipes.qnn import qnn_fp16_then_xnnpack

_LOWER = etgraph.Needs(
    variable=("QNN_SDK_ROOT", "Qualcomm's AI Engine Direct SDK"), systems=("Linux",), machines=("x86_64",)
)


@etgraph.target("android-arm64-qnn-fp16", backends=("QnnBackend", "XnnpackBackend"), to_lower=_LOWER, snr=40)
def fp16() -> etgraph.Recipe:
    """Snapdragon 8 Gen 3's NPU (HTP) in fp16, XNNPACK in fp32 for the rest."""
    return qnn_fp16_then_xnnpack()
