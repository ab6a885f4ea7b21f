"""Ceilings as claims: a point proves the lower end, its tangent or a mixture the upper (docs/proofs.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from argmaxable.check.ceilings import failed_ceilings
from argmaxable.check.probabilities import never_enters
from argmaxable.core.ceiling import Ceiling, CeilingClaim, Ceilings, Entry, Membership, Mixture, Nucleus
from argmaxable.core.domain import float_of_hex
from argmaxable.proofs.claims_file import Folder, write_claims
from argmaxable.proofs.kind import Bundle, ClaimFiles, ClassClaimKind
from argmaxable.proofs.values import (
    LARGEST,
    finite_number,
    positive_hex,
    rounded_down,
    rounded_up,
    text,
    whole_number,
)

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Vector
    from argmaxable.core.claim import Failure
    from argmaxable.core.head import Head
    from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter, Line

# Claims have nine digits, rounded to the weaker side: far finer than the tolerance, and weak enough to be
# proven again on a machine that sums in another order.
_DIGITS = 9


@dataclass(frozen=True)
class CeilingSettings:
    """The temperature of the softmax, and the mass p of the nucleus if one was asked about."""

    temperature: float
    top_p: float | None


class CeilingKind(ClassClaimKind[CeilingClaim, CeilingSettings]):
    """Intervals around largest probabilities, with answers about the nucleus."""

    noun, plural, format = "ceiling", "ceilings", "argmaxable-ceilings-2"
    earlier_format = "argmaxable-ceilings-1"
    files = ClaimFiles.named("ceilings")

    def encode(self, claim: CeilingClaim, evidence: EvidenceWriter) -> Line:
        ceiling, member = claim.ceiling, claim.membership
        line = ceiling.as_record()
        if ceiling.point is not None:
            line |= evidence.point(ceiling.point)
        if ceiling.mixture is not None:
            line["certificate"] = evidence.certificate(ceiling.mixture.certificate)
            line["margin"] = ceiling.mixture.margin.hex()
        if member is not None:
            line["nucleus"] = member.entry.value
            if member.point is not None and not _are_equal(member.point, ceiling.point):
                line |= evidence.point(member.point, "nucleus_")
        return line

    def decode(self, line: Line, evidence: EvidenceReader) -> CeilingClaim:
        mixture = None
        if "certificate" in line:
            margin = finite_number(float_of_hex(line["margin"]), 0.0)
            mixture = Mixture(evidence.certificate(line["certificate"]), margin)
        ceiling = Ceiling(
            class_id=whole_number(line["class"], 0, LARGEST),
            label=text(line["label"]),
            lower=finite_number(line["lower"], 0.0),
            upper=finite_number(line["upper"], 1.0),
            point=evidence.point(line),
            mixture=mixture,
        )
        return CeilingClaim(ceiling, _membership(line, ceiling, evidence) if "nucleus" in line else None)

    def read_settings(self, header: Line) -> CeilingSettings:
        top_p = header["top_p"]
        return CeilingSettings(
            positive_hex(header["temperature"]), None if top_p is None else positive_hex(top_p)
        )

    def check(
        self, checker: Checker, claims: Sequence[CeilingClaim], settings: CeilingSettings
    ) -> Iterable[Failure]:
        return failed_ceilings(checker, claims, temperature=settings.temperature, top_p=settings.top_p)

    def states_nothing(self, claim: CeilingClaim, head: Head) -> bool:
        return claim.entry in (None, Entry.UNKNOWN) and claim.ceiling.lower <= 0 and claim.ceiling.upper >= 1

    def scope(self, bundle: Bundle[CeilingClaim, CeilingSettings]) -> str:
        return f" at temperature {bundle.settings.temperature:g}"


CEILINGS = CeilingKind()


def write_ceilings(found: Ceilings, folder: Folder, members: Nucleus | None = None) -> None:
    """Write the ceilings, and what they say about a nucleus, into a bundle's folder."""
    header = {
        "temperature": found.temperature.hex(),
        "top_p": None if members is None else members.top_p.hex(),
        "complete": found.is_complete,
    }
    claims = _as_claimed(found, members)
    write_claims(CEILINGS, folder, claims, facts=found.facts, domain=found.domain, header=header)


def _as_claimed(found: Ceilings, members: Nucleus | None) -> list[CeilingClaim]:
    """The claims in few digits. A ceiling may keep its class out of the nucleus where its digits do not."""
    rounded = [_rounded(ceiling) for ceiling in found.classes]
    if members is None:
        return [CeilingClaim(ceiling) for ceiling in rounded]
    answers = {member.class_id: member for member in members.members}
    claims = []
    for ceiling in rounded:
        member = answers[ceiling.class_id]
        if member.entry is Entry.NO and not never_enters(ceiling.upper, found.facts.classes, members.top_p):
            member = replace(member, entry=Entry.UNKNOWN)
        claims.append(CeilingClaim(ceiling, member))
    return claims


def _rounded(ceiling: Ceiling) -> Ceiling:
    lower, upper = rounded_down(ceiling.lower, _DIGITS), rounded_up(ceiling.upper, _DIGITS)
    assert lower is not None
    assert upper is not None  # probabilities are finite
    return replace(ceiling, lower=lower, upper=min(1.0, upper))


def _are_equal(point: Vector, other: Vector | None) -> bool:
    return other is not None and bool((point == other).all())


def _membership(line: Line, ceiling: Ceiling, evidence: EvidenceReader) -> Membership:
    """The answer of a line, at the ceiling's point if it has none of its own. It claims no mass but p."""
    own = evidence.point(line, "nucleus_")
    point = ceiling.point if own is None else own
    return Membership(ceiling.class_id, ceiling.label, Entry(line["nucleus"]), 1.0, point)
