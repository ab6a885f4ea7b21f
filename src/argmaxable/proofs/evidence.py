"""The arrays that lines of claims refer to: points, certificates and groups of ties in an .npz file.

Plain arrays without pickles (docs/proofs.md): untrusted input to whoever reads them.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.errors import BundleError
from argmaxable.core.head import Facts
from argmaxable.core.verdict import Certificate
from argmaxable.proofs.values import only_one_of, whole_number

Arrays = dict[str, NDArray[Any]]
Line = dict[str, Any]
# Name, kind of number, dimensions.
ArrayTypes = Mapping[str, tuple[str, int]]

POINTS_AND_CERTIFICATES: ArrayTypes = {
    "points32": ("f", 2),
    "points64": ("f", 2),
    "certificate_start": ("iu", 1),
    "certificate_classes": ("iu", 1),
    "certificate_weights": ("f", 1),
    "certificate_basis": ("iu", 1),
    "coordinate_start": ("iu", 1),
    "coordinates": ("iu", 1),
}
TIES: ArrayTypes = {"tie_start": ("iu", 1), "tie_classes": ("iu", 1)}
CENTRE: ArrayTypes = {"centre": ("f", 1)}
# A line calls its point by one of these; their arrays have an s.
_POINT_NAMES = ("point32", "point64")
# What numpy, zipfile and the decompressors raise for archives that are cut short, damaged, encrypted
# or lie about their sizes.
_UNREADABLE = (
    *(OSError, KeyError, ValueError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError),
    *(OverflowError, SyntaxError, tokenize.TokenError, struct.error, zlib.error, lzma.LZMAError),
    zipfile.BadZipFile,
)


# ---------------------------------------------------------------------- writing


@dataclass(eq=False)
class EvidenceWriter:
    """Evidence collected while lines are written; shared evidence is stored once."""

    points32: list[NDArray[np.float32]] = field(default_factory=list)
    points64: list[Vector] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    ties: list[tuple[int, ...]] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def point(self, values: Vector, prefix: str = "") -> Line:
        """The part of a line that names a point."""
        with np.errstate(over="ignore"):  # what float32 does not hold becomes infinite, and differs
            single = values.astype(np.float32)
        if (single == values).all():
            self.points32.append(single)
            return {f"{prefix}point32": len(self.points32) - 1}
        self.points64.append(values)
        return {f"{prefix}point64": len(self.points64) - 1}

    def certificate(self, certificate: Certificate) -> int:
        """The number of a certificate."""
        return self._once(certificate, self.certificates)

    def tie(self, group: tuple[int, ...]) -> int:
        """The number of a group of identical classes."""
        return self._once(group, self.ties)

    def _once(self, item: Any, stored: list[Any]) -> int:
        if id(item) not in self.seen:
            stored.append(item)
            self.seen[id(item)] = len(stored) - 1
        return self.seen[id(item)]

    def arrays(self, facts: Facts, point_size: int) -> Arrays:
        """All that was collected, as plain arrays; each point has `point_size` entries."""
        features, ids = facts.features, np.uint16 if facts.classes <= 2**16 else np.uint32
        weights = [certificate.weights for certificate in self.certificates]
        coordinates = [_coordinates(certificate, features) for certificate in self.certificates]
        return {
            "points32": np.array(self.points32, np.float32).reshape(-1, point_size),
            "points64": np.array(self.points64, np.float64).reshape(-1, point_size),
            "certificate_start": _starts(weights),
            "certificate_classes": _join([one.classes for one in self.certificates]).astype(ids),
            "certificate_weights": _join(weights).astype(np.float64),
            "certificate_basis": np.array([one.basis for one in self.certificates], np.uint32),
            "coordinate_start": _starts(coordinates),
            "coordinates": _join(coordinates).astype(np.uint32),
            "tie_start": _starts(self.ties),
            "tie_classes": _join([np.array(group) for group in self.ties]).astype(ids),
        }


def _coordinates(certificate: Certificate, features: int) -> Ids:
    """Features to solve for: none for literal weights, otherwise those named or all."""
    if not certificate.basis:
        return np.empty(0, np.intp)
    return np.arange(features) if certificate.coordinates is None else certificate.coordinates


def _starts(lists: list[Any]) -> NDArray[np.int64]:
    return np.cumsum([0] + [len(entries) for entries in lists], dtype=np.int64)


def _join(lists: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(lists) if lists else np.empty(0)


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class EvidenceReader:
    """Evidence as read: nothing in it has been checked but its form. `sha256` is that of its file."""

    sha256: str
    arrays: Arrays
    certificates: tuple[Certificate, ...]
    ties: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(path: Path, types: ArrayTypes, features: object = None) -> EvidenceReader:
        """The evidence of an .npz file that must hold these arrays, about a head of this many features (some
        files of version 0.1.0 do not say how many); raises BundleError."""
        sha256, arrays = _read_arrays(path, types)
        try:
            certificates = tuple(_certificates(arrays, features))
            ties = tuple(_slices(arrays["tie_start"], arrays["tie_classes"])) if "tie_start" in types else ()
        except BundleError as error:
            raise BundleError(f"{path}: {error}") from error
        return EvidenceReader(sha256, arrays, certificates, tuple(tuple(group.tolist()) for group in ties))

    @property
    def centre(self) -> Vector | None:
        """The vector for own-direction witnesses, where there is one."""
        return _as_float64(self.arrays["centre"]) if "centre" in self.arrays else None

    def point(self, line: Line, prefix: str = "") -> Vector | None:
        """The point that a line names, if it names one; raises ValueError if it names two."""
        only_one_of(line, *(prefix + name for name in _POINT_NAMES))
        for name in _POINT_NAMES:
            if prefix + name in line:
                stored = self.arrays[f"{name.replace('point', 'points')}"]
                return _as_float64(stored[whole_number(line[prefix + name], 0, len(stored))])
        return None

    def certificate(self, number: Any) -> Certificate:
        return self.certificates[whole_number(number, 0, len(self.certificates))]

    def tie(self, number: Any) -> tuple[int, ...]:
        return self.ties[whole_number(number, 0, len(self.ties))]


def _read_arrays(path: Path, types: ArrayTypes) -> tuple[str, Arrays]:
    """The SHA-256 of the file, and its arrays."""
    try:
        # numpy leaves a file it opened itself open when the archive is broken.
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            return sha256, _arrays_of(file, path, types)
    except _UNREADABLE as error:
        raise BundleError(f"{path} can't be read: {error}.") from error


def _arrays_of(file: BinaryIO, path: Path, types: ArrayTypes) -> Arrays:
    arrays: Arrays = {}
    with np.load(file, allow_pickle=False) as archive:
        if len(set(archive.files)) != len(archive.files):
            raise BundleError(f"{path} holds two arrays of the same name: which one counts is not clear.")
        for name, (kind, dimensions) in types.items():
            array = archive[name]
            if array.dtype.kind not in kind or array.ndim != dimensions:
                raise BundleError(f"{path}: array '{name}' has dtype {array.dtype}, {array.ndim} dimensions.")
            arrays[name] = array
    return arrays


def _as_float64(array: NDArray[Any]) -> Vector:
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaNs; refused when checked
        return array.astype(np.float64)


def _slices(start: NDArray[Any], values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if (
        len(start) == 0
        or (np.diff(start.astype(np.int64)) < 0).any()
        or start[0] != 0
        or start[-1] != len(values)
    ):
        raise BundleError("a list of starts does not fit its values.")
    for first, last in pairwise(start.tolist()):
        yield values[first:last]


def _certificates(arrays: Arrays, features: object) -> Iterator[Certificate]:
    start = arrays["certificate_start"]
    classes = list(_slices(start, arrays["certificate_classes"]))
    weights = list(_slices(start, arrays["certificate_weights"]))
    coordinates = list(_slices(arrays["coordinate_start"], arrays["coordinates"]))
    basis = arrays["certificate_basis"].tolist()
    everything = arrays["points32"].shape[1] if features is None else features
    if not len(classes) == len(basis) == len(coordinates):
        raise BundleError("certificates and their parts differ in number.")
    for k in range(len(classes)):
        named = coordinates[k].astype(np.intp)
        chosen = None if _are_all(named, everything) else named
        yield Certificate(classes[k].astype(np.intp), _as_float64(weights[k]), basis[k], chosen)


def _are_all(coordinates: Ids, features: object) -> bool:
    """Whether every feature is named. How many there are is untrusted: nothing of that size is made."""
    if not isinstance(features, int) or len(coordinates) < features:
        return False
    return np.array_equal(np.unique(coordinates), np.arange(features))
