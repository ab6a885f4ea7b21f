"""A change to a stored tensor, and copies of files in which only its bytes are others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from argmaxable.models.finding import TensorInfo


@dataclass(frozen=True, eq=False)
class Edit:
    """A tensor as the file stores it: its bytes (row by row, little-endian) before and after."""

    tensor: TensorInfo
    before: NDArray[Any]
    after: NDArray[Any]

    def bytes_before(self, order: str = "C") -> bytes:
        return little_endian(self.before, order)

    def bytes_after(self, order: str = "C") -> bytes:
        return little_endian(self.after, order)


@dataclass(frozen=True)
class Patch:
    """Bytes to put at a place of a file, of the same length as those that are there."""

    start: int
    data: bytes


def stored_edit(info: TensorInfo, before: NDArray[Any], after: NDArray[Any]) -> Edit:
    """The change in the shape of the stored tensor; `before` and `after` may be its transpose, and `after`
    may have more classes.

    Raises InputError where the tensor does not hold these numbers themselves.
    """
    if before.dtype.name != info.dtype.lstrip("<>=|"):
        raise InputError(
            f"tensor {info} holds {info.dtype}, from which the head's {before.dtype.name} numbers are made "
            "(quantised, cast or scaled): it can't be written back without loss. Repair the float model."
        )
    if before.size != int(np.prod(info.shape)):
        raise InputError(f"tensor {info} stands for {before.shape} numbers and can't be changed one by one.")
    if before.ndim == 2 and info.shape[:2] == before.T.shape and info.shape[:2] != before.shape:
        before, after = before.T, after.T
    return Edit(info, before.reshape(info.shape), after.reshape(_grown_shape(info.shape, before, after)))


def _grown_shape(stored: tuple[int, ...], before: NDArray[Any], after: NDArray[Any]) -> tuple[int, ...]:
    """The stored shape, which may have axes of length 1 besides those of `before`, as large as `after`."""
    pairs = list(zip(before.shape, after.shape, strict=True))
    grown = [pairs.pop(0)[1] if pairs and length == pairs[0][0] else length for length in stored]
    return tuple(grown)


def copy_with(source: Path, target: Path, patches: Sequence[Patch]) -> None:
    """A copy of a file in which only the patched bytes differ; raises InputError for one beyond its end."""
    size = source.stat().st_size
    if any(patch.start + len(patch.data) > size for patch in patches):
        raise InputError(f"{source.name} is shorter than it says: not changed. Fetch it again.")
    shutil.copyfile(source, target)
    with target.open("r+b") as file:
        for patch in patches:
            file.seek(patch.start)
            file.write(patch.data)


def find_bytes(path: Path, start: int, length: int, wanted: bytes) -> list[int]:
    """Every place in a part of a file where these bytes begin."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(length)
    places, place = [], data.find(wanted)
    while place >= 0:
        places.append(start + place)
        place = data.find(wanted, place + 1)
    return places


@contextmanager
def replacing(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """A file beside the target to write to; it becomes the target at the end, or goes away on an error.

    Raises InputError when the target exists and is not to be overwritten, or can't be written.
    """
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already. Pass --overwrite to replace it, or choose another name.")
    if target.is_dir():
        raise InputError(f"{target} is a directory, expected the name of a file.")
    if target.exists() and not os.access(target, os.W_OK):
        raise InputError(f"{target} is read-only and was left as it is. Choose another name.")
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        raise InputError(
            f"{target} can't be written ({error.strerror or error}). Check the folder and its permissions."
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def little_endian(array: NDArray[Any], order: str = "C") -> bytes:
    """The bytes of an array as files store them: little-endian, by rows ("C") or by columns ("F")."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    little = bits.astype(bits.dtype.newbyteorder("<"), copy=False)
    return little.tobytes(order="F" if order == "F" else "C")
