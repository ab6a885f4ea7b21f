"""Proof bundles: a folder with every verdict and its evidence, for anyone to check (docs/proofs.md).

manifest.json names the head (by fingerprint) and the domain, verdicts.jsonl has a line for each
class, evidence.npz the arrays they refer to. Plain JSON and arrays without pickles: a bundle is
untrusted input to whoever reads it.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import platform
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.domain import Domain
from argmaxable.core.domains import domain_from_record
from argmaxable.core.errors import BundleError, DomainError
from argmaxable.core.result import Facts, Record
from argmaxable.core.verdict import Certificate, OwnDirection, Point, Status, Verdict, Witness
from argmaxable.core.version import VERSION

FORMAT = "argmaxable-proofs-1"
_MANIFEST, _VERDICTS, _EVIDENCE = "manifest.json", "verdicts.jsonl", "evidence.npz"
# What numpy, zipfile and the decompressors raise for archives that are cut short, damaged, encrypted
# or lie about their sizes.
_UNREADABLE = (
    *(
        OSError,
        KeyError,
        ValueError,
        EOFError,
        TypeError,
        AttributeError,
        RuntimeError,
        MemoryError,
        OverflowError,
    ),
    *(SyntaxError, tokenize.TokenError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)
# What a line raises that is not JSON, or not of the form expected.
MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)
# Claims keep four digits: short, and weak enough to be proven again on a machine that sums in
# another order.
_DOWN, _UP = Context(prec=4, rounding=ROUND_FLOOR), Context(prec=4, rounding=ROUND_CEILING)
# Arrays of evidence.npz: name, kind of number, dimensions.
EVIDENCE_ARRAYS = {
    "points32": ("f", 2),
    "points64": ("f", 2),
    "certificate_start": ("iu", 1),
    "certificate_classes": ("iu", 1),
    "certificate_weights": ("f", 1),
    "certificate_basis": ("iu", 1),
    "coordinate_start": ("iu", 1),
    "coordinates": ("iu", 1),
}
_ARRAYS = {**EVIDENCE_ARRAYS, "centre": ("f", 1), "tie_start": ("iu", 1), "tie_classes": ("iu", 1)}


@dataclass(frozen=True, eq=False)
class Claim:
    """One line of a bundle: what is claimed about a class, and the evidence given for it."""

    class_id: int
    status: Status
    lower: float
    upper: float
    witness: Witness | None
    certificate: Certificate | None
    certificate_id: int
    tie_group: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle as read: nothing in it has been checked but its form."""

    manifest: dict[str, Any]
    domain: Domain
    centre: NDArray[np.float64]
    claims: tuple[Claim, ...]

    def __repr__(self) -> str:
        return f"Bundle({len(self.claims):,} claims over {self.domain})"


# ---------------------------------------------------------------------- writing


@dataclass(eq=False)
class Evidence:
    """Arrays collected while lines are written; shared evidence is stored once."""

    points32: list[NDArray[np.float32]] = field(default_factory=list)
    points64: list[NDArray[np.float64]] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    ties: list[tuple[int, ...]] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def point(self, values: NDArray[np.float64]) -> tuple[str, int]:
        single = values.astype(np.float32)
        if (single == values).all():
            self.points32.append(single)
            return "point32", len(self.points32) - 1
        self.points64.append(values)
        return "point64", len(self.points64) - 1

    def once(self, item: Any, shelf: list[Any]) -> int:
        if id(item) not in self.seen:
            shelf.append(item)
            self.seen[id(item)] = len(shelf) - 1
        return self.seen[id(item)]


