"""Checks verdicts: ties, witnesses and certificates of many classes at once. No solver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.core.claim import Failure
from argmaxable.core.progress import Pace, Progress, ProgressCallback
from argmaxable.core.verdict import Certificate, FinePoint, OwnDirection, Point, Status, Verdict, status_of

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.core.head import Head

# Points held at a time while their gaps are formed.
_BATCH = 2048


def failed_verdicts(checker: Checker, claims: Sequence[Verdict]) -> Iterator[Failure]:
    """The claims, of classes that the head has, that their evidence does not prove."""
    sound = []
    for claim in claims:
        why = _malformed(claim, checker)
        if why:
            yield Failure(claim.class_id, why)
        else:
            sound.append(claim)
    # First, because members of a tie group share what is proven for one of them.
    untied = list(_failed_ties(checker.head, [claim for claim in sound if claim.tie_group]))
    yield from untied
    strangers = {failure.key for failure in untied}
    sound = [claim for claim in sound if claim.class_id not in strangers]
    yield from _failed_lower_bounds(checker, [claim for claim in sound if claim.lower > -math.inf])
    yield from _failed_upper_bounds(checker, [claim for claim in sound if claim.upper < math.inf])


def failed_in_rationals(
    checker: Checker, claims: Sequence[Verdict], progress: ProgressCallback
) -> Iterator[Failure]:
    """The unargmaxable classes that rational weights alone do not prove; `progress` hears how many are done,
    of how many."""
    claims = [claim for claim in claims if claim.status is Status.UNARGMAXABLE]
    pace = Pace()
    for done, claim in enumerate(claims):
        progress(Progress("proofs in rationals", done, len(claims), pace.seconds_left(done, len(claims))))
        if claim.certificate is None or not checker.proves_in_rationals(claim.class_id, claim.certificate):
            yield Failure(claim.class_id, "its certificate has no rational weights that prove it")
    progress(Progress("proofs in rationals", len(claims), len(claims)))


def _malformed(claim: Verdict, checker: Checker) -> str:
    only_class = checker.head.classes == 1 and claim.witness is not None and claim.status is Status.ARGMAXABLE
    if claim.status is not status_of(claim.lower, claim.upper) and not only_class:
        return f"its bounds do not make it {claim.status.value}"
    if claim.lower > -math.inf and claim.witness is None:
        return "a lower bound without a witness"
    if claim.upper < math.inf and claim.certificate is None:
        return "an upper bound without a certificate"
    if isinstance(claim.witness, Point) and len(claim.witness.values) != checker.point_size:
        return "a witness of the wrong length"
    if isinstance(claim.witness, FinePoint) and len(claim.witness.integers) != checker.point_size:
        return "a witness of the wrong length"
    if isinstance(claim.witness, OwnDirection) and not checker.domain.has_features:
        return "an own direction, which its domain does not have"
    return ""


def _failed_lower_bounds(checker: Checker, claims: list[Verdict]) -> Iterator[Failure]:
    """Members of a tie group share one check: their rows and biases are equal (checked apart)."""
    distinct: dict[object, list[Verdict]] = {}
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
    checker: Checker, groups: list[list[Verdict]]
) -> Iterator[tuple[list[list[Verdict]], Vector]]:
    """What the witnesses prove, for some of the groups at a time. Own directions are compared with each
    other, which takes half of the products."""
    own = [group for group in groups if isinstance(group[0].witness, OwnDirection)]
    if own:
        classes, claimed = _ids_and_bounds(own)
        exponents = np.array(
            [group[0].witness.exponent for group in own if isinstance(group[0].witness, OwnDirection)]
        )
        for some, gaps in checker.own_gaps(classes, exponents, claims=claimed):
            yield [own[k] for k in some.tolist()], gaps.lower
    placed = [group for group in groups if isinstance(group[0].witness, Point)]
    for first in range(0, len(placed), _BATCH):
        batch = placed[first : first + _BATCH]
        points = np.stack([group[0].witness.values for group in batch if isinstance(group[0].witness, Point)])
        classes, claimed = _ids_and_bounds(batch)
        yield batch, checker.gaps(classes, points, claims=claimed).lower
    for group in groups:
        if isinstance(group[0].witness, FinePoint):
            yield [group], np.array([checker.fine_gap(group[0].class_id, group[0].witness)])


def _ids_and_bounds(groups: list[list[Verdict]]) -> tuple[Ids, Vector]:
    leaders = [group[0] for group in groups]
    return _ids(leaders), np.array([claim.lower for claim in leaders])


def _key(claim: Verdict) -> object:
    """Equal for claims that one check settles: same tie group, same bound, same witness."""
    if not claim.tie_group:
        return claim.class_id
    witness = claim.witness
    point: object = witness
    if isinstance(witness, Point):
        point = witness.values.tobytes()
    elif isinstance(witness, OwnDirection):
        point = witness.exponent
    return (id(claim.tie_group), claim.lower, point)


def _failed_upper_bounds(checker: Checker, claims: list[Verdict]) -> Iterator[Failure]:
    together = _bounds_over_shared_rows(checker, claims)
    for group, uppers in _bounds_by_certificate(checker, claims):
        for claim, upper in zip(group, uppers, strict=True):
            assert claim.certificate is not None
            known = min(upper, together.get(claim.class_id, math.inf))
            if not (known <= claim.upper or checker.proves(claim.class_id, claim.certificate, claim.upper)):
                yield Failure(
                    claim.class_id, f"its certificate does not prove a margin of at most {claim.upper:g}"
                )


def _bounds_by_certificate(checker: Checker, claims: list[Verdict]) -> Iterator[tuple[list[Verdict], Vector]]:
    """What float64 proves: by one rival each for many classes at once, then by each certificate for all its
    classes."""
    rivals = {claim.class_id: _rival(claim, checker.head) for claim in claims}
    single = [claim for claim in claims if rivals[claim.class_id] is not None]
    others = np.array([rivals[claim.class_id] for claim in single], np.intp)
    yield single, checker.rival_bounds(_ids(single), others)
    by_certificate: dict[int, list[Verdict]] = {}
    for claim in claims:
        if rivals[claim.class_id] is None:
            by_certificate.setdefault(id(claim.certificate), []).append(claim)
    for group in by_certificate.values():
        certificate = group[0].certificate
        assert certificate is not None
        yield group, checker.bounds(_ids(group), certificate)


def _rival(claim: Verdict, head: Head) -> int | None:
    """The other class on which a certificate has all its weight, if there is one."""
    certificate = claim.certificate
    if certificate is None or certificate.basis or certificate.whole or len(certificate.classes) != 1:
        return None
    rival = int(certificate.classes[0])
    is_other = 0 <= rival < head.classes and rival != claim.class_id
    return rival if is_other and certificate.weights.tolist() == [1.0] else None


def _ids(claims: list[Verdict]) -> Ids:
    return np.array([claim.class_id for claim in claims], np.intp)


def _bounds_over_shared_rows(checker: Checker, claims: list[Verdict]) -> dict[int, float]:
    """What certificates with a basis prove where several are over the same rows, which are then read once."""
    shared: dict[tuple[int, bytes], list[tuple[int, Certificate]]] = {}
    for claim in claims:
        certificate = claim.certificate
        if certificate is None or certificate.whole:
            continue
        if certificate.basis and certificate.coordinates is None:
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


def _failed_ties(head: Head, claims: list[Verdict]) -> Iterator[Failure]:
    members: dict[int, frozenset[int]] = {}
    for claim in claims:
        group = claim.tie_group
        if id(group) not in members:
            members[id(group)] = frozenset(group if _are_identical(head, group) else ())
        if claim.class_id not in members[id(group)]:
            yield Failure(claim.class_id, "it is not identical to the classes it is said to tie with")


def _are_identical(head: Head, group: tuple[int, ...]) -> bool:
    if not all(0 <= member < head.classes for member in group):
        return False
    ids = np.array(group)
    return bool(
        (head.weight[ids] == head.weight[ids[0]]).all() and (head.biases(ids) == head.biases(ids)[0]).all()
    )
