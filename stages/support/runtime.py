"""The ExecuTorch runtime of this host: which backends and kernels it was built with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostRuntime:
    """Names as a `.pte` has them: backends such as `XnnpackBackend`, operators such as `aten::add.out`."""

    backends: frozenset[str]
    operators: frozenset[str]


def runtime_of_host() -> HostRuntime | None:
    """Return what the runtime of the installed executorch has; None when it cannot be loaded here."""
    try:
        import executorch.kernels.quantized  # noqa: F401  its kernels join the runtime's registry
        from executorch.runtime import Runtime

        runtime = Runtime.get()
    except (ImportError, OSError):
        return None
    return HostRuntime(
        backends=frozenset(runtime.backend_registry.registered_backend_names),
        operators=frozenset(runtime.operator_registry.operator_names),
    )
