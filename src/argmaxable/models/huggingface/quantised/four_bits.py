"""Weights as bitsandbytes stores them in 4 bits (nf4, fp4): places in a table of 16 numbers, two to a byte,
and for each block of a row its largest absolute value. A weight is table[q] · absmax; with 24 bits each,
float64 holds the product.

The library takes its own table, so the one in the file must be the same. With nested quantisation absmax
is itself made from 8-bit places in a table; that formula is followed in float32, as the library does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous, parse_json
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import ADVICE, layer_of, require_only
from argmaxable.models.quantised_rows import held, rows_from
from argmaxable.models.source import TensorSource

_STATE = "quant_state.bitsandbytes__"
_PARTS = ("absmax", "quant_map", "nested_absmax", "nested_quant_map")
# The state is a JSON object of a dozen numbers.
_LONGEST_STATE = 2**14
_BLOCK_SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
# Some of the library's kernels use no other.
_NESTED_BLOCK = 256
# fp4's sign is its first bit; its table is this one in CUDA's and Triton's code and in that of CPUs. Versions
# of 2025 had it rounded to four digits on CPUs.
_FP4 = np.array([0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0], np.float32) / np.float32(12.0)
_TABLES = {
    "nf4": np.array(
        [
            -1.0,
            -0.6961928009986877,
            -0.5250730514526367,
            -0.39491748809814453,
            -0.28444138169288635,
            -0.18477343022823334,
            -0.09105003625154495,
            0.0,
            0.07958029955625534,
            0.16093020141124725,
            0.24611230194568634,
            0.33791524171829224,
            0.44070982933044434,
            0.5626170039176941,
            0.7229568362236023,
            1.0,
        ],
        np.float32,
    ),
    "fp4": np.concatenate([_FP4, -_FP4]),
}


@dataclass(frozen=True)
class _State:
    kind: str
    rows: int
    columns: int
    block_size: int
    # What is added to nested absmax, None where they are not nested.
    offset: float | None

    @property
    def blocks(self) -> int:
        return self.rows * self.columns // self.block_size


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is bytes that have the state of a 4-bit weight beside them."""
    info = source.tensors.get(weight)
    states = (f"{weight}.{_STATE}{kind}" for kind in _TABLES)
    return info is not None and info.dtype == "uint8" and any(state in source.names for state in states)


def parts_of(weight: str) -> list[str]:
    """The tensors that a 4-bit weight may have beside it."""
    return [f"{weight}.{part}" for part in (*_PARTS, *(f"{_STATE}{kind}" for kind in _TABLES))]


def dequantised(source: TensorSource, weight: str) -> TensorSource:
    """The tensors with this weight made floats. Raises LoadError, and AmbiguousError."""
    parts = parts_of(weight)
    other = [name for name in source.names if name.startswith(f"{weight}.") and name not in parts]
    if other:
        raise LoadError(f"tensor {weight!r} is quantised and comes with {min(other)[:80]!r}. {ADVICE}")
    require_only(source, weight, (weight, f"{layer_of(weight)}.bias"))
    state = _state(source, weight)
    _require_shapes(source, weight, state)
    info = TensorInfo(weight, (state.rows, state.columns), f"{state.kind}, blocks of {state.block_size}")
    table = _TABLES[state.kind]

    def read() -> NDArray[Any] | StoredRows:
        if not np.array_equal(source.read_array(f"{weight}.quant_map"), table):
            raise ambiguous(
                f"the table {weight}.quant_map is not that of {state.kind}, which bitsandbytes takes"
            )
        packed = source.read_array(weight).reshape(state.rows, -1)
        absmax = _absmax(source, weight, state).reshape(state.rows, -1)

        def formula(packed: NDArray[Any], absmax: NDArray[Any]) -> NDArray[np.float64]:
            places = np.stack([packed >> 4, packed & 15], axis=2)
            values = table.astype(np.float64)[places].reshape(*absmax.shape, state.block_size)
            values *= absmax.astype(np.float64)[:, :, None]
            return values.reshape(len(packed), -1)

        return held(rows_from([packed, absmax], state.columns, np.dtype(np.float64), formula))

    return source.with_dequantised(info, read, parts)


def _state(source: TensorSource, weight: str) -> _State:
    kinds = [kind for kind in _TABLES if f"{weight}.{_STATE}{kind}" in source.names]
    if len(kinds) > 1:
        raise ambiguous(f"tensor {weight!r} has two states of 4-bit weights, {' and '.join(kinds)}")
    info = source.info(f"{weight}.{_STATE}{kinds[0]}")
    if info.dtype != "uint8" or math.prod(info.shape) > _LONGEST_STATE:
        raise LoadError(f"tensor {info} should be the bytes of a short JSON text. Fetch the model again.")
    state = parse_json(source.read_array(info.name).tobytes(), info.name)
    is_nested = f"{weight}.nested_absmax" in source.names
    match state:
        case {"quant_type": str(kind), "blocksize": int(size), "shape": [int(rows), int(columns)]} if (
            kind == kinds[0] and size in _BLOCK_SIZES and rows > 0 and columns > 0 and columns % size == 0
        ):
            return _State(kind, rows, columns, size, _offset(state, info.name) if is_nested else None)
    raise LoadError(
        f"{info.name} says {str(state)[:200]}; expected quant_type {kinds[0]}, a blocksize of bitsandbytes "
        f"and a shape whose rows are whole blocks. {ADVICE}"
    )


def _offset(state: Mapping[str, Any], name: str) -> float:
    match state:
        case {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": float(offset)}:
            return offset
    raise LoadError(
        f"{name} says {str(state)[:200]}; expected for nested absmax a nested_blocksize of {_NESTED_BLOCK}, "
        f"nested_dtype float32 and a nested_offset. {ADVICE}"
    )


def _require_shapes(source: TensorSource, weight: str, state: _State) -> None:
    wanted = {
        weight: ("uint8", (state.rows * state.columns // 2, 1)),
        f"{weight}.quant_map": ("float32", (len(_TABLES[state.kind]),)),
        f"{weight}.absmax": ("float32" if state.offset is None else "uint8", (state.blocks,)),
    }
    if state.offset is not None:
        wanted[f"{weight}.nested_absmax"] = ("float32", (-(-state.blocks // _NESTED_BLOCK),))
        wanted[f"{weight}.nested_quant_map"] = ("float32", (256,))
    for name, (dtype, shape) in wanted.items():
        expected, info = TensorInfo(name, shape, dtype), source.info(name)
        if info != expected:
            raise LoadError(f"tensor {info} does not fit its weight, which needs {expected}. {ADVICE}")


def _absmax(source: TensorSource, weight: str, state: _State) -> NDArray[np.float32]:
    stored = source.read_array(f"{weight}.absmax")
    if state.offset is None:
        return stored
    table, largest = (source.read_array(f"{weight}.nested_{name}") for name in ("quant_map", "absmax"))
    with np.errstate(all="ignore"):  # damaged ones overflow, and are refused with the head
        scaled: NDArray[np.float32] = table[stored] * np.repeat(largest, _NESTED_BLOCK)[: len(stored)]
        return scaled + np.float32(state.offset)
