"""Evidence as bytes that are their own address: arrays with dtype and shape, named by their SHA-256.

The same evidence has the same digest, so that what many verdicts share is stored once and writing it
again changes nothing. No pickles: a database is untrusted input to whoever reads it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import StoreError
from argmaxable.core.verdict import Certificate, FinePoint, Point

_DTYPES = ("<f4", "<f8", "<i4", "<i8")
# Of a whole number of any length.
_DIGIT_BITS, _DIGIT = 30, 2**30 - 1


@dataclass(frozen=True, slots=True)
class Part:
    """One array of a piece of evidence, as it is stored."""

    name: str
    dtype: str
    shape: str
    data: bytes

    @staticmethod
    def of(name: str, array: NDArray[Any]) -> Part:
        dtype = array.dtype.newbyteorder("<")
        return Part(name, dtype.str, ",".join(map(str, array.shape)), array.astype(dtype).tobytes())

    def array(self) -> NDArray[Any]:
        """The array, read-only and little-endian; raises ValueError for anything that is none."""
        shape = tuple(int(size) for size in self.shape.split(",") if size)
        if self.dtype not in _DTYPES or math.prod(shape) * int(self.dtype[2:]) != len(self.data):
            raise ValueError(f"dtype {self.dtype}, shape {self.shape}, {len(self.data)} bytes")
        return np.frombuffer(self.data, self.dtype).reshape(shape)


Parts = tuple[Part, ...]


def digest_of(parts: Parts) -> bytes:
    """The address of a piece of evidence."""
    digest = hashlib.sha256()
    for part in sorted(parts, key=lambda part: part.name):
        digest.update(f"{part.name} {part.dtype} {part.shape}\n".encode())
        digest.update(part.data)
    return digest.digest()


def vector_parts(name: str, values: NDArray[np.float64]) -> Parts:
    """A vector of numbers, in single precision where that is exact (search works in float32)."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return (Part.of(name, single if (single == values).all() else values),)


def point_parts(point: Point | FinePoint) -> Parts:
    """A witness: a vector, or whole numbers as digits in base 2^30, the lowest first, with their exponent."""
    if isinstance(point, Point):
        return vector_parts("point", point.values)
    return _digits("digits", point.integers), *id_parts("exponent", [point.exponent])


def _digits(name: str, integers: Sequence[int]) -> Part:
    """Whole numbers of any length as digits in base 2^30, the lowest first."""
    size = max(map(int.bit_length, integers), default=0) // _DIGIT_BITS + 1
    digits = [
        [(1 if number >= 0 else -1) * (abs(number) >> _DIGIT_BITS * place & _DIGIT) for place in range(size)]
        for number in integers
    ]
    return Part.of(name, np.array(digits, np.int32))


def _from_digits(array: NDArray[Any]) -> tuple[int, ...]:
    return tuple(
        sum(digit << _DIGIT_BITS * place for place, digit in enumerate(digits)) for digits in array.tolist()
    )


def id_parts(name: str, ids: Iterable[int] | NDArray[np.intp]) -> Parts:
    """Class or feature numbers, in 32 bits where they fit."""
    array = np.asarray(ids, np.int64)
    small = not array.size or (array.min() >= -(2**31) and array.max() < 2**31)
    return (Part.of(name, array.astype(np.int32) if small else array),)


def certificate_parts(certificate: Certificate) -> Parts:
    parts = (
        *id_parts("classes", certificate.classes),
        Part.of("weights", certificate.weights),
        *id_parts("basis", np.array(certificate.basis)),
    )
    if certificate.whole:
        parts = (*parts, _digits("whole", certificate.whole))
    if certificate.coordinates is None:
        return parts
    return (*parts, *id_parts("coordinates", certificate.coordinates))


class Shelf:
    """Evidence read from the database, checked against its digests; each piece is built once."""

    def __init__(self) -> None:
        self._pieces: dict[bytes, Parts] = {}
        self._built: dict[bytes, Any] = {}

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._built or digest in self._pieces

    def put(self, pieces: Mapping[bytes, Parts]) -> None:
        self._pieces.update(pieces)

    def vector(self, digest: bytes) -> NDArray[np.float64]:
        """A vector written by `vector_parts`."""
        return cast("NDArray[np.float64]", self._once(digest, _vector))

    def point(self, digest: bytes) -> Point | FinePoint:
        """A witness written by `point_parts`."""
        return cast("Point | FinePoint", self._once(digest, _witness_point))

    def ids(self, digest: bytes) -> tuple[int, ...]:
        """Numbers written by `id_parts`."""
        return cast("tuple[int, ...]", self._once(digest, _ids))

    def certificate(self, digest: bytes) -> Certificate:
        """A certificate written by `certificate_parts`."""
        return cast("Certificate", self._once(digest, _certificate))

    def _once(self, digest: bytes, build: Callable[[Parts], Any]) -> Any:
        if digest not in self._built:
            parts = self._pieces.pop(digest, ())
            if digest_of(parts) != digest:
                raise StoreError(
                    f"evidence {digest.hex()[:12]}… is {'damaged' if parts else 'missing'}: the database "
                    "was changed by something else. Verify the model again with --overwrite."
                )
            self._built[digest] = build(parts)
        return self._built[digest]


def _vector(parts: Parts) -> NDArray[np.float64]:
    (part,) = parts
    return _frozen(part.array(), np.float64)


def _witness_point(parts: Parts) -> Point | FinePoint:
    if len(parts) == 1:
        return Point(_vector(parts))
    arrays = {part.name: part.array() for part in parts}
    return FinePoint(_from_digits(arrays["digits"]), int(arrays["exponent"][0]))


def _ids(parts: Parts) -> tuple[int, ...]:
    (part,) = parts
    return tuple(part.array().tolist())


def _certificate(parts: Parts) -> Certificate:
    arrays = {part.name: part.array() for part in parts}
    coordinates = arrays.get("coordinates")
    return Certificate(
        classes=_frozen(arrays["classes"], np.intp),
        weights=_frozen(arrays["weights"], np.float64),
        basis=int(arrays["basis"]),
        coordinates=None if coordinates is None else _frozen(coordinates, np.intp),
        whole=_from_digits(arrays["whole"]) if "whole" in arrays else (),
    )


def _frozen(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    converted = array.astype(dtype, copy=False)
    converted.flags.writeable = False
    return converted