def write_bundle(record: Record, folder: str | os.PathLike[str]) -> None:
    """Write the bundle into the folder, creating it; files of an earlier bundle are replaced."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        evidence = Evidence()
        lines = [
            json.dumps(_line(verdict, evidence), ensure_ascii=False, separators=(",", ":"))
            for verdict in record.verdicts
        ]
        # Backslashes keep the lone surrogates that a label may hold, as JSON's own escapes.
        (folder / _VERDICTS).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")
        np.savez_compressed(folder / _EVIDENCE, allow_pickle=False, **_arrays(record, evidence))
        manifest = json.dumps(_manifest(record), indent=2, ensure_ascii=False)
        (folder / _MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    except OSError as error:
        raise BundleError(f"can't write the proof bundle to {folder}: {error.strerror or error}.") from error


def _line(verdict: Verdict, evidence: Evidence) -> dict[str, Any]:
    line: dict[str, Any] = {
        "class": verdict.class_id,
        "label": verdict.label,
        "status": verdict.status.value,
        "lower": claimed(verdict.lower, _DOWN),
        "upper": claimed(verdict.upper, _UP),
        "method": verdict.method.value,
    }
    if isinstance(verdict.witness, OwnDirection):
        line["own"] = verdict.witness.exponent
    elif verdict.witness is not None:
        name, number = evidence.point(verdict.witness.values)
        line[name] = number
    certificate = verdict.certificate
    if certificate is not None and len(certificate.classes) == 1 and not certificate.basis:
        line["rival"] = int(certificate.classes[0])
    elif certificate is not None:
        line["certificate"] = evidence.once(certificate, evidence.certificates)
    if verdict.tie_group:
        line["tie"] = evidence.once(verdict.tie_group, evidence.ties)
    if verdict.reason:
        line["reason"] = verdict.reason
    return line


def claimed(value: float, away: Context) -> float | None:
    """The bound as claimed: few digits, rounded to the weaker side; None when infinite."""
    return float(away.create_decimal_from_float(value)) if math.isfinite(value) else None


def _arrays(record: Record, evidence: Evidence) -> dict[str, NDArray[Any]]:
    ids = _id_dtype(record.facts.classes)
    return {
        "centre": record.centre.astype(np.float32),
        **evidence_arrays(evidence, record.facts),
        "tie_start": _starts(evidence.ties),
        "tie_classes": _join([np.array(group) for group in evidence.ties]).astype(ids),
    }


def evidence_arrays(evidence: Evidence, facts: Facts) -> dict[str, NDArray[Any]]:
    """Points and certificates as plain arrays."""
    features = facts.features
    weights = [certificate.weights for certificate in evidence.certificates]
    coordinates = [_coordinates(certificate, features) for certificate in evidence.certificates]
    classes = _join([certificate.classes for certificate in evidence.certificates])
    return {
        "points32": np.array(evidence.points32, np.float32).reshape(-1, features),
        "points64": np.array(evidence.points64, np.float64).reshape(-1, features),
        "certificate_start": _starts(weights),
        "certificate_classes": classes.astype(_id_dtype(facts.classes)),
        "certificate_weights": _join(weights).astype(np.float64),
        "certificate_basis": np.array([c.basis for c in evidence.certificates], np.uint32),
        "coordinate_start": _starts(coordinates),
        "coordinates": _join(coordinates).astype(np.uint32),
    }


def _id_dtype(classes: int) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if classes <= 2**16 else np.uint32


def _coordinates(certificate: Certificate, features: int) -> NDArray[np.intp]:
    """Features to solve for: none for literal weights, otherwise those named or all."""
    if not certificate.basis:
        return np.empty(0, np.intp)
    return np.arange(features) if certificate.coordinates is None else certificate.coordinates


def _starts(lists: list[Any]) -> NDArray[np.int64]:
    return np.cumsum([0] + [len(entries) for entries in lists], dtype=np.int64)


def _join(lists: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(lists) if lists else np.empty(0)


def _manifest(record: Record) -> dict[str, Any]:
    facts = record.facts
    return {
        "format": FORMAT,
        "model": facts.name,
        "head": {"sha256": facts.sha256, "classes": facts.classes, "features": facts.features},
        "domain": record.domain.as_record(),
        "complete": record.is_complete,
        "argmaxable": len(record.argmaxable),
        "unargmaxable": len(record.unargmaxable),
        "tied": len(record.tied),
        "undecided": len(record.undecided),
        "versions": {"argmaxable": VERSION, "numpy": np.__version__, "python": platform.python_version()},
    }


# ---------------------------------------------------------------------- reading


def read_bundle(folder: str | os.PathLike[str]) -> Bundle:
    """Read a bundle; raises BundleError for anything that is not one."""
    folder = Path(folder)
    manifest = _read_manifest(folder)
    arrays = read_arrays(folder / _EVIDENCE, _ARRAYS)
    certificates = list(certificates_of(arrays, len(arrays["centre"])))
    ties = [tuple(group.tolist()) for group in _slices(arrays["tie_start"], arrays["tie_classes"])]
    claims = tuple(_claims(folder, arrays, certificates, ties))
    try:
        domain = domain_from_record(manifest["domain"])
    except DomainError as error:
        raise BundleError(f"{folder / _MANIFEST}: {error}") from error
    return Bundle(manifest, domain, _as_float64(arrays["centre"]), claims)


def _as_float64(array: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaNs; refused when checked
        return array.astype(np.float64)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(
            f"{folder} is no proof bundle: can't read {_MANIFEST} ({error.strerror})."
        ) from error
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{folder / _MANIFEST} is not valid JSON: {error}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{folder / _MANIFEST} is not of the format {FORMAT}.")
    if not isinstance(manifest.get("domain"), dict) or not isinstance(manifest.get("head"), dict):
        raise BundleError(f"{folder / _MANIFEST} names no domain or no head.")
    return manifest


def read_arrays(path: Path, wanted: dict[str, tuple[str, int]]) -> dict[str, NDArray[Any]]:
    """The wanted arrays of an .npz file: name, kind of number, dimensions. Raises BundleError."""
    arrays: dict[str, NDArray[Any]] = {}
    try:
        # numpy leaves a file it opened itself open when the archive is broken.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name, (kind, dimensions) in wanted.items():
                array = archive[name]
                if array.dtype.kind not in kind or array.ndim != dimensions:
                    raise BundleError(
                        f"{path}: array '{name}' has dtype {array.dtype}, {array.ndim} dimensions."
                    )
                arrays[name] = array
    except _UNREADABLE as error:
        raise BundleError(f"{path} can't be read: {error}.") from error
    return arrays


def _slices(start: NDArray[Any], values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if (
        len(start) == 0
        or (np.diff(start.astype(np.int64)) < 0).any()
        or start[0] != 0
        or start[-1] != len(values)
    ):
        raise BundleError(f"{_EVIDENCE}: a list of starts does not fit its values.")
    for first, last in pairwise(start.tolist()):
        yield values[first:last]


def certificates_of(arrays: dict[str, NDArray[Any]], features: int) -> Iterator[Certificate]:
    """The certificates that `evidence_arrays` put down."""
    start, basis = arrays["certificate_start"], arrays["certificate_basis"]
    classes = list(_slices(start, arrays["certificate_classes"]))
    weights = list(_slices(start, arrays["certificate_weights"]))
    coordinates = list(_slices(arrays["coordinate_start"], arrays["coordinates"]))
    if not len(classes) == len(basis) == len(coordinates):
        raise BundleError(f"{_EVIDENCE}: certificates and their parts differ in number.")
    for k in range(len(classes)):
        chosen = None if len(coordinates[k]) == features else coordinates[k].astype(np.intp)
        yield Certificate(classes[k].astype(np.intp), _as_float64(weights[k]), int(basis[k]), chosen)


def _claims(
    folder: Path,
    arrays: dict[str, NDArray[Any]],
    certificates: list[Certificate],
    ties: list[tuple[int, ...]],
) -> Iterator[Claim]:
    path = folder / _VERDICTS
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield _claim(json.loads(line), arrays, certificates, ties)
                except MALFORMED as error:
                    raise BundleError(f"{path}, line {number}: {error!r}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} can't be read: {error}.") from error


def _claim(
    line: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    certificates: list[Certificate],
    ties: list[tuple[int, ...]],
) -> Claim:
    witness: Witness | None = None
    if "own" in line:
        witness = OwnDirection(whole_number(line["own"], -4000, 4000))
    for name in ("point32", "point64"):
        if name in line:
            witness = Point(stored_point(arrays, name, line[name]))
    certificate, certificate_id = None, -1
    if "rival" in line:
        certificate = Certificate(np.array([whole_number(line["rival"], 0, 2**62)]), np.ones(1))
    elif "certificate" in line:
        certificate_id = whole_number(line["certificate"], 0, len(certificates))
        certificate = certificates[certificate_id]
    return Claim(
        class_id=whole_number(line["class"], 0, 2**62),
        status=Status(line["status"]),
        lower=finite_number(line["lower"], -math.inf),
        upper=finite_number(line["upper"], math.inf),
        witness=witness,
        certificate=certificate,
        certificate_id=certificate_id,
        tie_group=ties[whole_number(line["tie"], 0, len(ties))] if "tie" in line else (),
    )


def stored_point(arrays: dict[str, NDArray[Any]], name: str, number: Any) -> NDArray[np.float64]:
    """The point that a line calls point32 or point64."""
    shelf = arrays["points32" if name == "point32" else "points64"]
    return _as_float64(shelf[whole_number(number, 0, len(shelf))])


def whole_number(value: Any, low: int, high: int) -> int:
    """A whole number from low to high − 1 that JSON gave; raises ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < high:
        raise ValueError(f"{value!r} is not a whole number from {low} to {high - 1}")
    return value


def finite_number(value: Any, missing: float) -> float:
    """A finite number that JSON gave, `missing` for null; raises ValueError for anything else."""
    if value is None:
        return missing
    if not isinstance(value, float | int) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)
