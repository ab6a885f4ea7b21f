"""Sets of labels as claims: a point bounds the margin from below, weights from above (docs/proofs.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.check.sets import failed_sets
from argmaxable.core.errors import BundleError, InputError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.label_sets import LabelSets, SetClaim, SetMethod, SetTest, set_name
from argmaxable.proofs.claims_file import Folder, are_in, read_claims, write_claims
from argmaxable.proofs.in_words import contradicts_completeness, differs
from argmaxable.proofs.kind import Bundle, ClaimFiles, ClaimKind
from argmaxable.proofs.values import (
    LARGEST,
    finite_number,
    only_one_of,
    rounded_down,
    rounded_up,
    text,
    whole_number,
)
from argmaxable.proofs.verdicts import VERDICTS, in_rational_form

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.prepared import PreparedHead
    from argmaxable.core.claim import Failure, Key
    from argmaxable.core.head import Head
    from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter, Line

# As for verdicts: short, and weak enough to be proven again in any order of summation.
_DIGITS = 4


class SetClaims(ClaimKind[SetClaim, SetTest]):
    """Sets of labels that come out, and sets that never do."""

    noun, plural, format = "set", "sets", "argmaxable-sets-1"
    earlier_format = format
    files = ClaimFiles.named("sets")
    stands_alone = True

    def key(self, claim: SetClaim) -> Key:
        return claim.members

    def names(self, claim: SetClaim) -> Iterable[tuple[int, str]]:
        return zip(claim.members, claim.labels, strict=True)

    def subject(self, key: Key) -> str:
        return f"set {set_name([str(member) for member in key])}" if isinstance(key, tuple) else str(key)

    def encode(self, claim: SetClaim, evidence: EvidenceWriter) -> Line:
        line: Line = {
            "set": list(claim.members),
            "labels": list(claim.labels),
            "count": claim.count,
            "status": claim.status.value,
            "lower": rounded_down(claim.lower, _DIGITS),
            "upper": rounded_up(claim.upper, _DIGITS),
            "method": claim.method.value,
        }
        if claim.point is not None:
            line |= evidence.point(claim.point)
        if claim.certificate is not None:
            line["certificate"] = evidence.certificate(claim.certificate)
            if claim.certificate.whole:
                line["weights"] = [hex(weight) for weight in claim.certificate.whole]
        return line | ({"reason": claim.reason} if claim.reason else {})

    def decode(self, line: Line, evidence: EvidenceReader) -> SetClaim:
        only_one_of(line, "point32", "point64")
        members = tuple(whole_number(member, 0, LARGEST) for member in line["set"])
        labels = tuple(text(label) for label in line["labels"])
        if list(members) != sorted(set(members)) or len(labels) != len(members):
            raise ValueError("the labels of a set are not in ascending order, each once, each with its name")
        return SetClaim(
            members=members,
            labels=labels,
            status=Feasibility(line["status"]),
            lower=finite_number(line["lower"], -math.inf),
            upper=finite_number(line["upper"], math.inf),
            method=SetMethod(line.get("method", SetMethod.NONE)),
            point=evidence.point(line),
            certificate=in_rational_form(line, evidence.certificate(line["certificate"]))
            if "certificate" in line
            else None,
            count=whole_number(line.get("count", 1), 0, LARGEST),
            reason=text(line.get("reason", "")),
        )

    def read_settings(self, header: Line) -> SetTest:
        return SetTest.from_record(header["question"])

    def check(self, checker: Checker, claims: Sequence[SetClaim], settings: SetTest) -> Iterable[Failure]:
        try:
            settings.require_labels(checker.head.classes)
        except InputError as error:
            raise BundleError(f"{self.files.header}: {error}") from error
        return failed_sets(checker.prepared, checker.domain, claims, settings)

    def states_nothing(self, claim: SetClaim, head: Head) -> bool:
        return claim.status is Feasibility.UNDECIDED

    def scope(self, bundle: Bundle[SetClaim, SetTest]) -> str:
        return f" over the domain {bundle.domain}"

    def summary(self, proven: Sequence[SetClaim], bundle: Bundle[SetClaim, SetTest]) -> str:
        never = sum(claim.status is Feasibility.INFEASIBLE for claim in proven)
        what = f"{never:,} of these sets can never be predicted" if never else ""
        return f"{' '.join([what, bundle.domain.scope()]).strip()}." if what else ""

    def contradictions(self, bundle: Bundle[SetClaim, SetTest], head: PreparedHead) -> Iterator[str]:
        for status in Feasibility:
            found = sum(claim.status is status for claim in bundle.claims)
            yield from differs(status.value, bundle.manifest.get(status.value), found)
        yield from contradicts_completeness(bundle.manifest, (claim.reason for claim in bundle.claims))


SETS = SetClaims()


def write_sets(found: LabelSets, folder: Folder) -> None:
    """Write sets of labels into a folder, which is then a bundle; sets of an earlier one are replaced.

    The folder may hold verdicts over the same domain. Raises BundleError, also where they are about another
    head or domain.
    """
    _require_same_subject(found, folder)
    header = {
        "question": found.test.as_record(),
        "complete": found.is_complete,
        **{status.value: len(found.having(status)) for status in Feasibility},
    }
    write_claims(SETS, folder, found.claims, facts=found.facts, domain=found.domain, header=header)


def _require_same_subject(found: LabelSets, folder: Folder) -> None:
    if not are_in(VERDICTS, folder):
        return
    there = read_claims(VERDICTS, folder)
    if there.sha256 != found.facts.sha256 or there.domain != found.domain:
        raise BundleError(
            f"{Path(folder)} has verdicts about another head or domain. Write the sets into another folder."
        )
