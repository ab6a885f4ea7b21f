"""Re-checks evidence about sets of labels, exactly and without a solver.

A point of the domain proves a set feasible when all its gaps are positive there: σ_i (s_i(x) − θ_i), or
s_i(x) − s_j(x) for i inside and j outside. Weights λ ≥ 0 on labels bound the margin by weak duality:

    t* ≤ h_X(u) + Σ f_i (b_i − θ_i)   with   u = Σ f_i w_i

where f_i = σ_i λ_i / Σλ. For the top k, θ = 0 and the weights inside and those outside are each divided by
their own sum: a mixture of members can't be above a mixture of non-members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Bound, exact_bound, is_well_formed
from argmaxable.check.witnesses import Scores
from argmaxable.compute.blocks import blocks
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.core.claim import Failure
from argmaxable.core.errors import InputError
from argmaxable.core.feasibility import feasibility_of
from argmaxable.core.head import Head
from argmaxable.core.label_sets import Members, SetClaim, SetKind, SetTest, is_inside
from argmaxable.core.verdict import Certificate, Strength
from argmaxable.exact.dyadic import Dyadic, round_down
from argmaxable.exact.rounding import TINY, UNIT, gamma

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
    from argmaxable.core.domain import Domain

# Scores held at a time with bounds on their errors.
_BLOCK_SCORES = 1 << 21
# A quotient below this may lose digits to underflow, which a large row makes more of: left to integers.
_LEAST_FACTOR = 2.0**-900
_NOTHING = Bound(math.inf, Strength.EXACT)
# A margin is claimed three bounds on its rounding below what floats found, so that it is proven again in any
# order of summation.
_CLAIMED_SLACKS = 3


def cut_head(head: Head, test: SetTest) -> Head:
    """The head with thresholds taken off its biases, and one more row of zeros: the cut, which a label is
    above exactly where it is on."""
    weight = np.vstack([head.weight[:], np.zeros((1, head.features), head.weight.dtype)])
    with np.errstate(over="ignore"):
        bias = head.biases() - test.of_labels(head.classes)
    if not np.isfinite(bias).all():
        raise InputError("a bias less its threshold is beyond the range of float64. Scale the head down.")
    return Head(weight, np.append(bias, 0.0) if bias.any() else None, name=head.name)


class SetChecker:
    """Checks evidence about sets of labels of one head over one domain."""

    def __init__(self, head: Head | PreparedHead, domain: Domain, test: SetTest) -> None:
        whole = prepared(head)
        self.head, self.domain, self.test = whole.head, domain, test
        test.require_labels(self.head.classes)
        domain.require_features(self.head.features)
        self.has_cut = test.kind is not SetKind.TOP
        # Gaps to the cut and between labels do not change when a vector is taken off all rows.
        if self.has_cut:
            self.prepared = PreparedHead(cut_head(self.head, test))
        else:
            self.prepared = PreparedHead(self.head) if whole.compute.device != "numpy" else whole
        self.scores = Scores(self.prepared, domain)
        self.thresholds = test.of_labels(self.head.classes)

    # ------------------------------------------------------------------ witnesses

    def margins(self, sets: Sequence[Members], points: Matrix, *, claims: Vector | None = None) -> Vector:
        """The proven margin of each set at its point z (n × point size): −∞ outside the domain, ∞ for a set
        that asks for nothing. Arithmetic gets more exact where a sign, or a claim, can't be told."""
        lower = np.full(len(sets), -math.inf)
        inside = self.domain.contains(points)
        for block in blocks(len(sets), self.prepared.head.classes, _BLOCK_SCORES):
            chosen = np.arange(block.start, block.stop)[inside[block]]
            if not len(chosen):
                continue
            values, errors = self.scores.all_scores(points[chosen])
            for k, number in enumerate(chosen.tolist()):
                claim = None if claims is None else float(claims[number])
                lower[number] = self._margin(
                    sets[number], points[number], claim, values[k].astype(np.float64), errors(k)
                )
        return lower

    def _margin(
        self, members: Members, point: Vector, claim: float | None, values: Vector, errors: Vector
    ) -> float:
        if self.test.asks_nothing(members, self.head.classes):
            return math.inf
        wanted = 0.0 if claim is None else claim
        for is_double in (False, True):
            low, high = self._enclosed(*(self.scores.scores64(point) if is_double else (values, errors)))
            least, most = self._smallest(members, low, high)
            if claim is None:  # whoever computes it again must come out above
                least = min(least, least - (_CLAIMED_SLACKS - 1) * (most - least) / 2)
            if least > wanted or (claim is not None and least >= claim) or most < wanted:
                return least
        return self._exact_margin(members, point, low, high)

    def _enclosed(self, scores: Vector, slack: Vector) -> tuple[Vector, Vector]:
        """Bounds on the score of each label, over its threshold where there is one."""
        with np.errstate(invalid="ignore", over="ignore"):
            if self.has_cut:
                # Two scores' errors; their difference rounds, and b − θ was rounded before.
                gaps = scores[:-1] - scores[-1]
                biases = np.abs(self.prepared.head.biases(slice(0, -1)))
                slack = slack[:-1] + slack[-1] + 4 * UNIT * (np.abs(gaps) + biases)
                scores = gaps
            low, high = scores - slack, scores + slack
        return np.where(np.isnan(low), -math.inf, low), np.where(np.isnan(high), math.inf, high)

    def _smallest(self, members: Members, low: Vector, high: Vector) -> tuple[float, float]:
        """Bounds on the smallest gap, from bounds on scores."""
        inside = is_inside(members, len(low))
        # What is missing asks for nothing.
        within = float(low[inside].min(initial=math.inf)), float(high[inside].min(initial=math.inf))
        if self.test.kind is SetKind.AT_LEAST:
            return within
        outer = float(low[~inside].max(initial=-math.inf)), float(high[~inside].max(initial=-math.inf))
        if self.test.kind is SetKind.EXACTLY:
            return min(within[0], -outer[1]), min(within[1], -outer[0])
        # The difference rounds once.
        gaps = within[0] - outer[1], within[1] - outer[0]
        return gaps[0] - UNIT * abs(gaps[0]), gaps[1] + UNIT * abs(gaps[1])

    def _exact_margin(self, members: Members, point: Vector, low: Vector, high: Vector) -> float:
        """The smallest gap itself, rounded down: only labels that may be part of it are computed."""
        inside, kind = is_inside(members, len(low)), self.test.kind
        needed = inside & (low <= high[inside].min(initial=math.inf))
        if kind is not SetKind.AT_LEAST:
            needed |= ~inside & (high >= low[~inside].max(initial=-math.inf))
        ids = np.flatnonzero(needed)
        scores, denominator = self._exact_scores(point, ids)
        within, outer = scores.integers[inside[ids]].tolist(), scores.integers[~inside[ids]].tolist()
        if kind is SetKind.TOP:
            smallest = min(within) - max(outer)
        else:
            smallest = min([*within, *(-score for score in outer)])
        return round_down(smallest * Fraction(2) ** scores.exponent / denominator)

    def _exact_scores(self, point: Vector, ids: Ids) -> tuple[Dyadic, int]:
        """Scores of these labels over their thresholds, times a whole number, and that number."""
        x, denominator = self.domain.place_exactly(point)
        offsets = Dyadic.of(self.head.biases(ids)) - Dyadic.of(self.thresholds[ids])
        used = np.flatnonzero(x.sign())  # what is 0 adds nothing
        if not len(used):
            return offsets, 1
        return Dyadic.of(self.head.rows(ids)[:, used]) @ x[used] + offsets * denominator, denominator

    # ------------------------------------------------------------------ certificates

    def bound(self, members: Members, certificate: Certificate) -> Bound:
        """The upper bound on the set's margin that the certificate proves, its weights meant literally."""
        inside = (
            is_inside(members, self.head.classes)[certificate.classes] if self._fits(certificate) else None
        )
        if inside is None or not self._is_balanced(inside, certificate):
            return _NOTHING
        if certificate.whole:
            return self._exact_bound(inside, certificate, math.inf)
        upper = self._float_bound(inside, certificate)
        if upper <= 0:
            return Bound(upper, Strength.FLOAT64)
        return self._exact_bound(inside, certificate, upper)

    def _fits(self, certificate: Certificate) -> bool:
        return not certificate.basis and is_well_formed(certificate, -1, self.head.classes)

    def _is_balanced(self, inside: Mask, certificate: Certificate) -> bool:
        """Whether weights are only where the question has conditions, and on both sides of the top k."""
        used = np.array([weight > 0 for weight in certificate.whole or certificate.weights.tolist()])
        if self.test.kind is SetKind.AT_LEAST:
            return bool(inside[used].all())
        return self.has_cut or bool((used & inside).any() and (used & ~inside).any())

    def _float_bound(self, inside: Mask, certificate: Certificate) -> float:
        ids, weights = certificate.classes, certificate.weights
        # A side's sum rounds n times, its quotient once, and so do dot products of n terms, a row's centring
        # and a difference of biases: γ_{2n+12} of all sizes. What underflows is at most TINY a term.
        relative, underflow = gamma(2 * len(ids) + 12), 4 * len(ids) * TINY
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            sides = np.full(len(ids), weights.sum())
            if not self.has_cut:
                sides = np.where(inside, weights[inside].sum(), weights[~inside].sum())
            factors = np.where(inside, weights, -weights) / sides
            if (np.abs(factors[weights > 0]) < _LEAST_FACTOR).any():
                return math.inf
            rows = self.head.rows(ids)
            if not self.has_cut:  # the factors add up to 0: what all rows share cancels
                rows = rows - self.prepared.centre
            biases, thresholds = self.head.biases(ids), self.thresholds[ids]
            u, size = factors @ rows, np.abs(factors) @ np.abs(rows)
            offset = float(factors @ (biases - thresholds))
            slack = relative * float(np.abs(factors) @ (np.abs(biases) + np.abs(thresholds))) + underflow
            value = float(self.domain.support_bound(u[None], (relative * size + underflow)[None])[0])
            upper = value + offset + slack
            upper += gamma(8) * (abs(value) + abs(offset) + slack) + TINY
        sound = math.isfinite(upper) and np.isfinite(u).all() and np.isfinite(size).all()
        return upper if sound else math.inf

    def _exact_bound(self, inside: Mask, certificate: Certificate, upper: float) -> Bound:
        weights = Dyadic.of(certificate.weights)
        if certificate.whole:
            weights = Dyadic(np.array(certificate.whole, dtype=object), 0)
        signs = Dyadic(np.where(inside, 1, -1).astype(object), 0)
        factors, total = weights * signs, weights.sum()
        if not self.has_cut:
            within, outer = weights[inside].sum(), weights[~inside].sum()
            scale = np.array([outer.integers if one else within.integers for one in inside], dtype=object)
            factors, total = factors * Dyadic(scale, weights.exponent), within * outer
        ids = certificate.classes
        u = factors @ Dyadic.of(self.head.rows(ids))
        offset = factors @ (Dyadic.of(self.head.biases(ids)) - Dyadic.of(self.thresholds[ids]))
        return exact_bound(self.domain, u, offset, total.fraction(), upper)

    def proves(self, members: Members, certificate: Certificate, claim: float) -> bool:
        """Whether the certificate proves t* ≤ claim."""
        found = self.bound(members, certificate)
        return found.upper <= claim or (
            found.strength is Strength.FLOAT64
            and self._exact_bound(
                is_inside(members, self.head.classes)[certificate.classes], certificate, math.inf
            ).upper
            <= claim
        )


