"""A look at an HDF5 file before the HDF5 library gets to see it.

Strings of attributes lie in global heaps, chains of objects behind the letters GCOL. Where an object of
length 0 or of an absurd one is in such a chain the library never returns, or crashes, and takes the program
with it; of files with a few bytes changed at random 3 in 1000 did that. So the chains are walked here first.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from itertools import islice
from typing import IO

from argmaxable.errors import LoadError

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# How many bytes offsets and lengths have, at a place that depends on the version of the format. Every writer
# since the nineties says 8; what the library does with others is nobody's concern here.
_EIGHT_BYTES = b"\x08\x08"
_HEAP = struct.Struct("<QQ")  # signature and version, size
_HEAP_START = b"GCOL\x01\0\0\0"
_OBJECT = struct.Struct("<H6xQ")  # number, 0 for free space; size
# A model has some thousand strings. More than this would take long to walk, and is no model.
_MOST_OBJECTS = 2**20
_CHUNK = 2**20


def require_sound(stream: IO[bytes]) -> None:
    """Raise LoadError unless the stream is HDF5 with well-formed heaps; leaves it at its beginning."""
    end = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    start = stream.read(16)
    lengths = start[9:11] if start[8:9] > b"\x01" else start[13:15]
    if not start.startswith(_SIGNATURE) or lengths != _EIGHT_BYTES:
        raise LoadError(
            f"holds no HDF5 file as Keras writes them (it begins with {start[:8]!r}). It may be damaged or a "
            "Git LFS pointer; fetch it again."
        )
    places = list(islice(_heap_places(stream), _MOST_OBJECTS + 1))
    objects = (each for place in places for each in _objects(stream, place, end))
    if len(places) + sum(1 for _ in islice(objects, _MOST_OBJECTS)) > _MOST_OBJECTS:
        raise LoadError(f"holds an HDF5 file with more than {_MOST_OBJECTS} strings, which no model has.")
    stream.seek(0)


def _heap_places(stream: IO[bytes]) -> Iterator[int]:
    """Where the signature of a heap is, anywhere in the stream."""
    position, overlap = 0, len(_HEAP_START) - 1
    while True:
        stream.seek(position)
        chunk = stream.read(_CHUNK + overlap)
        found = chunk.find(_HEAP_START)
        while found >= 0:
            yield position + found
            found = chunk.find(_HEAP_START, found + 1)
        if len(chunk) <= _CHUNK:
            return
        position += _CHUNK


def _objects(stream: IO[bytes], place: int, end: int) -> Iterator[int]:
    """Where the objects of a heap are; raises LoadError unless they fill it one after the other."""
    size = _read(stream, place, _HEAP)[1]
    heap_end = place + size
    position = place + _HEAP.size
    while heap_end <= end and heap_end - position >= _OBJECT.size:
        yield position
        number, length = _read(stream, position, _OBJECT)
        step = _OBJECT.size + -(-length // 8) * 8 if number else length
        if not _OBJECT.size <= step <= heap_end - position:
            heap_end = end + 1
        position += step
    if heap_end > end:
        raise LoadError(
            f"holds an HDF5 file whose heap of strings at byte {place} is damaged. Fetch it again."
        )


def _read(stream: IO[bytes], position: int, layout: struct.Struct) -> tuple[int, ...]:
    stream.seek(position)
    return layout.unpack(stream.read(layout.size).ljust(layout.size, b"\0"))
