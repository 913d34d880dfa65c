"""Data that is given to be read: arrays, data loaders, and one-shot iterators, which are refused."""

from __future__ import annotations

import collections.abc
import io
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from etgraph.errors import Undescribable
from etgraph.hashing import hasher
from etgraph.identity.description import Description
from etgraph.identity.plain import describe_alone

if TYPE_CHECKING:
    from etgraph.identity.describe import Walk

__all__ = ["describe_data", "materialise"]


def materialise(samples: Iterable[Any]) -> tuple[Any, ...]:
    """Run a generator or iterator once and keep what it gives, so that it can be described and read again."""
    return tuple(samples)


def describe_data(walk: Walk, obj: Any) -> Description | None:
    """Describe numpy values and data loaders, refuse one-shot iterators; None for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(obj, numpy.ndarray):
            return walk.once(obj) or _array(walk, numpy, obj)
        if isinstance(obj, numpy.generic) and not obj.dtype.hasobject:
            own = f"numpy.{obj.dtype.str} #{obj.tobytes().hex()}"
            return Description("numpy", own, shown=repr(obj))
        if isinstance(obj, numpy.dtype):
            return Description("numpy", f"numpy.dtype({obj.descr if obj.names else obj.str!r})")
        if isinstance(obj, numpy.random.Generator):
            state = ("(state)", walk.visit(obj.bit_generator.state))
            return walk.once(obj) or Description("numpy", "random generator", (state,))
    utils_data = sys.modules.get("torch.utils.data")
    if utils_data is not None and type(obj) is utils_data.DataLoader:
        return walk.once(obj) or _loader(walk, utils_data, obj)
    if isinstance(obj, io.IOBase):
        walk.refuse(obj, "it is an open file", hint="Give a pathlib.Path, or the bytes.")
    if isinstance(obj, collections.abc.Iterator):
        walk.refuse(
            obj,
            "it can be read only once, and reading it to describe it would use it up",
            hint="Give a list, or etgraph.identity.materialise(it), or a function that makes it.",
        )
    return None


def _array(walk: Walk, numpy: Any, a: Any) -> Description:
    cls = type(a)
    if cls is not numpy.ndarray and cls is not numpy.memmap:
        walk.refuse(a, "it is a subclass of numpy.ndarray", hint="Give a plain array: numpy.asarray(it).")
    head = f"numpy {a.dtype.descr if a.dtype.names else a.dtype.str}{list(a.shape)}"
    if a.dtype.hasobject:
        return Description("numpy", head, (("(items)", walk.visit(a.tolist(), "(items)")),))
    dense = a if a.flags.c_contiguous else a.T if a.flags.f_contiguous else numpy.ascontiguousarray(a)
    content = hasher()
    if a.size:
        content.update(memoryview(dense.reshape(-1).view(numpy.uint8)))
    return Description("numpy", f"{head} strides {list(a.strides)} #{content.hexdigest()}", shown=head)


def _loader(walk: Walk, data: Any, loader: Any) -> Description:
    """A loader by its dataset and order; by what it gives, where the dataset cannot be told.

    A loader that shuffles without a seeded generator gives another order each time and is refused.
    """
    sampler = loader.sampler
    shuffles = isinstance(sampler, (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler))
    if shuffles and loader.generator is None and sampler.generator is None:
        walk.refuse(
            loader,
            "it shuffles with a generator that has no seed of its own",
            hint="Give it generator=torch.Generator().manual_seed(0), or shuffle=False.",
        )
    names = (
        "dataset",
        "batch_size",
        "drop_last",
        "sampler",
        "batch_sampler",
        "collate_fn",
        "generator",
        "worker_init_fn",
        "num_workers",
    )
    try:
        with walk.attempt():
            children = walk.children((f".{n}", getattr(loader, n)) for n in names)
    except Undescribable:
        if not isinstance(loader.sampler, data.SequentialSampler) or loader.num_workers:
            raise
        children = (("(content)", _content_twice(walk, loader)),)
    return Description("object", "DataLoader", children)


def _content_twice(walk: Walk, loader: Any) -> Description:
    """Read a loader twice under different seeds, and keep the content only when both are the same."""
    import torch

    found: list[Description] = []
    for seed in (0, 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            content = describe_alone(walk, list(loader))
        if found and content.digest != found[0].digest:
            walk.refuse(
                loader,
                "it gave other samples when it was read a second time",
                hint="Give a list of samples: etgraph.identity.materialise(loader).",
            )
        found.append(content)
    return found[0]
