"""Re-checks a proof bundle against its head: every claim of every line, with no solver and no trust
in whoever wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.compute.blocks import blocks
from argmaxable.core.domain import Domain
from argmaxable.core.errors import BundleError, DomainError
from argmaxable.core.head import Head
from argmaxable.core.progress import Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.core.verdict import Certificate, OwnDirection, Point, Status, status_of
from argmaxable.proofs.bundle import Bundle, Claim

# Points held at a time while their gaps are formed.
_BATCH = 2048


@dataclass(frozen=True)
class Failure:
    """A claim that its evidence does not prove."""

    class_id: int
    why: str


@dataclass(frozen=True)
class Recheck:
    """What held and what did not."""

    proven: int
    undecided: int
    missing: int
    failures: tuple[Failure, ...]


def recheck(
    bundle: Bundle,
    head: Head,
    *,
    rational: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> Recheck:
    """Check every claim; raises BundleError when the bundle is about another head.

    Where floats decide, their rounding is bounded. With `rational`, each proof that a class is unargmaxable
    must also hold without them: its weights are computed as rational numbers, which takes its time, and
    `progress` hears how many of how many are done.
    """
    if len(bundle.centre) != head.features or not np.isfinite(bundle.centre).all():
        raise BundleError("the bundle's centre does not fit the head.")
    claimed = bundle.manifest["head"].get("sha256")
    checker = checker_about(head, claimed, bundle.domain, "the bundle is", centre=bundle.centre)
    failures = {failure.class_id: failure for failure in _failures(checker, bundle.claims)}
    if rational:
        held = [claim for claim in bundle.claims if claim.class_id not in failures]
        unproven = _failed_in_rationals(checker, held, progress)
        failures |= {failure.class_id: failure for failure in unproven}
    undecided = sum(1 for claim in bundle.claims if claim.status is Status.UNDECIDED)
    decided = {claim.class_id for claim in bundle.claims if claim.status is not Status.UNDECIDED}
    return Recheck(
        proven=len(decided - failures.keys()),
        undecided=undecided,
        missing=head.classes - len({c.class_id for c in bundle.claims if c.class_id < head.classes}),
        failures=tuple(failures.values()),
    )


def checker_about(
    head: Head, claimed: object, domain: Domain, subject: str, *, centre: NDArray[np.float64] | None = None
) -> Checker:
    """A checker for claims that are said to be about this head; raises BundleError when they are not."""
    if claimed != head.sha256():
        raise BundleError(
            f"{subject} about another head: its SHA-256 is {claimed}, that of {head.name} is {head.sha256()}."
        )
    try:
        return Checker(head, domain, centre=centre)
    except DomainError as error:
        raise BundleError(f"{subject} about a domain that does not fit the head: {error}") from error


def _failures(checker: Checker, claims: tuple[Claim, ...]) -> Iterable[Failure]:
    sound = []
    seen: set[int] = set()
    for claim in claims:
        why = _malformed(claim, checker.head, seen)
        seen.add(claim.class_id)
        if why:
            yield Failure(claim.class_id, why)
        else:
            sound.append(claim)
    # First, because members of a tie group share what is proven for one of them.
    untied = list(_failed_ties(checker.head, [claim for claim in sound if claim.tie_group]))
    yield from untied
    strangers = {failure.class_id for failure in untied}
    sound = [claim for claim in sound if claim.class_id not in strangers]
    yield from _failed_lower_bounds(checker, [claim for claim in sound if claim.lower > -math.inf])
    yield from _failed_upper_bounds(checker, [claim for claim in sound if claim.upper < math.inf])


def _malformed(claim: Claim, head: Head, seen: set[int]) -> str:
    if claim.class_id >= head.classes:
        return f"the head has no class {claim.class_id}"
    if claim.class_id in seen:
        return "the class is claimed twice"
    only_class = head.classes == 1 and claim.witness is not None and claim.status is Status.ARGMAXABLE
    if claim.status is not status_of(claim.lower, claim.upper) and not only_class:
        return f"its bounds do not make it {claim.status.value}"
    if claim.lower > -math.inf and claim.witness is None:
        return "a lower bound without a witness"
    if claim.upper < math.inf and claim.certificate is None:
        return "an upper bound without a certificate"
    if isinstance(claim.witness, Point) and len(claim.witness.values) != head.features:
        return "a witness of the wrong length"
    return ""


def _failed_lower_bounds(checker: Checker, claims: list[Claim]) -> Iterable[Failure]:
    """Members of a tie group share one check: their rows and biases are equal (checked apart)."""
    distinct: dict[object, list[Claim]] = {}
    for claim in claims:
        distinct.setdefault(_key(claim), []).append(claim)
    groups = sorted(distinct.values(), key=lambda group: group[0].class_id)
    for batch, proven in _proven_lower_bounds(checker, groups):
        for group, lower in zip(batch, proven, strict=True):
            if not lower >= group[0].lower:
                for claim in group:
                    yield Failure(
                        claim.class_id, f"its witness proves a margin of {lower:g}, not {claim.lower:g}"
                    )


def _proven_lower_bounds(
    checker: Checker, groups: list[list[Claim]]
) -> Iterator[tuple[list[list[Claim]], NDArray[np.float64]]]:
    """What the witnesses prove, for some of the groups at a time. Own directions are compared with each
    other, which takes half of the products."""
    own = [group for group in groups if isinstance(group[0].witness, OwnDirection)]
    if own:
        classes, claimed = _ids_and_claims(own)
        exponents = np.array(
            [group[0].witness.exponent for group in own if isinstance(group[0].witness, OwnDirection)]
        )
        for some, gaps in checker.own_gaps(classes, exponents, claims=claimed):
            yield [own[k] for k in some.tolist()], gaps.lower
    placed = [group for group in groups if isinstance(group[0].witness, Point)]
    for first in range(0, len(placed), _BATCH):
        batch = placed[first : first + _BATCH]
        points = np.stack([group[0].witness.values for group in batch if isinstance(group[0].witness, Point)])
        classes, claimed = _ids_and_claims(batch)
        yield batch, checker.gaps(classes, points, claims=claimed).lower


def _ids_and_claims(groups: list[list[Claim]]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    leaders = [group[0] for group in groups]
    return np.array([claim.class_id for claim in leaders]), np.array([claim.lower for claim in leaders])


def _key(claim: Claim) -> object:
    """Equal for claims that one check settles: same tie group, same bound, same witness."""
    if not claim.tie_group:
        return claim.class_id
    witness = claim.witness
    point = witness.values.tobytes() if isinstance(witness, Point) else getattr(witness, "exponent", None)
    return (id(claim.tie_group), claim.lower, point)


def _failed_upper_bounds(checker: Checker, claims: list[Claim]) -> Iterable[Failure]:
    by_certificate: dict[int, list[Claim]] = {}
    for claim in claims:
        by_certificate.setdefault(claim.certificate_id, []).append(claim)
    together = _bounds_over_shared_rows(checker, claims)
    for number, group in by_certificate.items():
        classes = np.array([claim.class_id for claim in group])
        if number < 0:
            rivals = np.array([claim.certificate.classes[0] for claim in group if claim.certificate])
            inside = rivals < checker.head.classes
            uppers = np.full(len(group), math.inf)
            distinct = inside & (rivals != classes)
            uppers[distinct] = checker.rival_bounds(classes[distinct], rivals[distinct])
        else:
            certificate = group[0].certificate
            assert certificate is not None
            uppers = checker.bounds(classes, certificate)
        for claim, upper in zip(group, uppers, strict=True):
            assert claim.certificate is not None
            known = min(upper, together.get(claim.class_id, math.inf))
            if not (known <= claim.upper or checker.proves(claim.class_id, claim.certificate, claim.upper)):
                yield Failure(
                    claim.class_id, f"its certificate does not prove a margin of at most {claim.upper:g}"
                )


def _failed_in_rationals(
    checker: Checker, claims: list[Claim], progress: ProgressCallback
) -> Iterable[Failure]:
    unargmaxable = [claim for claim in claims if claim.status is Status.UNARGMAXABLE]
    total, pace = len(unargmaxable), Pace()
    for done, claim in enumerate(unargmaxable):
        progress(Progress("rational proofs", done, total, pace.seconds_left(done, total)))
        assert claim.certificate is not None  # or it would not have held so far
        if not checker.proves_in_rationals(claim.class_id, claim.certificate):
            yield Failure(claim.class_id, "its certificate has no rational weights that prove it")
    progress(Progress("rational proofs", total, total, 0.0))


def _bounds_over_shared_rows(checker: Checker, claims: list[Claim]) -> dict[int, float]:
    """What certificates with a basis prove where several are over the same rows, which are then read once."""
    shared: dict[tuple[int, bytes], list[tuple[int, Certificate]]] = {}
    for claim in claims:
        certificate = claim.certificate
        if certificate is not None and certificate.basis and certificate.coordinates is None:
            key = (certificate.basis, sha256(certificate.classes.tobytes()).digest())
            shared.setdefault(key, []).append((claim.class_id, certificate))
    uppers: dict[int, float] = {}
    for group in shared.values():
        if len(group) == 1:
            continue
        for block in blocks(len(group), len(group[0][1].classes)):
            ids = [class_id for class_id, _ in group[block]]
            found = checker.bounds_together(np.array(ids), [certificate for _, certificate in group[block]])
            uppers.update(zip(ids, found.tolist(), strict=True))
    return uppers


def _failed_ties(head: Head, claims: list[Claim]) -> Iterable[Failure]:
    members: dict[int, frozenset[int]] = {}
    for claim in claims:
        group = claim.tie_group
        if id(group) not in members:
            members[id(group)] = frozenset(group if _are_identical(head, group) else ())
        if claim.class_id not in members[id(group)]:
            yield Failure(claim.class_id, "it is not identical with the classes it is said to tie with")


def _are_identical(head: Head, group: tuple[int, ...]) -> bool:
    if not all(0 <= member < head.classes for member in group):
        return False
    ids = np.array(group)
    return bool(
        (head.weight[ids] == head.weight[ids[0]]).all() and (head.biases(ids) == head.biases(ids)[0]).all()
    )
