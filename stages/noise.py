"""Random inputs of the dtypes and sizes that a method takes, for want of others."""

from __future__ import annotations

from typing import Any

import etgraph
from etgraph.artifact import Artifact, Executorch, Inputs


@etgraph.service("noise_inputs")
def noise_inputs(artifact: Artifact, method: str) -> Inputs | None:
    """Return inputs of seeded random numbers: standard normal, or 0 and 1 for whole numbers and bool.

    Dynamic sizes are those that the program was traced with; of a `.pte`, its bounds.

    Returns:
        None where what the method takes is not known.
    """
    if isinstance(artifact, Executorch):
        return _for_emitted(artifact.methods[method])
    if artifact.kind == "module":
        return None
    from torch.export import ExportedProgram
    from torch.utils import _pytree as pytree

    from stages.support.tracing import concrete_values, trace_inputs

    program = artifact.methods[method]
    if not isinstance(program, ExportedProgram):
        args, kwargs = trace_inputs(program, method)
    else:
        args, kwargs = pytree.tree_unflatten(concrete_values(program, method), program.call_spec.in_spec)
    args, kwargs = pytree.tree_map(_Drawn(), (args, kwargs))
    return Inputs(*args, **kwargs)


def _for_emitted(described: Any) -> Inputs | None:
    import torch

    drawn = _Drawn()
    inputs: list[Any] = []
    for one in described["inputs"]:
        if one["type"] != "tensor" or not hasattr(torch, _dtype_name(one["dtype"])):
            return None
        inputs.append(drawn(torch.empty(one["shape"], dtype=getattr(torch, _dtype_name(one["dtype"])))))
    return Inputs(*inputs)


def _dtype_name(name: str) -> str:
    """Return torch's name of a scalar type of ExecuTorch's schema."""
    return {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
            "short": "int16", "char": "int8", "byte": "uint8"}.get(name, name)  # fmt: skip


class _Drawn:
    """Draws a tensor like the one that it is given; leaves other values alone."""

    def __init__(self) -> None:
        import torch

        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, value: Any) -> Any:
        import torch

        if not isinstance(value, torch.Tensor):
            return value
        if value.is_floating_point():
            drawn = torch.randn(value.shape, generator=self.generator)
        else:
            drawn = torch.randint(0, 2, value.shape, generator=self.generator)
        made = torch.empty_like(value, memory_format=torch.preserve_format)
        made.copy_(drawn)
        return made
