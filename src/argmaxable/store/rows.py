"""Verdicts as rows and back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from argmaxable.core.verdict import (
    Certificate,
    Method,
    OwnDirection,
    Status,
    Strength,
    Verdict,
    Witness,
)
from argmaxable.store.evidence import (
    Parts,
    Shelf,
    certificate_parts,
    digest_of,
    id_parts,
    point_parts,
)
from argmaxable.store.plan import PublishedVerdict
from argmaxable.store.texts import from_column, to_column

# The weights of a certificate with one rival, shared by all of them.
_ALL_WEIGHT = np.ones(1)
_ALL_WEIGHT.flags.writeable = False
_BY_SOLVING = frozenset({Method.INTERIOR_POINT, Method.SIMPLEX, Method.CHEBYSHEV})


class VerdictKind(NamedTuple):
    """What a summary counts."""

    status: Status
    is_tied: bool
    needed_solve: bool


class VerdictRow(NamedTuple):
    """A row of the table of verdicts, in the order of its columns."""

    run_id: int
    class_id: int
    label: str
    status: str
    lower: float | None
    upper: float | None
    method: str
    strength: str | None
    steps: int
    rows: int
    seconds: float | None
    radius: float | None
    reason: str
    exponent: int | None
    point: bytes | None
    rival: int | None
    certificate: bytes | None
    tie_group: bytes | None
    ahead: int | None


class EvidenceRow(NamedTuple):
    """A row of the table of evidence, in the order of its columns."""

    run_id: int
    digest: bytes
    part: str
    dtype: str
    shape: str
    data: bytes


@dataclass(eq=False)
class Batch:
    """Rows to be written together: verdicts by what a summary counts them as, evidence by digest.

    A class counts once: of several verdicts the first stays, as it does in the database.
    """

    run_id: int
    verdicts: dict[VerdictKind, list[VerdictRow]] = field(default_factory=dict)
    evidence: dict[bytes, Parts] = field(default_factory=dict)
    _classes: set[int] = field(default_factory=set)
    _digests: dict[int, bytes] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        kind = VerdictKind(verdict.status, verdict.is_tied, verdict.rows > 0 or verdict.method in _BY_SOLVING)
        self._put(kind, self._row(verdict))

    def add_published(self, verdict: PublishedVerdict) -> None:
        row = VerdictRow(
            run_id=self.run_id, class_id=verdict.class_id, label=to_column(verdict.label),
            status=verdict.status.value, lower=-math.inf, upper=math.inf, method=Method.NONE.value,
            strength=None, steps=verdict.steps, rows=0, seconds=_number(verdict.seconds), radius=None,
            reason="", exponent=None, point=None, rival=None, certificate=None, tie_group=None, ahead=None,
        )  # fmt: skip
        self._put(VerdictKind(verdict.status, False, verdict.needed_solve), row)

    def add_evidence(self, parts: Parts) -> bytes:
        """Add a piece of evidence to be written; returns its digest."""
        digest = digest_of(parts)
        self.evidence[digest] = parts
        return digest

    def evidence_rows(self) -> list[EvidenceRow]:
        return [
            EvidenceRow(self.run_id, digest, part.name, part.dtype, part.shape, part.data)
            for digest, parts in self.evidence.items()
            for part in parts
        ]

    def _put(self, kind: VerdictKind, row: VerdictRow) -> None:
        if row.class_id not in self._classes:
            self._classes.add(row.class_id)
            self.verdicts.setdefault(kind, []).append(row)

    def _row(self, verdict: Verdict) -> VerdictRow:
        witness, certificate = verdict.witness, verdict.certificate
        rival = None if certificate is None else _only_rival(certificate)
        return VerdictRow(
            run_id=self.run_id,
            class_id=int(verdict.class_id),
            label=to_column(verdict.label),
            status=verdict.status.value,
            lower=_number(verdict.lower),
            upper=_number(verdict.upper),
            method=verdict.method.value,
            strength=None if verdict.strength is None else verdict.strength.value,
            steps=int(verdict.steps),
            rows=int(verdict.rows),
            seconds=_number(verdict.seconds),
            radius=None if verdict.radius is None else _number(verdict.radius),
            reason=to_column(verdict.reason),
            exponent=int(witness.exponent) if isinstance(witness, OwnDirection) else None,
            point=None
            if witness is None or isinstance(witness, OwnDirection)
            else self.add_evidence(point_parts(witness)),
            rival=rival,
            certificate=None if certificate is None or rival is not None else self._shared(certificate),
            tie_group=self._shared(verdict.tie_group) if verdict.tie_group else None,
            ahead=verdict.ahead,
        )

    def _shared(self, item: Certificate | tuple[int, ...]) -> bytes:
        """The digest of something that many verdicts hold; hashed once for each object."""
        if id(item) not in self._digests:
            parts = certificate_parts(item) if isinstance(item, Certificate) else id_parts("tie group", item)
            self._digests[id(item)] = self.add_evidence(parts)
        return self._digests[id(item)]


def batch_of(run_id: int, verdicts: Iterable[Verdict]) -> Batch:
    batch = Batch(run_id)
    for verdict in verdicts:
        batch.add(verdict)
    return batch


def count(kinds: Counter[VerdictKind]) -> dict[str, int]:
    """Verdicts as the columns of a run count them."""
    counts = Counter({name: 0 for name in ("argmaxable", "unargmaxable", "tied", "undecided", "solved")})
    for kind, number in kinds.items():
        counts[kind.status.value] += number
        counts["tied"] += number * kind.is_tied
        counts["solved"] += number * kind.needed_solve
    return dict(counts)


def verdict_of(row: VerdictRow, shelf: Shelf) -> Verdict:
    """The verdict that was written, with its evidence from the shelf."""
    return Verdict(
        class_id=row.class_id,
        label=from_column(row.label),
        status=Status(row.status),
        lower=_from_number(row.lower),
        upper=_from_number(row.upper),
        method=Method(row.method),
        strength=None if row.strength is None else Strength(row.strength),
        witness=_witness(row, shelf),
        certificate=_certificate(row, shelf),
        tie_group=() if row.tie_group is None else shelf.ids(row.tie_group),
        steps=row.steps,
        rows=row.rows,
        seconds=_from_number(row.seconds),
        radius=row.radius,
        reason=from_column(row.reason),
        ahead=row.ahead,
    )


def _witness(row: VerdictRow, shelf: Shelf) -> Witness | None:
    if row.exponent is not None:
        return OwnDirection(row.exponent)
    return None if row.point is None else shelf.point(row.point)


def _certificate(row: VerdictRow, shelf: Shelf) -> Certificate | None:
    if row.rival is not None:
        return Certificate(np.array([row.rival], np.intp), _ALL_WEIGHT)
    return None if row.certificate is None else shelf.certificate(row.certificate)


def _only_rival(certificate: Certificate) -> int | None:
    """The one class that has all the weight."""
    is_plain = len(certificate.classes) == 1 and not certificate.basis and certificate.coordinates is None
    is_plain = is_plain and not certificate.whole
    return int(certificate.classes[0]) if is_plain and certificate.weights[0] == 1.0 else None


def _number(value: float) -> float | None:
    # SQLite has neither NaN nor a negative zero.
    return None if math.isnan(value) else float(value) + 0.0


def _from_number(value: float | None) -> float:
    return math.nan if value is None else value
