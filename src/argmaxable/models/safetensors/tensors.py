"""The tensors of a .safetensors file, memory-mapped.

The header is read here because the safetensors package can't give NumPy the dtypes heads are stored in
(bfloat16, 8-bit floats), and because a hostile header must end in an error: every offset is compared
with the file before anything is mapped. The layout is 8 bytes with the header's length, the header (a
JSON object that names each tensor's dtype, shape and byte range), the values.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, parse_json
from argmaxable.models.finding import TensorInfo
from argmaxable.models.source import TensorSource

# A tensor takes about 100 bytes of header, and no file has as many as these suffice for: larger models
# are spread over several. Parsed, JSON takes up to thirty times its size.
_LONGEST_HEADER = 16 * 2**20
# NumPy's own limit, and it keeps the product of hostile dimensions cheap.
_MOST_DIMENSIONS = 32
_LARGEST_DIMENSION = 2**63
_GIT_LFS_POINTER = b"version https://git-lfs"
# What each dtype is called elsewhere, and its bits. Ones that are not listed can't be read.
_DTYPES: dict[str, tuple[str, int]] = {
    "F64": ("float64", 64),
    "F32": ("float32", 32),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "I64": ("int64", 64),
    "I32": ("int32", 32),
    "I16": ("int16", 16),
    "I8": ("int8", 8),
    "U64": ("uint64", 64),
    "U32": ("uint32", 32),
    "U16": ("uint16", 16),
    "U8": ("uint8", 8),
    "BOOL": ("bool", 8),
}
# How arrays are mapped, and as what they are returned: floats, and whole numbers that quantised weights
# are made of. All values of the 8-bit floats are values of float16, so that conversion is exact.
_MAPPED: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {
    "F64": (np.dtype("<f8"), np.dtype(np.float64)),
    "F32": (np.dtype("<f4"), np.dtype(np.float32)),
    "F16": (np.dtype("<f2"), np.dtype(np.float16)),
    "BF16": (np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.bfloat16)),
    "F8_E4M3": (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(np.float16)),
    "F8_E5M2": (np.dtype(ml_dtypes.float8_e5m2), np.dtype(np.float16)),
    "I64": (np.dtype("<i8"), np.dtype(np.int64)),
    "I32": (np.dtype("<i4"), np.dtype(np.int32)),
    "I8": (np.dtype(np.int8), np.dtype(np.int8)),
    "U32": (np.dtype("<u4"), np.dtype(np.uint32)),
    "U8": (np.dtype(np.uint8), np.dtype(np.uint8)),
}


@dataclass(frozen=True)
class _Entry:
    """What the header says about a tensor; offsets count from the first byte after the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def tensors_of(path: Path) -> TensorSource:
    """The tensors of a .safetensors file; raises LoadError when its header does not describe the file."""
    start, entries, saved_by = _contents(path)

    def read(name: str) -> NDArray[Any]:
        return _map(path, start, entries[name])

    infos = {name: TensorInfo(name, each.shape, _dtype_name(each.dtype)) for name, each in entries.items()}
    return TensorSource(path.name, infos, read, saved_by=saved_by)


def place_of(path: Path, name: str) -> int:
    """Where in a .safetensors file the values of a tensor begin; raises LoadError."""
    start, entries, _ = _contents(path)
    if name not in entries:
        raise LoadError(f"tensor {name!r} not found in {path.name} ({len(entries)} tensors).")
    return start + entries[name].begin


def header_of(path: Path) -> tuple[int, dict[str, Any]]:
    """Where the values begin in a .safetensors file, and its header as it is; raises LoadError."""
    with path.open("rb") as file:
        header = _read_header(file, os.fstat(file.fileno()).st_size)
    return 8 + len(header), _parsed(header)


def _contents(path: Path) -> tuple[int, dict[str, _Entry], str]:
    """Where the values begin, what the header says about each tensor, and which library saved the file."""
    start, described = header_of(path)
    size = path.stat().st_size
    metadata = described.pop("__metadata__", None)
    entries = {name: _entry(name, value, size - start) for name, value in described.items()}
    _require_seamless(entries, size - start)
    return start, entries, str(metadata.get("format", "")) if isinstance(metadata, dict) else ""


