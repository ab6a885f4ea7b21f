"""Checkpoints with a head quantised by MLX or bitsandbytes, or of 8-bit floats, and its exact numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from checkpoint_writer import LLAMA, Config, Tensors, fraction, norm, write
from numpy.typing import NDArray

from argmaxable.models.huggingface.quantised.four_bits import _TABLES


def packed(steps: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """Rows of numbers as one long number each, of which the first is the lowest part."""
    rows = [sum(int(step) << (bits * place) for place, step in enumerate(row)) for row in steps]
    size = steps.shape[1] * bits // 8
    return np.stack([np.frombuffer(row.to_bytes(size, "little"), "<u4") for row in rows])


def mlx_layer(
    layer: str,
    *,
    bits: int = 4,
    group_size: int = 64,
    rows: int = 6,
    columns: int = 128,
    dtype: Any = np.float16,
) -> tuple[Tensors, Callable[[int, int], Fraction]]:
    """A layer of random numbers, and the rational that each weight is."""
    rng = np.random.default_rng(bits + group_size)
    steps = rng.integers(0, 2**bits, (rows, columns))
    scales = rng.normal(0.0, 0.01, (rows, columns // group_size)).astype(dtype)
    biases = (-(2 ** (bits - 1)) * scales.astype(float) * rng.uniform(0.7, 1.2, scales.shape)).astype(dtype)
    tensors = {f"{layer}.weight": packed(steps, bits), f"{layer}.scales": scales, f"{layer}.biases": biases}

    def expected(row: int, column: int) -> Fraction:
        group = column // group_size
        return fraction(scales[row, group]) * int(steps[row, column]) + fraction(biases[row, group])

    return tensors, expected


def mlx_config(bits: int = 4, group_size: int = 64, **more: Any) -> Config:
    return {**LLAMA, "quantization": {"bits": bits, "group_size": group_size, **more}}


def mlx_model(folder: Path, config: Config | None = None, **changes: NDArray[Any] | None) -> Path:
    """A model with an MLX head of 4 bits; changes go by the end of a tensor's name, None leaves it out."""
    tensors: dict[str, Any] = mlx_layer("lm_head")[0]
    tensors |= {f"lm_head.{name}": value for name, value in changes.items()}
    kept = {name: value for name, value in tensors.items() if value is not None}
    return write(folder, mlx_config() if config is None else config, {**norm(), **kept})


FP8 = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def fp8_values(kind: str, rows: int = 7, columns: int = 10) -> NDArray[Any]:
    """Every finite 8-bit float, as far as there is room."""
    every = np.arange(256, dtype=np.uint8).view(FP8[kind])
    finite = every[np.isfinite(every.astype(np.float32))]
    return (
        np.random.default_rng(8)
        .permutation(finite.view(np.uint8))[: rows * columns]
        .view(FP8[kind])
        .reshape(rows, columns)
    )


def fp8_scales(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.asarray(np.random.default_rng(9).uniform(1e-4, 1e-2, shape)).astype(dtype)


def fp8_model(folder: Path, *, config: Config = LLAMA, **changes: NDArray[Any]) -> Path:
    tensors = {"weight": fp8_values("e4m3"), "weight_scale": fp8_scales(7, 1), **changes}
    return write(
        folder, config, {**norm(10), **{f"lm_head.{name}": value for name, value in tensors.items()}}
    )


def nf4_model(
    folder: Path,
    *,
    kind: str = "nf4",
    nested: bool = False,
    state: Config | None = None,
    **changes: NDArray[Any] | None,
) -> tuple[Path, Callable[[int, int], Fraction]]:
    """A head of 10 rows of 128 in blocks of 64; changes go by a tensor's name, None leaves it out."""
    rng = np.random.default_rng(4)
    steps = rng.integers(0, 16, (10, 128))
    absmax = rng.uniform(0.01, 0.2, 20).astype(np.float32)
    settings: Config = {"quant_type": kind, "blocksize": 64, "dtype": "bfloat16", "shape": [10, 128]}
    parts: dict[str, Any] = {"absmax": absmax, "quant_map": _TABLES[kind]}
    if nested:
        places, largest = rng.integers(0, 256, 20).astype(np.uint8), np.array([0.3], np.float32)
        inner = np.linspace(-1.0, 1.0, 256).astype(np.float32)
        settings |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.1}
        parts |= {"absmax": places, "nested_absmax": largest, "nested_quant_map": inner}
        absmax = np.array([inner[place] * largest[0] + np.float32(0.1) for place in places])
    text = json.dumps({**settings, **(state or {})}).encode()
    parts[f"quant_state.bitsandbytes__{kind}"] = np.frombuffer(text, np.uint8)
    packed_bytes = (steps[:, ::2] << 4 | steps[:, 1::2]).astype(np.uint8).reshape(-1, 1)
    tensors: dict[str, Any] = {f"lm_head.weight.{name}": value for name, value in parts.items()}
    tensors |= {"lm_head.weight": packed_bytes}
    tensors |= {f"lm_head.{name}": value for name, value in changes.items()}
    kept = {name: value for name, value in tensors.items() if value is not None}

    def expected(row: int, column: int) -> Fraction:
        return fraction(_TABLES[kind][steps[row, column]]) * fraction(absmax[row * 2 + column // 64])

    return write(folder, LLAMA, {**norm(), **kept}), expected
