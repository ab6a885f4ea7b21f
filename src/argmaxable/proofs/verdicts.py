"""Verdicts as claims: a witness bounds the margin from below, a certificate from above (docs/proofs.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from argmaxable.check.verdicts import failed_in_rationals, failed_verdicts
from argmaxable.core.verdict import (
    Certificate,
    FinePoint,
    Method,
    OwnDirection,
    Point,
    Status,
    Verdict,
    Witness,
)
from argmaxable.proofs.evidence import (
    CENTRE,
    POINTS_AND_CERTIFICATES,
    TIES,
    ArrayTypes,
    EvidenceReader,
    EvidenceWriter,
    Line,
)
from argmaxable.proofs.in_words import contradicts_completeness, differs
from argmaxable.proofs.kind import Bundle, ClaimFiles, ClassClaimKind
from argmaxable.proofs.values import (
    LARGEST,
    finite_number,
    only_one_of,
    rounded_down,
    rounded_up,
    text,
    whole_hex,
    whole_number,
)

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.identical_rows import IdenticalRows
    from argmaxable.compute.prepared import PreparedHead
    from argmaxable.core.claim import Failure
    from argmaxable.core.head import Head
    from argmaxable.core.progress import ProgressCallback

# Claims have four digits: short, and weak enough to be proven again on a machine that sums in another
# order.
_DIGITS = 4
# Powers of two beyond these are of no use to float64, nor to points a little finer.
_EXPONENTS = (-4000, 4000)


class VerdictClaims(ClassClaimKind[Verdict, None]):
    """Verdicts and the vector that rebuilds their own-direction witnesses."""

    noun, plural, format = "verdict", "verdicts", "argmaxable-proofs-2"
    earlier_format = "argmaxable-proofs-1"
    files = ClaimFiles("manifest.json", "verdicts.jsonl", "evidence.npz")
    stands_alone = True
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
        elif isinstance(claim.witness, FinePoint):
            line["point"] = [hex(number) for number in claim.witness.integers]
            line["exponent"] = claim.witness.exponent
        elif claim.witness is not None:
            line |= evidence.point(claim.witness.values)
        certificate = claim.certificate
        if certificate is not None and len(certificate.classes) == 1 and not certificate.basis:
            line["rival"] = int(certificate.classes[0])
        elif certificate is not None:
            line["certificate"] = evidence.certificate(certificate)
            if certificate.whole:
                line["weights"] = [hex(weight) for weight in certificate.whole]
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

    def summary(self, proven: Sequence[Verdict], bundle: Bundle[Verdict, None]) -> str:
        count = sum(claim.status is Status.UNARGMAXABLE for claim in proven)
        if not count:
            return "All of these classes can be predicted." if proven else ""
        return (
            " ".join([f"{count:,} of these classes can never be predicted", bundle.domain.scope()]).rstrip()
            + "."
        )

    def contradictions(self, bundle: Bundle[Verdict, None], head: PreparedHead) -> Iterator[str]:
        claims, manifest = bundle.claims, bundle.manifest
        for status in Status:
            found = sum(claim.status is status for claim in claims)
            yield from differs(status.value, manifest.get(status.value), found)
        yield from differs("tied", manifest.get("tied"), sum(_is_tied(claim) for claim in claims))
        yield from contradicts_completeness(manifest, (claim.reason for claim in claims))
        yield from _wrong_ties(claims, head.twins)
        yield from _wrong_twins(claims, head.twins)


def _is_tied(claim: Verdict) -> bool:
    return claim.status is Status.UNARGMAXABLE and claim.is_tied


def _wrong_twins(claims: Sequence[Verdict], twins: IdenticalRows) -> Iterator[str]:
    """The first class that is said to lose to one with the same weights where there is none."""
    for claim in claims:
        if claim.method is not Method.TWIN or claim.class_id >= len(twins.tied_to):
            continue
        if twins.beaten_by[claim.class_id] < 0 and twins.tied_to[claim.class_id] < 0:
            yield f"class {claim.class_id} claims an identical class that keeps it from winning: "
            "there is none"
            return


def _wrong_ties(claims: Sequence[Verdict], twins: IdenticalRows) -> Iterator[str]:
    """The first class whose group is not the set of classes identical with it."""
    right: set[tuple[int, int]] = set()  # groups may be large, and all their members name them
    for claim in claims:
        if claim.class_id >= len(twins.tied_to):
            continue
        first, said = int(twins.tied_to[claim.class_id]), claim.tie_group
        group = twins.ties.get(first, ())
        if (first, id(said)) in right:
            continue
        if tuple(sorted(said)) != group:
            yield f"class {claim.class_id} is one of {len(group)} identical classes, not of {len(said)}"
            return
        right.add((first, id(said)))


def _witness(line: Line, evidence: EvidenceReader) -> Witness | None:
    only_one_of(line, "own", "point32", "point64", "point")
    if "point" in line:
        exponent = whole_number(line["exponent"], *_EXPONENTS)
        return FinePoint(tuple(whole_hex(number) for number in line["point"]), exponent)
    point = evidence.point(line)
    if point is not None:
        return Point(point)
    return OwnDirection(whole_number(line["own"], *_EXPONENTS)) if "own" in line else None


def _certificate(line: Line, evidence: EvidenceReader) -> Certificate | None:
    only_one_of(line, "rival", "certificate")
    only_one_of(line, "rival", "weights")
    if "rival" in line:
        return Certificate(np.array([whole_number(line["rival"], 0, LARGEST)]), np.ones(1))
    if "certificate" not in line:
        return None
    return in_rational_form(line, evidence.certificate(line["certificate"]))


def in_rational_form(line: Line, certificate: Certificate) -> Certificate:
    """The certificate with the whole weights of its line, if that has some; raises ValueError."""
    if "weights" not in line:
        return certificate
    weights = [whole_hex(weight) for weight in line["weights"]]
    if not any(weights) or len(weights) != len(certificate.classes):
        raise ValueError("the whole weights do not fit the certificate")
    return replace(certificate, whole=tuple(weights))


VERDICTS = VerdictClaims()
