"""The ExecuTorch runtime of this host: which backends and kernels it was built with."""

from __future__ import annotations

from dataclasses import dataclass

from etgraph.artifact import Executorch
from etgraph.errors import BackendUnavailableError


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


def check_host(program: Executorch) -> None:
    """Say by name what this host's runtime lacks to execute a program, before anyone loads it."""
    import executorch.kernels.quantized  # noqa: F401  its kernels join the runtime's registry
    from executorch.runtime import Runtime

    runtime = Runtime.get()
    has = set(runtime.backend_registry.registered_backend_names)
    needed = {backend for method in program.methods.values() for backend in method.get("backends", ())}
    if needed - has:
        raise BackendUnavailableError(
            f"this program needs {', '.join(sorted(needed - has))}, which the ExecuTorch runtime of this host does not "
            f"have; it has {', '.join(sorted(has))}",
            hint="The program itself is whole; execute it on a device that has the backend.",
        )
    kernels = set(runtime.operator_registry.operator_names)
    wanted = {op for method in program.methods.values() for op in method.get("operators", ())}
    if wanted - kernels:
        raise BackendUnavailableError(
            f"this program needs kernels that the ExecuTorch runtime of this host does not have: "
            f"{', '.join(sorted(wanted - kernels))}",
            hint="Execute it with a runtime that was built with the library of these kernels.",
        )
