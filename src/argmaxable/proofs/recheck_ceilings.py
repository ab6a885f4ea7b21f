"""Re-checks the ceilings of a proof bundle against its head: both ends of every line and each answer about
the nucleus, with no solver and no trust in whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.probabilities import CeilingChecker
from argmaxable.core.arrays import Vector
from argmaxable.core.head import Head
from argmaxable.proofs.ceilings import CeilingBundle, CeilingClaim
from argmaxable.proofs.recheck import Failure, Recheck, checker_about
from argmaxable.questions.ceiling.mixture import mixture_bound
from argmaxable.questions.ceiling.nucleus import Entry, never_enters

_Bound = Callable[[NDArray[np.intp], NDArray[np.float64]], Vector]

# Points held at a time while their probabilities are formed.
_BATCH = 1024


def recheck_ceilings(bundle: CeilingBundle, head: Head) -> Recheck:
    """Check every claim; raises BundleError when the ceilings are about another head."""
    checker = checker_about(head, bundle.sha256, bundle.domain, "the ceilings are")
    bounds = CeilingChecker(checker, temperature=bundle.temperature)
    failures = {failure.class_id: failure for failure in _failures(bounds, bundle)}
    known = {claim.ceiling.class_id for claim in bundle.claims}
    return Recheck(
        proven=len(known - failures.keys()),
        undecided=sum(1 for claim in bundle.claims if claim.entry is Entry.UNKNOWN),
        missing=head.classes - len({class_id for class_id in known if class_id < head.classes}),
        failures=tuple(failures.values()),
    )


def _failures(bounds: CeilingChecker, bundle: CeilingBundle) -> Iterator[Failure]:
    sound = []
    seen: set[int] = set()
    for claim in bundle.claims:
        why = _malformed(claim, bounds.head, seen)
        seen.add(claim.ceiling.class_id)
        if why:
            yield Failure(claim.ceiling.class_id, why)
        else:
            sound.append(claim)
    if bounds.head.classes == 1:
        return
    for first in range(0, len(sound), _BATCH):
        some = sound[first : first + _BATCH]
        yield from _failed_lower_ends(bounds, [claim for claim in some if claim.ceiling.lower > 0])
        yield from _failed_upper_ends(bounds, [claim for claim in some if claim.ceiling.upper < 1])
        yield from _failed_entries(bounds, [claim for claim in some if claim.entry], bundle.top_p)


def _malformed(claim: CeilingClaim, head: Head, seen: set[int]) -> str:
    ceiling = claim.ceiling
    if ceiling.class_id >= head.classes:
        return f"the head has no class {ceiling.class_id}"
    if ceiling.class_id in seen:
        return "the class is claimed twice"
    if not 0 <= ceiling.lower <= ceiling.upper <= 1:
        return f"[{ceiling.lower}, {ceiling.upper}] is no interval of probabilities"
    if any(point is not None and len(point) != head.features for point in (ceiling.point, claim.entry_point)):
        return "a point of the wrong length"
    if head.classes == 1:
        return ""  # always certain, whatever the input
    if ceiling.point is None and ceiling.lower > 0:
        return "a lower end without a point"
    if claim.entry_point is None and claim.entry is Entry.YES:
        return "an entry into the nucleus without a point"
    if ceiling.point is None and ceiling.mixture is None and ceiling.upper < 1:
        return "an upper end without a point or a mixture"
    return ""


def _failed_lower_ends(bounds: CeilingChecker, claims: list[CeilingClaim]) -> Iterator[Failure]:
    proven = _evaluated(bounds.reached, claims, [claim.ceiling.point for claim in claims])
    for claim, lower in zip(claims, proven, strict=True):
        if not lower >= claim.ceiling.lower:
            yield Failure(
                claim.ceiling.class_id,
                f"its point proves a probability of {lower:.9g}, not {claim.ceiling.lower:.9g}",
            )


def _failed_upper_ends(bounds: CeilingChecker, claims: list[CeilingClaim]) -> Iterator[Failure]:
    for claim in (claim for claim in claims if claim.ceiling.mixture is not None):
        assert claim.ceiling.mixture is not None
        upper = mixture_bound(
            bounds.checker, claim.ceiling.class_id, claim.ceiling.mixture, temperature=bounds.temperature
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
        claim.ceiling.class_id,
        f"its {what} proves a probability of at most {upper:.9g}, not {claim.ceiling.upper:.9g}",
    )


def _failed_entries(
    bounds: CeilingChecker, claims: list[CeilingClaim], top_p: float | None
) -> Iterator[Failure]:
    if top_p is None or not top_p <= 1:
        for claim in claims:
            yield Failure(claim.ceiling.class_id, "an answer about a nucleus without its mass p")
        return
    entering = [claim for claim in claims if claim.entry is Entry.YES]
    masses = _evaluated(bounds.mass_above, entering, [claim.entry_point for claim in entering])
    for claim, mass in zip(entering, masses, strict=True):
        if not mass < top_p:
            yield Failure(
                claim.ceiling.class_id, f"at its point the classes above have a mass of up to {mass:.9g}"
            )
    for claim in claims:
        if claim.entry is Entry.NO and not never_enters(claim.ceiling.upper, bounds.head.classes, top_p):
            yield Failure(claim.ceiling.class_id, "its ceiling does not keep it out of the nucleus")


def _evaluated(bound: _Bound, claims: list[CeilingClaim], points: list[Vector | None]) -> list[float]:
    """A bound of bounds.py for these claims at these points; nothing where there are no claims."""
    if not claims:
        return []
    ids = np.array([claim.ceiling.class_id for claim in claims])
    values: list[float] = bound(ids, np.array(points, np.float64)).tolist()
    return values
