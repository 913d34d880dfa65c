"""`.pt2` files of `torch.export.save`: read without pickle, after a look at all that could run code."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from etgraph.artifact import Artifact
from etgraph.errors import ArtifactFileError, EtgraphError, EtgraphWarning, UntrustedFileError
from stages.codec.foreign_checks import check_crcs, dangers_of_program, targets_of_program

__all__ = ["load_pt2", "save_pt2"]


def load_pt2(path: Path, *, trust: bool) -> Artifact:
    """Load the program of a `.pt2` file.

    Example inputs that need more than tensors and plain values to be unpickled are left out with a warning.

    Raises:
        UntrustedFileError: the program needs something that could run code, and `trust` is False.
        ArtifactFileError: damaged, or of another version.
    """
    from stages.codec.foreign import wrap

    with zipfile.ZipFile(path) as archive:
        check_crcs(path, archive)
        parts = _read_parts(path, archive)
    if not trust:
        _refuse_dangers(path, parts)
    program = parts["program"]
    register_operators(targets_of_program(program))
    try:
        loaded = _load_trusted(path) if trust else _load_checked(path, parts)
    except EtgraphError:
        raise
    except Exception as e:
        raise wrap(path, e, f"torch.export.save of torch {program.get('torch_version', '?')}") from e
    from stages.support.kinds import artifact_of

    artifact = artifact_of(loaded)
    if artifact is None:
        raise ArtifactFileError(f"{path} holds no program that is known here")
    return artifact


def _read_parts(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """Read the table of contents, the program and the configs of weights and constants."""
    names = archive.namelist()
    models = [n for n in names if "/models/" in n and n.endswith(".json")]
    if len(models) != 1:
        raise ArtifactFileError(
            f"{path} holds {len(models)} programs ({', '.join(Path(m).stem for m in models)}), and one is wanted",
            hint="Save each with torch.export.save, or keep them in one etgraph file.",
        )
    prefix = models[0].partition("models/")[0]
    model = Path(models[0]).stem
    try:
        parts: dict[str, Any] = {"model": model, "names": [n.removeprefix(prefix) for n in names]}
        parts["program"] = json.loads(archive.read(models[0]))
        for group in ("weights", "constants"):
            name = f"{prefix}data/{group}/{model}_{group}_config.json"
            parts[group] = json.loads(archive.read(name))["config"] if name in names else None
        name = f"{prefix}data/sample_inputs/{model}.pt"
        parts["inputs"] = archive.read(name) if name in names else b""
    except (ValueError, KeyError, TypeError) as e:
        raise ArtifactFileError(f"{path} is damaged: {type(e).__name__} in its program", hint="Make it again.") from e
    if not isinstance(parts["program"], dict):
        raise ArtifactFileError(f"{path} is damaged: its program is not an object", hint="Make it again.")
    return parts


def _refuse_dangers(path: Path, parts: dict[str, Any]) -> None:
    dangers = dangers_of_program(parts["program"])
    for group in ("weights", "constants"):
        for name, payload in (parts[group] or {}).items():
            if payload.get("use_pickle") or not str(payload.get("path_name", "")).startswith(("weight_", "tensor_")):
                dangers.append(f"the pickled {group.rstrip('s')} {name!r}")
    if any(name.startswith("data/aotinductor/") for name in parts["names"]):
        dangers.append("a compiled library of AOTInductor")
    if dangers:
        more = f" and {len(dangers) - 1} more" if len(dangers) > 1 else ""
        raise UntrustedFileError(
            f"{path} holds {dangers[0]}{more}, which could run code that is inside the file",
            hint="Load it only if you trust who made it: trust=True, or --trust on the command line.",
        )


def _load_trusted(path: Path) -> Any:
    import torch

    return torch.export.load(str(path))


def _load_checked(path: Path, parts: dict[str, Any]) -> Any:
    """Do what `torch.export.load` does, with example inputs read as tensors and plain values only."""
    from torch._export.serde import schema
    from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass
    from torch.export.pt2_archive import _package as package

    model = parts["model"]
    with package.PT2ArchiveReader(str(path)) as reader:
        version = reader.read_string(package.ARCHIVE_VERSION_PATH)
        if version != package.ARCHIVE_VERSION_VALUE:
            raise ArtifactFileError(
                f"{path} has archive version {version}, and torch reads {package.ARCHIVE_VERSION_VALUE}",
                hint="Load and save it with the version of torch that wrote it, or update torch.",
            )
        state = (
            package._load_state_dict(reader, model)
            if parts["weights"] is not None
            else _legacy(reader, "weights", model, path)
        )
        constants = (
            package._load_constants(reader, model)
            if parts["constants"] is not None
            else _legacy(reader, "constants", model, path)
        )
    program = _dict_to_dataclass(schema.ExportedProgram, parts["program"])
    return ExportedProgramDeserializer(None).deserialize(program, state, constants, _example_inputs(path, parts))


def _legacy(reader: Any, group: str, model: str, path: Path) -> Any:
    """Read the weights of files before torch 2.8, which are pickled as a whole."""
    name = f"data/{group}/{model}.pt"
    if name not in reader.get_file_names():
        return {}
    loaded = load_tensors(reader.read_bytes(name))
    if loaded is None:
        raise UntrustedFileError(
            f"{path} holds pickled {group} with more than tensors, which could run code that is inside the file",
            hint="Load it only if you trust who made it: trust=True, or --trust on the command line.",
        )
    return loaded


def _example_inputs(path: Path, parts: dict[str, Any]) -> Any:
    if not parts["inputs"]:
        return b""
    loaded = load_tensors(parts["inputs"])
    if isinstance(loaded, tuple) and len(loaded) == 2:
        return loaded
    import warnings

    warnings.warn(
        EtgraphWarning(
            f"{path}: the example inputs are pickled in a way that could run code and were left out; "
            "give example inputs, or trust=True if you trust who made the file"
        ),
        stacklevel=2,
    )
    return b""


def load_tensors(data: bytes) -> Any:
    """Unpickle tensors and plain containers; None when there is anything else in it."""
    import pickle

    import torch

    try:
        return torch.load(io.BytesIO(data), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, TypeError, AttributeError, KeyError):
        return None


def register_operators(targets: set[str]) -> None:
    """Import the libraries of the operators that a program calls.

    Raises:
        UsageError: an operator that nothing registers; names it.
        UntrustedFileError: a function that is no operator.
    """
    from stages.codec.operators import function_named, register

    for target in sorted(targets):
        for prefix in (
            "torch.ops.",
            "executorch.exir.dialects.edge.ops.",
            "executorch.exir.dialects.backend.ops.",
        ):
            if target.startswith(prefix):
                namespace, *rest = target.removeprefix(prefix).split(".")
                if namespace != "higher_order" and len(rest) in (1, 2):
                    register(namespace, rest[0], rest[1] if len(rest) == 2 else "default")
                break
        else:
            if not function_named(target):
                raise UntrustedFileError(
                    f"the program calls {target}, which is not an operator",
                    hint="Only registered operators can be called from a file.",
                )


def save_pt2(artifact: Artifact, path: Path) -> None:
    """Write one method of an exported or quantized artifact with `torch.export.save`, whole or not at all.

    Raises:
        UsageError: another kind, or several methods.
    """
    import torch

    from etgraph.errors import UsageError
    from etgraph.files import replace_file, write_pieces

    if artifact.kind not in ("exported", "quantized") or len(artifact) != 1:
        raise UsageError(
            f"{path}: torch's .pt2 holds one program at exported or quantized, and this is {artifact!r}",
            hint=f"Use the suffix .{artifact.kind}.etg.",
        )
    (program,) = artifact.methods.values()
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    replace_file(path, lambda file: write_pieces(file, [buffer.getbuffer()]))
