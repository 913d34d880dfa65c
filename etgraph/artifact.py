"""Kinds of artifacts and the values that hold them.

An artifact is an immutable value of one kind: a mapping from method name to program, and what belongs to it.
A new kind is a frozen subclass that names itself: `class Onnx(Artifact, kind="onnx")`.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from etgraph.errors import StageDeclarationError, UsageError

__all__ = [
    "KINDS",
    "Artifact",
    "Edge",
    "EdgeConfig",
    "Executorch",
    "Exported",
    "Inputs",
    "Kind",
    "Later",
    "Lowered",
    "Module",
    "Prepared",
    "Provenance",
    "Quantized",
    "Source",
]

A = TypeVar("A", bound="Artifact")


def _empty() -> Mapping[str, Any]:
    return types.MappingProxyType({})


class Kind(str):
    """The kind of an artifact; compares equal to its name."""

    __slots__ = ()


#: Every kind that is known, by name, in order of declaration.
KINDS: dict[str, type[Artifact]] = {}


class Inputs:
    """The inputs of one call: `Inputs(x, mask=m)` stands for `model(x, mask=m)`."""

    __slots__ = ("args", "kwargs")

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "kwargs", types.MappingProxyType(kwargs))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Inputs are a value; make new ones instead of changing these")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_make_inputs, (self.args, dict(self.kwargs)))

    def __repr__(self) -> str:
        shown = [_brief(a) for a in self.args] + [f"{k}={_brief(v)}" for k, v in self.kwargs.items()]
        return f"Inputs({', '.join(shown)})"


def _make_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
    return Inputs(*args, **kwargs)


def _brief(value: Any) -> str:
    """Show a tensor by dtype and shape; it may hold a hundred million numbers."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return repr(value)


