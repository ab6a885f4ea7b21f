"""TensorFlow's checkpoints: an .index, which is a table of sorted keys, and its .data-… files.

The table has LevelDB's format (https://github.com/google/leveldb/blob/main/doc/table_format.md), its values
are protobuf messages (tensor_bundle.proto). No values of tensors are read until somebody wants them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import mapped, read_array
from argmaxable.models.protobuf import (
    BYTES,
    NUMBER,
    Data,
    number_in,
    parts_of,
    required,
    signed,
    single,
)
from argmaxable.models.tensorflow.graph_def import shape_in
from argmaxable.models.tensorflow.types import TEXT, TYPES

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
# A block is followed by a byte that says how it is compressed, and a checksum.
_TRAILER = 5
# An index has about a hundred bytes for each tensor.
_LARGEST_INDEX = 2**28
_MOST_BLOCKS = 2**20
_VARINT = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")
_HEADER = {1: NUMBER, 2: NUMBER}
_ENTRY = {1: NUMBER, 2: BYTES, 3: NUMBER, 4: NUMBER, 5: NUMBER, 7: BYTES}
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_DAMAGED = "The checkpoint is cut short or damaged; fetch all its files again."


@dataclass(frozen=True)
class BundleEntry:
    """A stored tensor: numpy's name of its type, its shape, its file, and the place of its bytes there."""

    dtype: str
    shape: tuple[int, ...]
    shard: int
    start: int
    length: int


@dataclass(frozen=True)
class TensorBundle:
    """The tensors of a checkpoint by name. What is not an array of numbers, such as texts, is left out."""

    index: Path
    shards: int
    entries: Mapping[str, BundleEntry]
    texts: Mapping[str, BundleEntry]

    def file(self, shard: int) -> Path:
        # Not with_suffix: a checkpoint may be called .index and nothing else.
        stem = self.index.name.removesuffix(".index")
        return self.index.with_name(f"{stem}.data-{shard:05d}-of-{self.shards:05d}")

    def read(self, name: str) -> NDArray[Any]:
        """The values of a tensor; raises LoadError."""
        entry, path = self.entries[name], self.file(self.entries[name].shard)
        if not path.is_file():
            raise LoadError(f"{name[:80]!r} is in {path.name}, which is not beside the index. Fetch it too.")
        if entry.start + entry.length > path.stat().st_size:
            raise LoadError(f"{name[:80]!r} goes beyond the end of {path.name}. {_DAMAGED}")
        dtype = FLOAT_DTYPES.get(entry.dtype)
        stored = entry.dtype if dtype is None else f"u{dtype.itemsize}"
        values = read_array(
            path, f"<{stored}" if dtype is not None else stored, entry.start, entry.shape, _DAMAGED
        )
        return values if dtype is None else values.astype(f"=u{dtype.itemsize}", copy=False).view(dtype)

    def object_graph(self) -> bytes | None:
        """The description of the objects that were saved, which is stored like a tensor with one text."""
        entry = self.texts.get(_OBJECT_GRAPH)
        path = None if entry is None else self.file(entry.shard)
        if entry is None or path is None or entry.length > _LARGEST_INDEX or not path.is_file():
            return None
        with path.open("rb") as file:
            file.seek(entry.start)
            data = file.read(entry.length)
        length, place = _number(data, 0)
        if len(data) != entry.length or place + 4 + length != len(data):  # a checksum comes between
            raise LoadError(f"the objects in {path.name} can't be read. {_DAMAGED}")
        return data[place + 4 :]


