"""Heads among Flax's weights: nested dictionaries of arrays in MessagePack.

Layers are named as PyTorch's are, so that the table of families and the usual names serve here, too: a
kernel, an embedding or a scale is the layer's weight, and a kernel is turned round to classes × features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import read_values
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.reader import find_in
from argmaxable.models.message_pack import DAMAGED, Extension, StoredBytes, read_message
from argmaxable.models.source import TensorSource

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding
    from argmaxable.models.registry import ReadOptions

# The number under which Flax stores an array: its shape, the name of its type, its bytes.
_ARRAY = 1
_CHUNKED = "__msgpack_chunked_array__"
_WEIGHTS = ("kernel", "embedding", "scale")


@dataclass(frozen=True)
class _Stored:
    """An array in the file, and whether it is turned round where it is used."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    is_turned: bool


def find(path: Path, options: ReadOptions) -> Finding:
    """The head in a file of Flax's; a config.json beside it is heeded. Raises LoadError."""
    return find_in(tensors_of(path), path.parent, options, format_name="flax")


def tensors_of(path: Path) -> TensorSource:
    """The arrays of a file, named as PyTorch would; raises LoadError."""
    root = read_message(path, "weights of Flax", with_extensions=True)
    if isinstance(root, dict) and isinstance(root.get("params"), dict):
        root = root["params"]
    if not isinstance(root, dict):
        raise LoadError(f"is not a dictionary of arrays, as Flax saves one. {DAMAGED}")
    stored: dict[str, _Stored] = {}
    absent: dict[str, str] = {}
    for names, value in _leaves(root, ()):
        name = _name(names, value)
        if name in stored or name in absent:
            raise ambiguous(f"two arrays of a layer would be called {name[:80]!r}")
        if isinstance(value, _Stored):
            stored[name] = value
        else:
            absent[name] = value

    def read(name: str) -> NDArray[Any]:
        each = stored[name]
        dtype = FLOAT_DTYPES.get(each.dtype, np.dtype("u1"))
        values = read_values(path, dtype, each.start, each.shape, DAMAGED)
        return np.ascontiguousarray(values.T) if each.is_turned else values

    infos = {
        name: TensorInfo(name, each.shape[::-1] if each.is_turned else each.shape, each.dtype)
        for name, each in stored.items()
    }
    return TensorSource(path.name, infos, read, absent)


def _leaves(
    value: Mapping[Any, Any], names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], _Stored | str]]:
    """The arrays inside dictionaries, or why one can't be read. What is neither is left out."""
    for key, each in value.items():
        if not isinstance(key, str) or "." in key:
            continue
        if isinstance(each, dict):
            if _CHUNKED in each:
                yield (*names, key), "it is stored in chunks, which is not supported."
            else:
                yield from _leaves(each, (*names, key))
        elif isinstance(each, Extension) and each.code == _ARRAY:
            yield (*names, key), _array(each.value, ".".join((*names, key)), key)


def _array(value: Any, name: str, key: str) -> _Stored:
    shape, dtype, data = value if isinstance(value, list) and len(value) == 3 else (None, None, None)
    is_whole = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
    if (
        not is_whole
        or not isinstance(shape, list)
        or not isinstance(dtype, str)
        or not isinstance(data, StoredBytes)
    ):
        raise LoadError(f"the array {name[:80]!r} is damaged. {DAMAGED}")
    if dtype in FLOAT_DTYPES and data.size != math.prod(shape) * FLOAT_DTYPES[dtype].itemsize:
        raise LoadError(
            f"the array {name[:80]!r} of shape {tuple(shape)[:8]} has {data.size:,} bytes. {DAMAGED}"
        )
    return _Stored(dtype, tuple(shape), data.start, key == "kernel" and len(shape) == 2)


def _name(names: tuple[str, ...], value: _Stored | str) -> str:
    *layer, kind = names
    is_weight = kind in _WEIGHTS and (kind != "kernel" or (isinstance(value, _Stored) and value.is_turned))
    return ".".join((*layer, "weight" if is_weight else kind))
