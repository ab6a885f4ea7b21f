"""Files as whisper.cpp's converter (models/convert-pt-to-ggml.py) writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEAD, GAIN, SHIFT = "decoder.token_embedding.weight", "decoder.ln.weight", "decoder.ln.bias"
_TYPES = {"float32": 0, "float16": 1}
Stored = NDArray[Any] | tuple[int, tuple[int, ...], bytes]  # or a type, a shape and bytes


def model(
    tensors: Mapping[str, Stored] | Sequence[tuple[str, Stored]],
    tokens: Sequence[bytes],
    *,
    vocabulary: int,
    features: int,
    kind: int = 1,
    bands: int = 80,
    sizes: tuple[int, int, int, int, int, int] = (4, 1, 1, 4, 1, 1),
) -> bytes:
    """`sizes`: positions, heads and layers of the encoder, then of the decoder; `kind` is ftype."""
    audio_positions, audio_heads, audio_layers, positions, heads, layers = sizes
    window = 201
    data = struct.pack(
        "<12i", 0x67676D6C, vocabulary, audio_positions, features, audio_heads, audio_layers, positions,
        features, heads, layers, bands, kind,
    )  # fmt: skip
    data += struct.pack("<2i", bands, window) + np.zeros(bands * window, "<f4").tobytes()
    data += struct.pack("<i", len(tokens)) + b"".join(struct.pack("<i", len(each)) + each for each in tokens)
    pairs = tensors.items() if isinstance(tensors, Mapping) else tensors
    return data + b"".join(_tensor(name, stored) for name, stored in pairs)


def _tensor(name: str, stored: Stored) -> bytes:
    if isinstance(stored, tuple):
        kind, shape, data = stored
    else:
        kind, shape, data = _TYPES[stored.dtype.name], stored.shape, stored.tobytes()
    numbers = struct.pack(f"<3i{len(shape)}i", len(shape), len(name), kind, *reversed(shape))
    return numbers + name.encode() + data
