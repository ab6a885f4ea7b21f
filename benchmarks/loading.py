"""Peak memory while a large head is read, against the size of that head in float32.

A 150,000 × 1,024 head is written as safetensors (bfloat16) and as GGUF (BF16 and Q8_0), among other tensors
of the same size that must not be read. Each file is loaded in a process of its own; what Python and the
libraries take before the load is subtracted, mapped pages of the file count.

    python benchmarks/loading.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _record
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import argmaxable as am

CLASSES, FEATURES, ROWS_AT_ONCE = 150_000, 1_024, 10_000
LIMIT = 2.2  # times the float32 head


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            path = Path(folder) / name
            write(path)
            command = [sys.executable, __file__, "--one", str(path)]
            measured[name] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            path.unlink()
    _record.write("loading", {"classes": CLASSES, "features": FEATURES, "limit": LIMIT, "files": measured})


def measure(path: str) -> dict[str, object]:
    am.find_head(path)  # whatever is imported for the format is imported now
    before, start = peak_bytes(), time.perf_counter()
    head = am.load_head(path)
    seconds, peak = time.perf_counter() - start, peak_bytes()
    float32 = head.classes * head.features * 4
    assert (head.classes, head.features) == (CLASSES, FEATURES)
    return {
        "dtype": head.weight.dtype.name,
        "seconds": round(seconds, 2),
        "peak_mb": round((peak - before) / 1e6, 1),
        "float32_head_mb": round(float32 / 1e6, 1),
        "ratio": round((peak - before) / float32, 3),
    }


def peak_bytes() -> int:
    # Not getrusage: its maximum is inherited from the parent, which has held the whole head.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def weights() -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    values = np.empty((CLASSES, FEATURES), np.float32)
    for first in range(0, CLASSES, ROWS_AT_ONCE):
        values[first : first + ROWS_AT_ONCE] = rng.standard_normal((ROWS_AT_ONCE, FEATURES), np.float32)
    return values


def write_safetensors(path: Path) -> None:
    from safetensors.numpy import save_file

    head = weights().astype(ml_dtypes.bfloat16)
    save_file({"model.embed_tokens.weight": head[::-1].copy(), "lm_head.weight": head}, path)


def write_gguf(path: Path, quantisation: str) -> None:
    import gguf

    kind = gguf.GGMLQuantizationType[quantisation]
    writer = gguf.GGUFWriter(path, "llama")
    head = gguf.quants.quantize(weights(), kind)
    writer.add_tensor("token_embd.weight", head[::-1].copy(), raw_dtype=kind)
    writer.add_tensor("output.weight", head, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


WRITERS = {
    "bf16.safetensors": write_safetensors,
    "bf16.gguf": lambda path: write_gguf(path, "BF16"),
    "q8_0.gguf": lambda path: write_gguf(path, "Q8_0"),
}

if __name__ == "__main__":
    main()
