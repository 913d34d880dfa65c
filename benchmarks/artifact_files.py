"""How long do saving and loading a lowered program take, how large is the file, and how much memory does loading take?

Compared with `executorch.exir.serde.serialize` save and load of the same program in the same run. Each load runs in a
process of its own; memory is the peak of resident memory above what was resident after the imports.

    python benchmarks/artifact_files.py [vit-base | small]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_LOAD = """
import json, sys, threading, time
sys.path.insert(0, {root!r})
import torch, executorch.exir, executorch.exir.serde.serialize as serde
import psutil, transformers.modeling_outputs
from stages.codec.foreign import load_file
from etgraph.artifact import Lowered
me, peak, stop = psutil.Process(), [0], []
before = me.memory_info().rss
def watch():
    while not stop:
        peak[0] = max(peak[0], me.memory_info().rss)
        time.sleep(0.002)
thread = threading.Thread(target=watch, daemon=True); thread.start()
start = time.perf_counter()
loaded = {load}
seconds = time.perf_counter() - start
stop.append(1); thread.join()
print(json.dumps([seconds, peak[0] - before]))
"""


def _model(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch
    import transformers

    torch.manual_seed(0)
    if name == "vit-base":
        config = transformers.ViTConfig()
    else:
        config = transformers.ViTConfig(
            hidden_size=192, num_hidden_layers=4, intermediate_size=768, num_attention_heads=3
        )
    return transformers.ViTForImageClassification(config).eval(), (torch.randn(1, 3, 224, 224),)


def _lowered(name: str) -> Any:
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    model, inputs = _model(name)
    with torch.no_grad():
        program = torch.export.export(model, inputs)
    return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).exported_program()


def _distinct_bytes(program: Any) -> int:
    """Count weights and delegate data, each distinct byte string once."""
    from etgraph.blobs import digest_of
    from stages.codec.tensors import storage_bytes

    sizes: dict[str, int] = {}

    def add(data: Any) -> None:
        sizes[digest_of(data)] = memoryview(data).nbytes

    def visit(ep: Any) -> None:
        for tensor in (*ep.state_dict.values(), *ep.constants.values()):
            add(storage_bytes(tensor.untyped_storage()))
        for module in ep.graph_module.modules():
            if type(module).__name__ == "LoweredBackendModule":
                add(module.processed_bytes)
                for buffer in module.named_data_store_output.buffers:
                    add(buffer)
                visit(module.original_module)

    visit(program)
    return sum(sizes.values())


def _load(expression: str) -> tuple[float, int]:
    root = str(Path(__file__).resolve().parent.parent)
    code = _LOAD.format(root=root, load=expression)
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    seconds, peak = json.loads(out.stdout.strip().splitlines()[-1])
    return seconds, peak


def main() -> None:
    """Print one line of JSON per way."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import executorch.exir.serde.serialize as serde

    from etgraph import container
    from etgraph.artifact import Lowered
    from stages.codec import encode, fingerprint

    program = _lowered(sys.argv[1] if len(sys.argv) > 1 else "vit-base")
    artifact = Lowered(methods={"forward": program})
    distinct = _distinct_bytes(program)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        ours, theirs = f"{folder}/model.lowered.etg", f"{folder}/model.exir"
        start = time.perf_counter()
        document, blobs = encode(artifact)
        encoded = time.perf_counter() - start
        container.write(ours, document, blobs)
        save = time.perf_counter() - start
        load, peak = _load(f"load_file({ours!r})")
        size = os.path.getsize(ours)
        start = time.perf_counter()
        fingerprint(artifact)
        print_line = {"way": "etgraph", "save_s": save, "encode_s": encoded, "load_s": load, "file": size}
        print_line |= {"fingerprint_s": time.perf_counter() - start, "peak_over_file": peak / size}
        print_line |= {"file_over_distinct": size / distinct, "distinct": distinct}
        print(json.dumps(print_line))
        start = time.perf_counter()
        serde.save(program, theirs)
        save_theirs = time.perf_counter() - start
        load_theirs, peak_theirs = _load(f"serde.load({theirs!r})")
        size_theirs = os.path.getsize(theirs)
        print(
            json.dumps(
                {
                    "way": "exir.serde",
                    "save_s": save_theirs,
                    "load_s": load_theirs,
                    "file": size_theirs,
                    "peak": peak_theirs,
                }
            )
        )
        print(json.dumps({"save_ratio": save_theirs / save, "load_ratio": load_theirs / load}))


if __name__ == "__main__":
    main()