# ---------------------------------------------------------------------- claims


def failed_sets(
    head: PreparedHead, domain: Domain, claims: Sequence[SetClaim], test: SetTest
) -> Iterator[Failure]:
    """The claims that their evidence does not prove."""
    checker = SetChecker(head, domain, test)
    sound = []
    for claim in claims:
        why = _malformed(claim, checker)
        if why:
            yield Failure(claim.members, why)
        else:
            sound.append(claim)
    yield from _failed_points(checker, [claim for claim in sound if claim.point is not None])
    for claim in sound:
        if claim.certificate is not None and not checker.proves(
            claim.members, claim.certificate, claim.upper
        ):
            yield Failure(
                claim.members, f"its certificate does not prove a margin of at most {claim.upper:g}"
            )


def _failed_points(checker: SetChecker, claims: list[SetClaim]) -> Iterator[Failure]:
    size = checker.domain.point_size(checker.head.features)
    for block in blocks(len(claims), max(size, checker.head.classes)):
        some = claims[block]
        points = np.stack([claim.point for claim in some if claim.point is not None])
        lower = checker.margins(
            [claim.members for claim in some], points, claims=np.array([claim.lower for claim in some])
        )
        for claim, proven in zip(some, lower.tolist(), strict=True):
            if not proven >= claim.lower or proven == -math.inf:
                yield Failure(claim.members, f"its point proves a margin of {proven:g}, not {claim.lower:g}")


def _malformed(claim: SetClaim, checker: SetChecker) -> str:
    asks_nothing = checker.test.asks_nothing(claim.members, checker.head.classes)
    is_met = asks_nothing and claim.point is not None
    if claim.status is not feasibility_of(math.inf if is_met else claim.lower, claim.upper):
        return f"its bounds do not make it {claim.status.value}"
    if claim.lower > -math.inf and claim.point is None:
        return "a lower bound without a point"
    if claim.upper < math.inf and claim.certificate is None:
        return "an upper bound without a certificate"
    if claim.point is not None and len(claim.point) != checker.domain.point_size(checker.head.features):
        return "a point of the wrong length"
    return ""
