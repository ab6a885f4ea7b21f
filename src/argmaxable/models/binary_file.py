"""A binary file read from front to back: one little-endian number after the other, never past its end."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError

# For weights that lie in a file of their own, whose length was compared before.
SHRUNK = "The file of weights was cut short while it was read. Try again."


@contextmanager
def mapped(path: Path, expected: str) -> Iterator[mmap.mmap]:
    """The bytes of a file, read when they are looked at; raises LoadError if it is empty."""
    with path.open("rb") as file:
        if not file.read(1):  # mmap refuses empty files
            raise LoadError(f"is empty, expected {expected}. Fetch it again.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


class BinaryReader:
    """A position in a file's bytes. `damaged` tells the user what to do where the file ends too early."""

    def __init__(self, data: mmap.mmap | bytes, damaged: str) -> None:
        self.data = data
        self.position = 0
        self._damaged = damaged

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def numbers(self, layout: str, what: str) -> tuple[Any, ...]:
        """The next numbers, in a layout of `struct`; `what` names them in errors."""
        return struct.unpack_from(f"<{layout}", self.data, self.skip(struct.calcsize(f"<{layout}"), what))

    def skip(self, nbytes: int, what: str) -> int:
        """Where the next `nbytes` bytes start."""
        if not 0 <= nbytes <= self.left:
            raise LoadError(
                f"{what} takes {nbytes} bytes, but {self.left} are left in the file. {self._damaged}"
            )
        start = self.position
        self.position += nbytes
        return start


def read_array(path: Path, dtype: str, start: int, shape: tuple[int, ...], damaged: str) -> NDArray[Any]:
    """The numbers of an array that lies in a file from `start` on; raises LoadError."""
    values = np.fromfile(path, dtype, math.prod(shape), offset=start)
    if len(values) != math.prod(shape):  # the file shrank since it was parsed
        raise LoadError(f"ends after {len(values)} of {math.prod(shape)} numbers. {damaged}")
    return values.reshape(shape)


def read_values(
    path: Path, dtype: np.dtype[Any], start: int, shape: tuple[int, ...], damaged: str
) -> NDArray[Any]:
    """The same for any type of numbers, also those that NumPy has no little-endian form of (bfloat16)."""
    bits = read_array(path, f"<u{dtype.itemsize}", start, shape, damaged)
    values: NDArray[Any] = bits.astype(f"=u{dtype.itemsize}", copy=False).view(dtype)
    return values
