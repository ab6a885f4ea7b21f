"""Checkpoints as Hugging Face stores them, with arrays of any dtype, and what their numbers should be."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.models.finding import Finding
from argmaxable.models.registry import ReadOptions, find_format

Config = dict[str, Any]
Tensors = dict[str, NDArray[Any]]

DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "uint32": "U32",
    "uint8": "U8",
    "int8": "I8",
    "int32": "I32",
    "int64": "I64",
}
LLAMA: Config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}


def file_with(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """A .safetensors file of arrays of any dtype."""
    header, data = {}, b""
    for name, array in tensors.items():
        begin = len(data)
        data += np.ascontiguousarray(array).tobytes()
        dtype = DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write(folder: Path, config: Config | None, tensors: Tensors) -> Path:
    folder.mkdir(exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(file_with(tensors))
    return folder


def found(path: Path) -> Finding:
    return find_format(path).find(path, ReadOptions())


def fraction(number: Any) -> Fraction:
    return Fraction(float(number))


def holds_exactly(weight: Any, expected: Callable[[int, int], Fraction]) -> bool:
    """Whether every number of a matrix is the rational that is expected there."""
    array = np.asarray(weight)
    return all(fraction(value) == expected(*place) for place, value in np.ndenumerate(array))


def norm(columns: int = 128) -> Tensors:
    return {"model.norm.weight": np.linspace(0.5, 1.5, columns).astype(np.float32)}
