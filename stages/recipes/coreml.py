"""Core ML by upstream's recipes, with XNNPACK for what it leaves."""

from __future__ import annotations

from typing import Any

import etgraph
from stages.recipes.xnnpack import xnnpack_fp32

COREML = ("CoreMLBackend", "XnnpackBackend")


def coreml_then_xnnpack(name: str, upstream: str, **options: Any) -> etgraph.Recipe:
    """Return upstream's recipe of that name with XNNPACK after it, under a name of its own."""
    from dataclasses import replace

    first = etgraph.get_recipe(upstream, **options)
    return replace(etgraph.get_recipe([first, xnnpack_fp32()]), name=name, backends=COREML)
