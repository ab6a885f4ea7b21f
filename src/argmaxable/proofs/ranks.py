"""Best ranks in a bundle's folder (docs/proofs.md): a line for each class. Untrusted when read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.core.domain import Domain
from argmaxable.core.errors import BundleError
from argmaxable.core.result import Result
from argmaxable.core.verdict import Certificate
from argmaxable.proofs.bundle import Evidence, stored_point, whole_number
from argmaxable.proofs.claims_file import Contents, Folder, Supplement

RANKS = Supplement("ranks", "best ranks", "argmaxable-ranks-1")
_PROOF, _PROOF_WITH_TIES = "proof", "proof_with_ties"
# JSON has whole numbers of any size; shares are far below this.
_LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class RankBundle:
    """Best ranks as read: nothing in them has been checked but their form. `top_k` is the k asked about."""

    sha256: str
    domain: Domain
    top_k: int | None
    claims: tuple[BestRank, ...]


def write_ranks(result: Result, ranks: Sequence[BestRank], folder: Folder, *, top_k: int | None) -> None:
    """Write the best ranks of a result's classes into a bundle's folder."""
    evidence = Evidence()
    lines = [_line(rank, result.head.label(rank.class_id), evidence) for rank in ranks]
    RANKS.write(folder, result.facts, result.domain, {"top_k": top_k}, lines, evidence)


def _line(rank: BestRank, label: str, evidence: Evidence) -> dict[str, Any]:
    line: dict[str, Any] = {
        "class": rank.class_id,
        "label": label,
        "lower": rank.lower,
        "upper": rank.upper,
        "lower_with_ties": rank.lower_with_ties,
    }
    if rank.point is not None:
        name, number = evidence.point(rank.point)
        line[name] = number
    if rank.proof is not None:
        line[_PROOF] = _proof_record(rank.proof, evidence)
    if rank.proof_with_ties is not None and rank.proof_with_ties is not rank.proof:
        line[_PROOF_WITH_TIES] = _proof_record(rank.proof_with_ties, evidence)
    if rank.reason:
        line["reason"] = rank.reason
    return line


def _proof_record(proof: RankProof, evidence: Evidence) -> dict[str, Any]:
    record: dict[str, Any] = {
        "certificates": [evidence.once(one, evidence.certificates) for one in proof.certificates]
    }
    return record | {"shares": list(proof.shares), "whole": proof.whole} if proof.shares else record


def read_ranks(folder: Folder) -> RankBundle:
    """Read the best ranks of a bundle; raises BundleError for anything that is none."""
    contents, claims = RANKS.read(folder, _claim)
    try:
        asked = contents.about["top_k"]
        top_k = None if asked is None else whole_number(asked, 1, _LARGEST)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"the best ranks in {folder} do not say which k they are about: {error!r}."
        ) from error
    return RankBundle(contents.sha256, contents.domain, top_k, claims)


def _claim(line: dict[str, Any], contents: Contents) -> BestRank:
    arrays, certificates = contents.arrays, contents.certificates
    point = None
    for name in ("point32", "point64"):
        if name in line:
            point = stored_point(arrays, name, line[name])
    proof = _proof(line.get(_PROOF), certificates)
    return BestRank(
        class_id=whole_number(line["class"], 0, _LARGEST),
        lower=whole_number(line["lower"], 1, _LARGEST),
        upper=whole_number(line["upper"], 1, _LARGEST),
        lower_with_ties=whole_number(line["lower_with_ties"], 1, _LARGEST),
        proof=proof,
        proof_with_ties=_proof(line[_PROOF_WITH_TIES], certificates) if _PROOF_WITH_TIES in line else proof,
        point=point,
    )


def _proof(record: Any, certificates: list[Certificate]) -> RankProof | None:
    if record is None:
        return None
    chosen = tuple(certificates[whole_number(k, 0, len(certificates))] for k in record["certificates"])
    shares = tuple(whole_number(share, 0, _LARGEST) for share in record.get("shares", ()))
    return RankProof(chosen, shares, whole_number(record.get("whole", 1), 1, _LARGEST))
