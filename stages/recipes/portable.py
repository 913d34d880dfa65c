"""No backend: every operator runs on ExecuTorch's portable kernels."""

from __future__ import annotations

import etgraph


@etgraph.recipe("portable")
def portable() -> etgraph.Recipe:
    """Portable kernels for everything, nothing delegated; runs on any host that has ExecuTorch."""
    return etgraph.Recipe(name="portable", stages={"torch_export": {}, "to_edge": {}, "to_executorch": {}})
