"""Best ranks as claims: a point proves the upper bound, certificates the lower (docs/proofs.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from argmaxable.check.ranks import failed_ranks
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.proofs.claims_file import Folder, write_claims
from argmaxable.proofs.kind import Bundle, ClaimFiles, ClassClaimKind
from argmaxable.proofs.values import LARGEST, text, whole_number

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.claim import Failure
    from argmaxable.core.head import Head
    from argmaxable.core.result import Result
    from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter, Line

_PROOF, _PROOF_WITH_TIES = "proof", "proof_with_ties"


class RankKind(ClassClaimKind[BestRank, int | None]):
    """Bounds on best ranks; the setting is the k of a top-k that was asked about."""

    noun, plural, format = "best rank", "bounds on best ranks", "argmaxable-ranks-2"
    earlier_format = "argmaxable-ranks-1"
    files = ClaimFiles.named("ranks")
    covers_every_class = False  # argmaxable classes have rank 1

    def encode(self, claim: BestRank, evidence: EvidenceWriter) -> Line:
        line = claim.as_record()
        if claim.point is not None:
            line |= evidence.point(claim.point)
        if claim.proof is not None:
            line[_PROOF] = _proof_record(claim.proof, evidence)
        if claim.proof_with_ties is not None and claim.proof_with_ties is not claim.proof:
            line[_PROOF_WITH_TIES] = _proof_record(claim.proof_with_ties, evidence)
        return line

    def decode(self, line: Line, evidence: EvidenceReader) -> BestRank:
        proof = _proof(line.get(_PROOF), evidence)
        return BestRank(
            class_id=whole_number(line["class"], 0, LARGEST),
            label=text(line.get("label", "")),
            lower=whole_number(line["lower"], 1, LARGEST),
            upper=whole_number(line["upper"], 1, LARGEST),
            lower_with_ties=whole_number(line["lower_with_ties"], 1, LARGEST),
            proof=proof,
            proof_with_ties=_proof(line[_PROOF_WITH_TIES], evidence) if _PROOF_WITH_TIES in line else proof,
            point=evidence.point(line),
            reason=text(line.get("reason", "")),
        )

    def read_settings(self, header: Line) -> int | None:
        return None if header["top_k"] is None else whole_number(header["top_k"], 1, LARGEST)

    def check(self, checker: Checker, claims: Sequence[BestRank], settings: int | None) -> Iterable[Failure]:
        return failed_ranks(checker, claims)

    def states_nothing(self, claim: BestRank, head: Head) -> bool:
        return claim.lower == 1 and claim.upper >= head.classes

    def scope(self, bundle: Bundle[BestRank, int | None]) -> str:
        return ""


RANKS = RankKind()


def write_ranks(result: Result, ranks: Sequence[BestRank], folder: Folder, *, top_k: int | None) -> None:
    """Write the best ranks of a result's classes into a bundle's folder."""
    write_claims(RANKS, folder, ranks, facts=result.facts, domain=result.domain, header={"top_k": top_k})


def _proof_record(proof: RankProof, evidence: EvidenceWriter) -> Line:
    record: Line = {"certificates": [evidence.certificate(one) for one in proof.certificates]}
    return record | {"shares": list(proof.shares), "whole": proof.whole} if proof.shares else record


def _proof(record: Any, evidence: EvidenceReader) -> RankProof | None:
    if record is None:
        return None
    certificates = tuple(evidence.certificate(number) for number in record["certificates"])
    shares = tuple(whole_number(share, 0, LARGEST) for share in record.get("shares", ()))
    return RankProof(certificates, shares, whole_number(record.get("whole", 1), 1, LARGEST))
