"""What this environment can do: versions, the runtime of the host, and which backends can lower here."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
from dataclasses import dataclass
from typing import Any

import etgraph


@dataclass(frozen=True)
class _Backend:
    """What lowering for a backend takes, in executorch 1.5.

    Args:
        module: holds its partitioner; imported to see whether it can be, unless empty.
        packages: import names that must be installed besides executorch.
        variable: an environment variable that must point to an SDK.
        install: what to do where something is missing.
    """

    name: str
    module: str = ""
    packages: tuple[str, ...] = ()
    variable: str = ""
    install: str = ""


#: Importing executorch.backends.qualcomm or its recipes can start a download, so only its SDK is looked for.
_BACKENDS = (
    _Backend("XNNPACK", "executorch.backends.xnnpack.partition.xnnpack_partitioner"),
    _Backend(
        "Core ML",
        "executorch.backends.apple.coreml.partition",
        ("coremltools",),
        install="pip install coremltools (Linux x86-64 or macOS)",
    ),
    _Backend("Vulkan", "executorch.backends.vulkan.partitioner.vulkan_partitioner"),
    _Backend(
        "OpenVINO",
        "executorch.backends.openvino.partitioner",
        ("openvino", "nncf"),
        install='pip install "openvino>=2025.4,<2026" nncf==3.1.0',
    ),
    _Backend(
        "Ethos-U",
        "executorch.backends.arm.ethosu",
        ("ethosu", "tosa_serializer", "ml_dtypes"),
        install="pip install ethos-u-vela==5.1.0 tosa-tools==2026.5.0 ml_dtypes==0.5.1",
    ),
    _Backend(
        "TOSA",
        "executorch.backends.arm.tosa.partitioner",
        ("tosa_serializer", "ml_dtypes"),
        install="pip install tosa-tools==2026.5.0 ml_dtypes==0.5.1",
    ),
    _Backend(
        "Cortex-M",
        "executorch.backends.cortex_m.passes.cortex_m_pass_manager",
        ("tosa_serializer",),
        install="pip install tosa-tools==2026.5.0",
    ),
    _Backend("Cadence", "executorch.backends.cadence.aot.compiler"),
    _Backend("QNN", variable="QNN_SDK_ROOT", install="install Qualcomm's QNN SDK and set QNN_SDK_ROOT"),
)


@etgraph.service("environment")
def environment() -> dict[str, Any]:
    """Describe this environment; it imports executorch, and downloads nothing.

    Returns:
        `platform`, `runtime` (`loads`, `backends`, `kernels`), and `backends`: for each, whether it can lower here
        and what is missing.
    """
    from stages.support.runtime import runtime_of_host

    host = runtime_of_host()
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "runtime": {
            "loads": host is not None,
            "backends": sorted(host.backends) if host else [],
            "kernels": len(host.operators) if host else 0,
        },
        "backends": [_checked(backend) for backend in _BACKENDS],
    }


def _checked(backend: _Backend) -> dict[str, Any]:
    problem = _missing(backend)
    if not problem and backend.module:
        try:
            importlib.import_module(backend.module)
        except Exception as error:
            problem = f"{backend.module} cannot be imported: {type(error).__name__}: {error}".partition("\n")[0]
    return {
        "name": backend.name,
        "lowers_here": not problem,
        "problem": problem,
        "install": backend.install if problem else "",
    }


def _missing(backend: _Backend) -> str:
    if backend.variable and not os.path.isdir(os.environ.get(backend.variable, "")):
        return f"the environment variable {backend.variable} does not name a folder"
    absent = [name for name in backend.packages if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""
