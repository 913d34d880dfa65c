"""Recognise what torch and ExecuTorch hand around, for the engine."""

from __future__ import annotations

import sys
from typing import Any

import etgraph
from etgraph.artifact import Artifact


@etgraph.recognizer
def recognise(given: Any) -> Artifact | None:
    """Turn an object of torch or executorch into an artifact; None when it is neither's."""
    if "torch" not in sys.modules:
        return None
    from stages.support.kinds import artifact_of

    return artifact_of(given)