def open_bundle(index: Path) -> TensorBundle:
    """The checkpoint with this index; raises LoadError."""
    if index.stat().st_size > _LARGEST_INDEX:
        raise LoadError(f"{index.name} has {index.stat().st_size:,} bytes, too many for an index.")
    with mapped(index, "a checkpoint's index") as data:
        try:
            pairs = _table(data)
            header = next(pairs, None)
            if header is None or header[0]:
                raise LoadError("its first entry is not the header")
            parts = parts_of(header[1], 0, len(header[1]), _HEADER)
            shards, order = (single(parts, number, "the header") for number in (1, 2))
            if order is not None and number_in(header[1], order):
                raise LoadError("its numbers are big-endian, which is not supported")
            count = 0 if shards is None else signed(header[1], shards, 32)
            found = {_name(key): entry for key, value in pairs if (entry := _entry(value)) is not None}
        except AmbiguousError:
            raise
        except LoadError as error:
            raise LoadError(
                f"{index.name} is not a readable checkpoint index: {error}. {_DAMAGED}"
            ) from error
    texts = {name: entry for name, entry in found.items() if entry.dtype == "text"}
    return TensorBundle(index, count, {name: found[name] for name in found if name not in texts}, texts)


def _name(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise LoadError("a tensor's name is not UTF-8") from error


def _entry(value: bytes) -> BundleEntry | None:
    """What an entry says; None of types that are not known, and of tensors that are stored in slices."""
    parts = parts_of(value, 0, len(value), _ENTRY)
    type_ = required(parts, 1, "a tensor's type")
    shape = single(parts, 2, "a tensor's shape")
    lengths = () if shape is None else shape_in(value, shape).lengths
    number = signed(value, type_, 32)
    dtype, width = ("text", 0) if number == TEXT else TYPES.get(number, ("", 0))
    if not dtype or parts[7] or lengths is None:
        return None
    shard, start, size = (
        0 if (field := single(parts, number, "a tensor's place")) is None else signed(value, field, 64)
        for number in (3, 4, 5)
    )
    if min((*lengths, shard, start, size)) < 0 or (width and size != math.prod(lengths) * width):
        raise LoadError(f"a tensor of shape {lengths[:8]} and type {dtype} has {size:,} bytes")
    return BundleEntry(dtype, lengths, shard, start, size)


# ---------------------------------------------------------------------- the table


def _table(data: Data) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table, which must be in order, as each occurs once then."""
    if len(data) < _FOOTER or data[len(data) - 8 :] != _MAGIC:
        raise LoadError("it does not end as a table does")
    footer = bytes(data[len(data) - _FOOTER :])
    place = 0
    for _ in range(2):  # the first block says nothing that is needed here
        start, place = _number(footer, place)
        size, place = _number(footer, place)
    last: bytes | None = None
    for blocks, (_, handle) in enumerate(_block(data, start, size)):
        start, place = _number(handle, 0)
        size, _ = _number(handle, place)
        for key, value in _block(data, start, size):
            if (last is not None and key <= last) or blocks > _MOST_BLOCKS:
                raise ambiguous(f"the keys of the table are not in order at {key[:80]!r}")
            last = key
            yield key, value


def _block(data: Data, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. Each key is given as how much it shares with the last, and the rest."""
    if size < 4 or start + size + _TRAILER > len(data):
        raise LoadError("a block goes beyond the end")
    block = bytes(data[start : start + size])
    if data[start + size]:
        raise LoadError("it is compressed, which TensorFlow's checkpoints are not")
    end = size - 4 * (int.from_bytes(block[-4:], "little") + 1)
    place, key = 0, b""
    if end < 0:
        raise LoadError("a block has no end")
    while place < end:
        shared, place = _number(block, place)
        rest, place = _number(block, place)
        length, place = _number(block, place)
        if shared > len(key) or place + rest + length > end:
            raise LoadError("an entry goes beyond its block")
        key = key[:shared] + block[place : place + rest]
        yield key, block[place + rest : place + rest + length]
        place += rest + length


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A varint, and the place behind it."""
    number = _VARINT.match(data, place)
    if number is None:
        raise LoadError(f"no number at byte {place:,} of a block")
    value = sum((byte & 0x7F) << (7 * shift) for shift, byte in enumerate(number[0]))
    return value, number.end()
