"""Best ranks in a bundle's folder (docs/proofs.md): ranks.json says what they are about, ranks.jsonl has a
line for each class, ranks.npz the arrays they refer to. Like the bundle, untrusted when read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.best_rank.rank import BestRank, RankProof
from argmaxable.bundle import (
    EVIDENCE_ARRAYS,
    MALFORMED,
    Evidence,
    certificates_of,
    evidence_arrays,
    read_arrays,
    stored_point,
    whole_number,
)
from argmaxable.domain import Domain, domain_from_record
from argmaxable.errors import BundleError, DomainError
from argmaxable.result import Result
from argmaxable.verdict import Certificate

FORMAT = "argmaxable-ranks-1"
_ABOUT, _LINES, _ARRAYS = "ranks.json", "ranks.jsonl", "ranks.npz"
_PROOF, _PROOF_WITH_TIES = "proof", "proof_with_ties"
# JSON has whole numbers of any size; shares are far below this.
_LARGEST = 2**62

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RankBundle:
    """Best ranks as read: nothing in them has been checked but their form. `top_k` is the k asked about."""

    sha256: str
    domain: Domain
    top_k: int | None
    claims: tuple[BestRank, ...]


def has_ranks(folder: str | os.PathLike[str]) -> bool:
    """Whether a bundle's folder has best ranks too."""
    return (Path(folder) / _ABOUT).exists()


# ---------------------------------------------------------------------- writing


def write_ranks(
    result: Result, ranks: Sequence[BestRank], folder: str | os.PathLike[str], *, top_k: int | None
) -> None:
    """Write the best ranks of a result's classes into a bundle's folder."""
    folder, evidence = Path(folder), Evidence()
    lines = [_line(rank, result.head.label(rank.class_id), evidence) for rank in ranks]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    about = {
        "format": FORMAT,
        "head": {"sha256": result.facts.sha256},
        "domain": result.domain.as_record(),
        "top_k": top_k,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _LINES).write_text(text, encoding="utf-8", errors="backslashreplace")
        np.savez_compressed(folder / _ARRAYS, allow_pickle=False, **evidence_arrays(evidence, result.facts))
        (folder / _ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BundleError(f"can't write the best ranks to {folder}: {error.strerror or error}.") from error


def remove_ranks(folder: str | os.PathLike[str]) -> None:
    """Remove best ranks that an earlier run left in a folder: they need not be about the same head."""
    for name in (_ABOUT, _LINES, _ARRAYS):
        (Path(folder) / name).unlink(missing_ok=True)


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


# ---------------------------------------------------------------------- reading


def read_ranks(folder: str | os.PathLike[str]) -> RankBundle:
    """Read the best ranks of a bundle; raises BundleError for anything that is none."""
    path = Path(folder) / _ABOUT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise BundleError(f"{path} is not of the format {FORMAT}.")
        top_k = about["top_k"]
        arrays = read_arrays(Path(folder) / _ARRAYS, EVIDENCE_ARRAYS)
        return RankBundle(
            sha256=about["head"]["sha256"],
            domain=domain_from_record(about["domain"]),
            top_k=None if top_k is None else whole_number(top_k, 1, _LARGEST),
            claims=tuple(_claims(Path(folder) / _LINES, arrays)),
        )
    except (OSError, DomainError, *MALFORMED) as error:
        raise BundleError(f"{path} can't be read: {error!r}.") from error


def _claims(path: Path, arrays: Arrays) -> Iterator[BestRank]:
    certificates = list(certificates_of(arrays, arrays["points32"].shape[1]))
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _claim(json.loads(line), arrays, certificates)
            except MALFORMED as error:
                raise BundleError(f"{path}, line {number}: {error!r}.") from error


def _claim(line: dict[str, Any], arrays: Arrays, certificates: list[Certificate]) -> BestRank:
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
