"""Verdicts as claims: a witness bounds the margin from below, a certificate from above (docs/proofs.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from argmaxable.check.verdicts import failed_in_rationals, failed_verdicts
from argmaxable.core.verdict import Certificate, Method, OwnDirection, Point, Status, Verdict, Witness
from argmaxable.proofs.evidence import (
    CENTRE,
    POINTS_AND_CERTIFICATES,
    TIES,
    ArrayTypes,
    EvidenceReader,
    EvidenceWriter,
    Line,
)
from argmaxable.proofs.kind import Bundle, ClaimFiles, ClaimKind
from argmaxable.proofs.values import LARGEST, finite_number, rounded_down, rounded_up, text, whole_number

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.claim import Failure
    from argmaxable.core.head import Head
    from argmaxable.core.progress import ProgressCallback

# Claims have four digits: short, and weak enough to be proven again on a machine that sums in another
# order.
_DIGITS = 4


class VerdictClaims(ClaimKind[Verdict, None]):
    """Verdicts and the vector that rebuilds their own-direction witnesses."""

    noun, plural, format = "verdict", "verdicts", "argmaxable-proofs-1"
    files = ClaimFiles("manifest.json", "verdicts.jsonl", "evidence.npz")
    arrays: ClassVar[ArrayTypes] = {**CENTRE, **POINTS_AND_CERTIFICATES, **TIES}

    def encode(self, claim: Verdict, evidence: EvidenceWriter) -> Line:
        line: Line = {
            "class": claim.class_id,
            "label": claim.label,
            "status": claim.status.value,
            "lower": rounded_down(claim.lower, _DIGITS),
            "upper": rounded_up(claim.upper, _DIGITS),
            "method": claim.method.value,
        }
        if isinstance(claim.witness, OwnDirection):
            line["own"] = claim.witness.exponent
        elif claim.witness is not None:
            line |= evidence.point(claim.witness.values)
        certificate = claim.certificate
        if certificate is not None and len(certificate.classes) == 1 and not certificate.basis:
            line["rival"] = int(certificate.classes[0])
        elif certificate is not None:
            line["certificate"] = evidence.certificate(certificate)
        if claim.tie_group:
            line["tie"] = evidence.tie(claim.tie_group)
        if claim.reason:
            line["reason"] = claim.reason
        return line

    def decode(self, line: Line, evidence: EvidenceReader) -> Verdict:
        return Verdict(
            class_id=whole_number(line["class"], 0, LARGEST),
            label=text(line.get("label", "")),
            status=Status(line["status"]),
            lower=finite_number(line["lower"], -math.inf),
            upper=finite_number(line["upper"], math.inf),
            method=Method(line.get("method", Method.NONE)),
            strength=None,
            witness=_witness(line, evidence),
            certificate=_certificate(line, evidence),
            tie_group=evidence.tie(line["tie"]) if "tie" in line else (),
            reason=text(line.get("reason", "")),
        )

    def read_settings(self, header: Line) -> None:
        return None

    def check(self, checker: Checker, claims: Sequence[Verdict], settings: None) -> Iterable[Failure]:
        return failed_verdicts(checker, claims)

    def check_in_rationals(
        self, checker: Checker, claims: Sequence[Verdict], progress: ProgressCallback
    ) -> Iterable[Failure]:
        return failed_in_rationals(checker, claims, progress)

    def states_nothing(self, claim: Verdict, head: Head) -> bool:
        return claim.status is Status.UNDECIDED

    def scope(self, bundle: Bundle[Verdict, None]) -> str:
        return f" over the domain {bundle.domain}"


def _witness(line: Line, evidence: EvidenceReader) -> Witness | None:
    point = evidence.point(line)
    if point is not None:
        return Point(point)
    return OwnDirection(whole_number(line["own"], -4000, 4000)) if "own" in line else None


def _certificate(line: Line, evidence: EvidenceReader) -> Certificate | None:
    if "rival" in line:
        return Certificate(np.array([whole_number(line["rival"], 0, LARGEST)]), np.ones(1))
    return evidence.certificate(line["certificate"]) if "certificate" in line else None


VERDICTS = VerdictClaims()
