"""What partitioners say of nodes while they partition, node by node, heard at the doors by which upstream says it.

Upstream (executorch 1.5) has three such doors: `WhyNoPartition` (XNNPACK), `WhyNoPartitionReporter` (Arm's backends)
and `VulkanSupportedOperators.log_skip`. Each ends in a log; here the node and the words are taken before that. Logging
is left as it is: what a user's log shows of a partitioner, it shows as before.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from executorch.exir.backend.utils import WhyNoPartition, WhyNoPartitionReporter
from torch.fx import Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner

__all__ = ["Heard", "partitioners_heard"]


@dataclass
class Heard:
    """What was heard.

    Args:
        said: node and words, in the order in which they were said.
        supports: the objects that torch's capability-based partitioner asked about nodes, with the module of each.
    """

    said: list[tuple[Node, str]] = field(default_factory=list)
    supports: list[tuple[Any, Any]] = field(default_factory=list)


_listening: ContextVar[Heard | None] = ContextVar("_listening", default=None)
_doors = threading.Lock()


@contextlib.contextmanager
def partitioners_heard() -> Iterator[Heard]:
    """Listen to the partitioners that run in this thread inside the block."""
    heard = Heard()
    token = _listening.set(heard)
    try:
        with (
            _doors,
            _listening_at(WhyNoPartition, "__call__", _noted),
            _listening_at(WhyNoPartitionReporter, "report_reject", _noted),
            _listening_at(CapabilityBasedPartitioner, "__init__", _noted_support),
            _listening_at_vulkan(),
        ):
            yield heard
    finally:
        _listening.reset(token)


def _noted(heard: Heard, asked: Any, node: Any, reason: str = "") -> None:
    if isinstance(node, Node) and reason:
        heard.said.append((node, " ".join(str(reason).split())))


def _noted_support(heard: Heard, asked: Any, graph_module: Any, operator_support: Any, *rest: Any, **more: Any) -> None:
    heard.supports.append((graph_module, operator_support))


@contextlib.contextmanager
def _listening_at(owner: type, name: str, note: Callable[..., None]) -> Iterator[None]:
    """Let calls of a method be noted, in the thread that listens, and then be carried out as ever."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def heard_first(*args: Any, **kwargs: Any) -> Any:
        heard = _listening.get()
        if heard is not None:
            note(heard, *args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, name, heard_first)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _listening_at_vulkan() -> contextlib.AbstractContextManager[None]:
    module = sys.modules.get("executorch.backends.vulkan.partitioner.vulkan_partitioner")
    if module is None:
        return contextlib.nullcontext()
    return _listening_at(module.VulkanSupportedOperators, "log_skip", _noted)