def _read_header(file: IO[bytes], size: int) -> bytes:
    begin = file.read(len(_GIT_LFS_POINTER))
    if begin == _GIT_LFS_POINTER:
        raise LoadError("is a Git LFS pointer, not the weights themselves. Fetch them with git lfs pull.")
    length = int.from_bytes(begin[:8], "little")
    if len(begin) < 8 or not 2 <= length <= size - 8:
        raise LoadError(
            f"is not a .safetensors file: its first 8 bytes should give the length of a header, and the file "
            f"has {size} bytes. It may be cut short or damaged; fetch it again."
        )
    if length > _LONGEST_HEADER:
        raise LoadError(
            f"has a header of {length} bytes; expected at most {_LONGEST_HEADER}, which is enough for "
            "150,000 tensors. The file looks damaged; fetch it again."
        )
    file.seek(8)
    return file.read(length)


def _parsed(header: bytes) -> dict[str, Any]:
    value = parse_json(header, "its header")
    if not isinstance(value, dict):
        raise LoadError(
            f"has a header that is a JSON {type(value).__name__}, expected an object. Save the file again."
        )
    if not header.startswith(b"{"):
        raise LoadError("has a header that does not begin with {, as it must. Save the file again.")
    try:
        "".join(value).encode()
    except UnicodeEncodeError as error:  # JSON can also write half characters
        raise LoadError(f"names a tensor with half a character: {error}. Save the file again.") from error
    return value


def _entry(name: str, value: object, room: int) -> _Entry:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end]} if (
            dtype.isascii()
            and _are_counts([begin, end])
            and _are_counts(shape)
            and len(shape) <= _MOST_DIMENSIONS
        ):
            entry = _Entry(dtype, tuple(shape), begin, end)
        case _:
            raise LoadError(
                f"describes tensor {name[:80]!r} as {str(value)[:200]}; expected dtype, shape and "
                "data_offsets. Save the file again."
            )
    _require_fitting(name, entry, room)
    return entry


def _are_counts(values: list[Any]) -> bool:
    # bool is a subclass of int, so the type itself is compared.
    return all(type(value) is int and 0 <= value < _LARGEST_DIMENSION for value in values)


def _require_fitting(name: str, entry: _Entry, room: int) -> None:
    if not entry.begin <= entry.end <= room:
        raise LoadError(
            f"keeps tensor {name[:80]!r} in the bytes {entry.begin} to {entry.end} after its header, but "
            f"only {room} are there. It is cut short or damaged; fetch it again."
        )
    bits = _DTYPES.get(entry.dtype, (entry.dtype, None))[1]
    if bits is not None and math.prod(entry.shape) * bits != 8 * (entry.end - entry.begin):
        raise LoadError(
            f"declares tensor {name[:80]!r} as {' × '.join(map(str, entry.shape)) or 'scalar'} {entry.dtype}"
            f", which does not take the {entry.end - entry.begin} bytes it has. Save the file again."
        )


def _require_seamless(entries: Mapping[str, _Entry], room: int) -> None:
    """Refuse tensors that share bytes, and bytes that belong to none: the safetensors package does, too."""
    end, before = 0, "the header"
    for name, entry in sorted(entries.items(), key=lambda pair: (pair[1].begin, pair[1].end)):
        if entry.begin < end:
            raise ambiguous(f"tensors {before} and {name[:80]!r} lie in overlapping bytes")
        if entry.begin > end:
            raise ambiguous(
                f"{entry.begin - end} bytes between {before} and {name[:80]!r} belong to no tensor"
            )
        end, before = entry.end, repr(name[:80])
    if end != room:
        raise ambiguous(f"{room - end} bytes after {before} belong to no tensor")


def _dtype_name(dtype: str) -> str:
    return _DTYPES[dtype][0] if dtype in _DTYPES else dtype


def _map(path: Path, start: int, entry: _Entry) -> NDArray[Any]:
    stored, wanted = _MAPPED[entry.dtype]
    if 0 in entry.shape:  # nothing to map, and mmap refuses empty ranges
        return np.zeros(entry.shape, wanted)
    try:
        values = np.memmap(path, stored, "r", start + entry.begin, entry.shape)
    except ValueError as error:  # shorter than when its header was read
        raise LoadError(f"changed while it was read: {error}. Read it again.") from error
    return np.asarray(values).astype(wanted, copy=False)