class Later(Mapping[str, Any]):
    """A read-only mapping that is made when somebody first looks into it."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make
        self._made: Mapping[str, Any] | None = None

    def _mapping(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self._mapping()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())


@dataclass(frozen=True)
class Provenance:
    """One step in the life of an artifact: the stage that ran, the kind it gave, and its options in words."""

    stage: str
    kind: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EdgeConfig:
    """The EdgeCompileConfig that an edge program was made with, as a value.

    Operators are named as `torch` names them, for instance `aten.hardswish.default`.
    Fields mirror `executorch.exir.EdgeCompileConfig` (executorch 1.5).
    """

    check_ir_validity: bool = True
    skip_dim_order: bool = False
    core_aten_ops_exception_list: tuple[str, ...] = ()
    preserve_ops: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Artifact:
    """A program at one kind, as a mapping from method name to what that kind holds.

    Args:
        methods: method name to program; never empty. One method is a mapping of one.
        example_inputs: method name to samples; the first sample is the one that is exported with.
        dynamic_shapes: method name to what `torch.export.export(dynamic_shapes=)` takes.
        constant_methods: method name to the constant that it returns.
        provenance: the steps that led here, oldest first.
    """

    kind: ClassVar[Kind]

    methods: Mapping[str, Any]
    example_inputs: Mapping[str, tuple[Inputs, ...]] = field(default_factory=_empty)
    dynamic_shapes: Mapping[str, Any] = field(default_factory=_empty)
    constant_methods: Mapping[str, Any] = field(default_factory=_empty)
    provenance: tuple[Provenance, ...] = ()

    def __init_subclass__(cls, *, kind: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = KINDS.get(kind)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise StageDeclarationError(
                f"class {cls.__module__}.{cls.__qualname__} declares kind {kind!r}, which is already "
                f"{known.__module__}.{known.__qualname__}",
                hint="Choose another kind name.",
            )
        cls.kind = Kind(kind)
        KINDS[kind] = cls

    def __post_init__(self) -> None:
        if not self.methods:
            raise UsageError(f"an artifact of kind {self.kind!r} needs at least one method, and got an empty mapping")
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Mapping) and not isinstance(value, types.MappingProxyType | Later):
                object.__setattr__(self, f.name, types.MappingProxyType(dict(value)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.methods)

    def __len__(self) -> int:
        return len(self.methods)

    def __getitem__(self, method: str) -> Any:
        try:
            return self.methods[method]
        except KeyError:
            raise KeyError(f"no method {method!r}; this artifact has {', '.join(self.methods)}") from None

    def __repr__(self) -> str:
        return f"<{self.kind} artifact: {', '.join(self.methods)}>"

    def _repr_html_(self) -> str:
        from etgraph.notebook import show_artifact
        from etgraph.registry import registry

        delegation = registry.services.get("delegation")
        return show_artifact(self, delegation(self) if delegation is not None else None)

    def become(self, kind: type[A], *, methods: Mapping[str, Any], **more: Any) -> A:
        """Return an artifact of another kind that keeps everything that is not about this kind's programs."""
        return kind(
            methods=methods,
            example_inputs=self.example_inputs,
            dynamic_shapes=self.dynamic_shapes,
            constant_methods=self.constant_methods,
            provenance=self.provenance,
            **more,
        )

    @property
    def fingerprint(self) -> str:
        """A digest of what this program is: equal for equal programs, in every process."""
        from etgraph.encoding import fingerprint

        return fingerprint(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, whole or not at all, and return the path.

        `NAME.<kind>.etg` keeps everything. An executorch program is written as plain `.pte` (with its `.ptd` files
        beside it) under that suffix; an exported or quantized one as `torch.export` writes it under `.pt2`.
        """
        from etgraph.registry import registry

        written: Path = registry.service("save_file")(self, path)
        return written

    @property
    def passed(self) -> frozenset[str]:
        """The kinds that this program is known to have passed, its own included."""
        return frozenset(step.kind for step in self.provenance) | {self.kind}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Module(Artifact, kind="module"):
    """Eager `torch.nn.Module` (or a bound method of one) per method, with example inputs."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Exported(Artifact, kind="exported"):
    """`torch.export.ExportedProgram` per method, TRAINING or ATEN dialect, without q/dq operators."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Prepared(Artifact, kind="prepared"):
    """`torch.fx.GraphModule` per method, with observers or fake-quantize modules inside."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quantized(Artifact, kind="quantized"):
    """`torch.export.ExportedProgram` per method, carrying quantize and dequantize operators."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Edge(Artifact, kind="edge"):
    """`torch.export.ExportedProgram` per method, EDGE dialect, nothing delegated."""

    compile_config: EdgeConfig = EdgeConfig()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Lowered(Artifact, kind="lowered"):
    """`torch.export.ExportedProgram` per method, EDGE dialect, delegated or in a backend's own operators."""

    compile_config: EdgeConfig = EdgeConfig()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Executorch(Artifact, kind="executorch"):
    """An ExecuTorch program: the bytes of the `.pte` and of its `.ptd` data files.

    `methods` maps each method to a plain description of its inputs and outputs. The bytes are held in pieces,
    as ExecuTorch's serializer makes them, so that a program as large as its weights is not copied to be written.

    Args:
        pieces: the `.pte`, in order.
        data_pieces: file name (with `.ptd`) to that file's bytes in pieces.
        debug: `debug_handle_map`, `delegate_map` and `instruction_id_to_num_outs_map` of the emitter.
        expected_outputs: of a bundled program, method name to the outputs that are expected for each of its example
            inputs. Kept in a `.bpte` alone; no part of what the program is.
    """

    pieces: Sequence[bytes | memoryview]
    data_pieces: Mapping[str, Sequence[bytes | memoryview]] = field(default_factory=_empty)
    debug: Mapping[str, Any] = field(default_factory=_empty)
    expected_outputs: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=_empty)

    @property
    def buffer(self) -> bytes:
        """The whole `.pte` as one `bytes`, the same object each time.

        `executorch.runtime` reads it without holding it: keep this artifact while a program that was loaded from its
        buffer is in use.
        """
        if len(self.pieces) != 1 or not isinstance(self.pieces[0], bytes):
            object.__setattr__(self, "pieces", (b"".join(self.pieces),))
        joined = self.pieces[0]
        assert isinstance(joined, bytes)
        return joined

    @property
    def data_files(self) -> dict[str, bytes]:
        """Each `.ptd` file by name."""
        return {name: b"".join(pieces) for name, pieces in self.data_pieces.items()}

    @property
    def nbytes(self) -> int:
        """Size of the `.pte` in bytes."""
        return sum(len(piece) for piece in self.pieces)


@dataclass(frozen=True)
class Source:
    """A model with all that a run needs to know about it, for `etgraph run file.py:name`.

    Args:
        model: anything that `etgraph.run` takes.
        example_inputs: as `etgraph.run` takes them.
        dynamic_shapes: as `etgraph.run` takes them.
        constant_methods: method name to constant.
        calibration_inputs: samples for quantization.
    """

    model: Any
    example_inputs: Any = None
    dynamic_shapes: Any = None
    constant_methods: Mapping[str, Any] | None = None
    calibration_inputs: Any = None
