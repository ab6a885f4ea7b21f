"""What a proof says about one class, in numbers alone: at no point of a box does the class beat these rivals.

Both formats write down the same statement, so it is built once, from a certificate that has passed the check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.best_rank import support_of
from argmaxable.core.boxes import Box, Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.errors import BundleError, DomainError
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Certificate, Status, Verdict

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Matrix, Vector


@dataclass(frozen=True, eq=False)
class Statement:
    """Class `classes[0]` is not strictly above all other `classes` at any x with lo ≤ x ≤ hi.

    `rows` (a row for each of the classes) and `biases` are the stored numbers; float64 holds them exactly.
    """

    title: tuple[str, ...]
    classes: tuple[int, ...]
    rows: Matrix
    biases: Vector
    lo: Vector
    hi: Vector
    certificate: Certificate

    @property
    def class_id(self) -> int:
        return self.classes[0]

    @property
    def rivals(self) -> tuple[int, ...]:
        return self.classes[1:]


def require_box(domain: Domain) -> None:
    """Raise DomainError unless the domain is a box, perhaps without end: then all of it is linear."""
    if not isinstance(domain, Box | Everywhere):
        raise DomainError(
            f"statements for other solvers are about boxes, and these verdicts are over a {domain}. Verify "
            "the model over a box, e.g. with --domain box:100."
        )


def statements_of(checker: Checker, verdicts: Iterable[Verdict]) -> Iterator[Statement]:
    """A statement for each unargmaxable class among the verdicts, in their order.

    Raises BundleError for a certificate that does not prove its verdict.
    """
    head = checker.head
    fingerprint = head.sha256()
    lo, hi = checker.domain.bounds(head.features)
    for verdict in verdicts:
        if verdict.status is Status.UNARGMAXABLE:
            certificate = _proven(checker, verdict)
            ids = np.concatenate([[verdict.class_id], support_of(certificate)]).astype(np.intp)
            title = _title(checker, verdict.class_id, fingerprint)
            yield Statement(title, tuple(ids.tolist()), head.rows(ids), head.biases(ids), lo, hi, certificate)


def _proven(checker: Checker, verdict: Verdict) -> Certificate:
    """The verdict's certificate. Where it names the class as its own rival, say, a statement would be true of
    any class: nothing is stated that has not passed the check."""
    certificate = verdict.certificate
    if certificate is None or not checker.proves(verdict.class_id, certificate, 0.0):
        raise BundleError(
            f"class {verdict.class_id} is said to be unargmaxable, but its certificate does not prove it. "
            "`argmaxable check` re-checks every class of a bundle."
        )
    return certificate


def _title(checker: Checker, class_id: int, fingerprint: str) -> tuple[str, ...]:
    """Comments for people: what is stated, about which weights."""
    head = checker.head
    return (
        f"Class {class_id} ({visible(head.label(class_id))}) of {visible(head.name)} is never the only "
        f"argmax over the domain {checker.domain}.",
        f"SHA-256 of the head: {fingerprint}",
        "The logit of class i at x is s_i = w_i·x + b_i. Weights and biases are the stored ones, exactly.",
        "Only the rivals that the proof needs are here: a class that can't beat these can't beat all.",
    )
