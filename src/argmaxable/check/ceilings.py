"""Checks ceilings: both ends of every interval and each answer about the nucleus. No solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.mixtures import mixture_bound
from argmaxable.check.probabilities import CeilingChecker, never_enters
from argmaxable.core.arrays import Ids, Matrix, Vector
from argmaxable.core.ceiling import CeilingClaim, Entry
from argmaxable.core.claim import Failure

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker

_Bound = Callable[[Ids, Matrix], Vector]

# Points held at a time while their probabilities are formed.
_BATCH = 1024


def failed_ceilings(
    checker: Checker, claims: Sequence[CeilingClaim], *, temperature: float, top_p: float | None
) -> Iterator[Failure]:
    """The claims, of classes that the head has, that their evidence does not prove."""
    bounds = CeilingChecker(checker, temperature=temperature)
    sound = []
    for claim in claims:
        why = _malformed(claim, checker)
        if why:
            yield Failure(claim.class_id, why)
        else:
            sound.append(claim)
    if checker.head.classes == 1:
        return
    for first in range(0, len(sound), _BATCH):
        some = sound[first : first + _BATCH]
        yield from _failed_lower_ends(bounds, [claim for claim in some if claim.ceiling.lower > 0])
        yield from _failed_upper_ends(bounds, [claim for claim in some if claim.ceiling.upper < 1])
        yield from _failed_entries(bounds, [claim for claim in some if claim.entry], top_p)


def _malformed(claim: CeilingClaim, checker: Checker) -> str:
    ceiling, points = claim.ceiling, (claim.ceiling.point, claim.entry_point)
    if not 0 <= ceiling.lower <= ceiling.upper <= 1:
        return f"[{ceiling.lower}, {ceiling.upper}] is not an interval of probabilities"
    if any(point is not None and len(point) != checker.point_size for point in points):
        return "a point of the wrong length"
    if checker.head.classes == 1:
        return ""  # always certain, whatever the input
    if ceiling.point is None and ceiling.lower > 0:
        return "a lower end without a point"
    if claim.entry is Entry.YES and claim.entry_point is None:
        return "an entry into the nucleus without a point"
    if ceiling.point is None and ceiling.mixture is None and ceiling.upper < 1:
        return "an upper end without a point or a mixture"
    return ""


def _failed_lower_ends(bounds: CeilingChecker, claims: list[CeilingClaim]) -> Iterator[Failure]:
    proven = _evaluated(bounds.reached, claims, [claim.ceiling.point for claim in claims])
    for claim, lower in zip(claims, proven, strict=True):
        if not lower >= claim.ceiling.lower:
            yield Failure(
                claim.class_id,
                f"its point proves a probability of {lower:.9g}, not {claim.ceiling.lower:.9g}",
            )


def _failed_upper_ends(bounds: CeilingChecker, claims: list[CeilingClaim]) -> Iterator[Failure]:
    for claim in (claim for claim in claims if claim.ceiling.mixture is not None):
        assert claim.ceiling.mixture is not None
        upper = mixture_bound(
            bounds.checker, claim.class_id, claim.ceiling.mixture, temperature=bounds.temperature
        )
        if not upper <= claim.ceiling.upper:
            yield _too_low(claim, "mixture", upper)
    tangents = [claim for claim in claims if claim.ceiling.mixture is None]
    proven = _evaluated(bounds.allowed, tangents, [claim.ceiling.point for claim in tangents])
    for claim, upper in zip(tangents, proven, strict=True):
        if not upper <= claim.ceiling.upper:
            yield _too_low(claim, "tangent", upper)


def _too_low(claim: CeilingClaim, what: str, upper: float) -> Failure:
    return Failure(
        claim.class_id,
        f"its {what} proves a probability of at most {upper:.9g}, not {claim.ceiling.upper:.9g}",
    )


def _failed_entries(
    bounds: CeilingChecker, claims: list[CeilingClaim], top_p: float | None
) -> Iterator[Failure]:
    if top_p is None or not top_p <= 1:
        for claim in claims:
            yield Failure(claim.class_id, "an answer about a nucleus without its mass p")
        return
    entering = [claim for claim in claims if claim.entry is Entry.YES]
    masses = _evaluated(bounds.mass_above, entering, [claim.entry_point for claim in entering])
    for claim, mass in zip(entering, masses, strict=True):
        if not mass < top_p:
            yield Failure(claim.class_id, f"at its point the classes above have a mass of up to {mass:.9g}")
    for claim in claims:
        if claim.entry is Entry.NO and not never_enters(claim.ceiling.upper, bounds.head.classes, top_p):
            yield Failure(claim.class_id, "its ceiling does not keep it out of the nucleus")


def _evaluated(bound: _Bound, claims: list[CeilingClaim], points: list[Vector | None]) -> list[float]:
    """What a bound of check/probabilities.py proves for each claim at its point."""
    if not claims:
        return []
    ids = np.array([claim.class_id for claim in claims])
    values: list[float] = bound(ids, np.array(points, np.float64)).tolist()
    return values
