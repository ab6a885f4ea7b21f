"""Re-checks evidence, exactly and without a solver: the only module whose word makes a verdict.

A witness z is checked by the class's smallest gap to any rival there; a certificate λ by weak
duality, h_X(u) + Σ λ_i (b_c − b_i) ≤ 0 with u = Σ λ_i (w_c − w_i). Floats are used only together
with a proven bound on their rounding; what they can't decide is decided in integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.domain import Box, Domain, LayerNorm, RMSNorm
from argmaxable.errors import EvidenceError
from argmaxable.exact import Dyadic, round_down, round_up
from argmaxable.geometry import (
    UNIT,
    box_support,
    contains,
    gamma,
    place,
    place_exactly,
    support_bound,
    support_is_at_most,
)
from argmaxable.head import Head
from argmaxable.solve_exactly import basis_error, exact_weights
from argmaxable.verdict import Certificate, OwnDirection, Strength, Witness

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Ids = NDArray[np.intp]

_UNIT32 = 2.0**-24
_TINY32 = 2.0**-125  # more than any float32 underflow can lose, flushed or not
# Scores held at a time: 64 MB in float32, small enough for any laptop, large enough for BLAS.
_BLOCK_SCORES = 1 << 24
# Roundings that a score meets besides its dot product (centring, conversion, bias, gap), with room.
_EXTRA_ROUNDINGS = 10


@dataclass(frozen=True, eq=False)
class Gaps:
    """What the points prove: `lower` ≤ t* for each, the best rival met, and by which arithmetic."""

    lower: Vector
    rival: Ids
    strength: NDArray[np.uint8]  # index into list(Strength)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a certificate proves: t* ≤ `upper` (infinite when it proves nothing)."""

    upper: float
    strength: Strength


_NOTHING = Bound(math.inf, Strength.EXACT)
_STRENGTHS = list(Strength)
_FLOAT32, _FLOAT64, _EXACT = (
    _STRENGTHS.index(kind) for kind in (Strength.FLOAT32, Strength.FLOAT64, Strength.EXACT)
)


class Checker:
    """Checks evidence about the classes of one head over one domain.

    Scores are formed from rows with a common vector taken off, which changes no gap and makes
    rounding bounds tight for heads whose rows share a large mean.
    """

    def __init__(self, head: Head, domain: Domain, *, centre: Vector | None = None) -> None:
        domain.require_features(head.features)
        self.head, self.domain = head, domain
        self.centre = centre_of(head) if centre is None else centre
        biases = head.biases()
        self._has_bias = head.has_bias
        self._biases = biases - biases.mean() if np.isfinite(biases.mean()) else biases
        self.rows32: NDArray[np.float32] = np.empty(head.weight.shape, np.float32)
        self._norms = np.empty(head.classes)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for block in _blocks(head.classes, head.features):
                rows = head.rows(block) - self.centre
                self.rows32[block] = rows
                self._norms[block] = np.sqrt((rows * rows).sum(axis=1)) * (1 + gamma(head.features + 8))
            self.biases32 = self._biases.astype(np.float32)
        self._norms += head.features * math.sqrt(2.0**-1021)

    def rebuild(self, classes: Ids, exponents: NDArray[np.intp]) -> Matrix:
        """Own-direction witnesses z = 2^exponent · gain ∘ (w_c − centre), clipped to a box."""
        z = self.head.rows(classes) - self.centre
        if isinstance(self.domain, RMSNorm | LayerNorm):
            z = self.domain.gains(self.head.features) * z
        with np.errstate(over="ignore", under="ignore"):
            z = np.ldexp(z, exponents[:, None])
        return np.asarray(np.clip(z, self.domain.lo, self.domain.hi) if isinstance(self.domain, Box) else z)

    def point(self, class_id: int, witness: Witness) -> Vector:
        """The vector z a witness stands for."""
        if isinstance(witness, OwnDirection):
            return np.asarray(self.rebuild(np.array([class_id]), np.array([witness.exponent]))[0])
        return witness.values

    # ------------------------------------------------------------------ witnesses

    def gaps(self, classes: Ids, points: Matrix, *, claims: Vector | None = None) -> Gaps:
        """The proven gap of each class at its point (n × features); −∞ outside the domain.

        Arithmetic gets more exact where a sign, or a claimed lower bound, can't be told otherwise.
        """
        count = len(classes)
        claims = np.full(count, -math.inf) if claims is None else claims
        found = Gaps(np.full(count, -math.inf), np.full(count, -1), np.full(count, _FLOAT32, np.uint8))
        for block in _blocks(count, self.head.classes):
            self._gaps_by_float32(classes[block], points[block], claims[block], _view(found, block))
        outside = ~contains(self.domain, points)
        found.lower[outside] = -math.inf
        return found

    def _gaps_by_float32(self, classes: Ids, points: Matrix, claims: Vector, found: Gaps) -> None:
        if self.head.classes == 1:
            found.lower[:] = math.inf
            return
        index = np.arange(len(classes))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, misplaced = place(self.domain, points)
            scores = x.astype(np.float32) @ self.rows32.T
            if self._has_bias:
                scores += self.biases32
            own = scores[index, classes].astype(np.float64)
            scores[index, classes] = -np.inf
            found.rival[:] = scores.argmax(axis=1)
            gap = own - scores[index, found.rival]
            error = self._score_error(x, misplaced, _UNIT32, _TINY32)
            slack = error(self._norms[classes], np.abs(self._biases[classes]))
            slack += error(self._norms.max(), np.abs(self._biases).max())
            found.lower[:] = gap - slack
            # Only what float32 can't tell apart goes on; a clear loss is a valid answer too.
            signed = np.abs(gap) > slack
            unclear = np.flatnonzero(~(signed & ((gap - slack >= claims) | (gap + slack < claims))))
        for some in np.array_split(unclear, max(1, len(unclear) * self.head.classes // _BLOCK_SCORES)):
            if len(some):
                placed = (x[some], misplaced[some])
                self._gaps_by_float64(classes[some], points[some], placed, claims[some], found, some)

    def _gaps_by_float64(
        self,
        classes: Ids,
        points: Matrix,
        placed: tuple[Matrix, Matrix],
        claims: Vector,
        found: Gaps,
        where: Ids,
    ) -> None:
        x, misplaced = placed
        scores = np.empty((len(classes), self.head.classes))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for block in _blocks(self.head.classes, self.head.features):
                scores[:, block] = x @ (self.head.rows(block) - self.centre).T + self._biases[block]
            error = self._score_error(x, misplaced, UNIT, 2.0**-1021)
            for k, class_id in enumerate(classes):
                slack = error(self._norms, np.abs(self._biases), k)
                low = scores[k, class_id] - scores[k] - (slack[class_id] + slack)
                high = scores[k, class_id] - scores[k] + (slack[class_id] + slack)
                low[class_id] = high[class_id] = math.inf
                unclear = _unclear_rivals(low, high, claims[k])
                low[unclear] = self._exact_gaps(int(class_id), points[k], unclear)
                found.strength[where[k]] = _EXACT if len(unclear) else _FLOAT64
                found.rival[where[k]] = low.argmin()
                found.lower[where[k]] = low.min()

    def _score_error(self, x: Matrix, misplaced: Matrix, unit: float, tiny: float) -> Any:
        """Bound on the error of scores, as a function of row norms and biases (Cauchy-Schwarz).

        Each score is a dot product of rounded rows with a rounded point, any order of summation.
        """
        features = self.head.features
        relative = gamma(features + _EXTRA_ROUNDINGS, unit)
        length = np.sqrt((x * x).sum(axis=1)) * (1 + gamma(features + 4))
        astray = np.sqrt((misplaced * misplaced).sum(axis=1)) * (1 + gamma(features + 4))
        lost = 2 * features * tiny * (1 + np.abs(x).max(axis=1))

        def error(norms: Any, biases: Any, k: int | slice = slice(None)) -> Any:
            size = norms * length[k] + biases
            return relative * size + norms * astray[k] + lost[k] * (1 + norms)

        return error

    def _exact_gaps(self, class_id: int, point: Vector, rivals: Ids) -> Vector:
        """The gaps to these rivals, rounded down from their exact values."""
        x, denominator = place_exactly(self.domain, point)
        biases = self.head.biases(np.append(rivals, class_id))
        rows, own = self.head.rows(rivals), self.head.rows(np.array([class_id]))[0]
        out = np.zeros(len(rivals))  # twins tie, without arithmetic: heads may have thousands
        for k in np.flatnonzero((rows != own).any(axis=1) | (biases[:-1] != biases[-1])):
            score = (Dyadic.of(own) - Dyadic.of(rows[k])) @ x
            offset = Dyadic.of(biases[-1]) - Dyadic.of(biases[k])
            out[k] = round_down(score.fraction() / denominator + offset.fraction())
        return out

    # ------------------------------------------------------------------ certificates

    def bound(self, class_id: int, certificate: Certificate) -> Bound:
        """The upper bound on the class's margin that the certificate proves."""
        if not _is_well_formed(certificate, class_id, self.head.classes):
            return _NOTHING
        if certificate.basis:
            return self._bound_by_solution(class_id, certificate)
        rival = certificate.classes[0]
        if len(certificate.classes) == 1 and (self.head.weight[class_id] == self.head.weight[rival]).all():
            # A twin: u = 0 without arithmetic, and heads may have thousands of them.
            biases = self.head.biases(np.array([class_id, rival]))
            return Bound(round_up(Fraction(biases[0]) - Fraction(biases[1])), Strength.EXACT)
        upper = float(self._float_bounds(np.array([class_id]), certificate)[0])
        if upper <= 0:
            return Bound(upper, Strength.FLOAT64)
        return self._exact_bound(class_id, certificate.classes, Dyadic.of(certificate.weights), upper)

    def bounds(self, classes: Ids, certificate: Certificate) -> Vector:
        """Upper bounds by float64 that one certificate proves for many classes at once."""
        if certificate.basis or not _is_well_formed(certificate, -1, self.head.classes):
            return np.full(len(classes), math.inf)
        uppers = self._float_bounds(classes, certificate)
        uppers[np.isin(classes, certificate.classes)] = math.inf
        return uppers

    def _float_bounds(self, classes: Ids, certificate: Certificate) -> Vector:
        weights = certificate.weights
        relative = gamma(len(weights) + 8)
        total = float(weights.sum())
        lost = len(weights) * 2.0**-1021
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            own = self.head.rows(classes) - self.centre
            rows = self.head.rows(certificate.classes) - self.centre
            u = total * own - weights @ rows
            error = relative * (total * np.abs(own) + weights @ np.abs(rows)) + lost
            mine, theirs = self._biases[classes], self._biases[certificate.classes]
            offset = total * mine - weights @ theirs
            slack = relative * (total * np.abs(mine) + float(weights @ np.abs(theirs))) + lost
            value = support_bound(self.domain, u, error)
            upper = (value + offset + slack) / total
            upper += relative * (np.abs(value) + np.abs(offset) + slack) / total  # the total is rounded too
        return np.where(np.isfinite(upper), upper, math.inf)

    def rival_bounds(self, classes: Ids, rivals: Ids) -> Vector:
        """Upper bounds on the margins from one rival each: t* ≤ h_X(w_c − w_i) + b_c − b_i."""
        uppers = np.empty(len(classes))
        for block in _blocks(len(classes), self.head.features):
            mine, theirs = self._biases[classes[block]], self._biases[rivals[block]]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                u = self.head.rows(classes[block]) - self.head.rows(rivals[block])
                value = support_bound(self.domain, u, gamma(2) * np.abs(u) + 2.0**-1021)
                slack = gamma(8) * (np.abs(mine) + np.abs(theirs) + np.abs(value))
                uppers[block] = value + (mine - theirs) + slack
        return np.where(np.isfinite(uppers), uppers, math.inf)

    def proves(self, class_id: int, certificate: Certificate, claim: float) -> bool:
        """Whether the certificate proves t* ≤ claim; exact where floats can't tell."""
        if self.bound(class_id, certificate).upper <= claim:
            return True
        if not math.isfinite(claim) or not _is_well_formed(certificate, class_id, self.head.classes):
            return False
        weights: Dyadic | None = Dyadic.of(certificate.weights)
        if certificate.basis:
            weights = exact_weights(self.head, self.domain, class_id, certificate)
        if weights is None:
            return False
        u, offset = self._direction(class_id, certificate.classes, weights)
        return support_is_at_most(self.domain, u, Dyadic.of(claim) * weights.sum() - offset)

    def _direction(self, class_id: int, classes: Ids, weights: Dyadic) -> tuple[Dyadic, Dyadic]:
        """u = Σ λ_i (w_c − w_i) and Σ λ_i (b_c − b_i), exactly."""
        total = weights.sum()
        own = Dyadic.of(self.head.rows(np.array([class_id]))[0])
        biases = self.head.biases(np.append(classes, class_id))
        u = own * total - weights @ Dyadic.of(self.head.rows(classes))
        return u, Dyadic.of(biases[-1]) * total - weights @ Dyadic.of(biases[:-1])

    def _exact_bound(self, class_id: int, classes: Ids, weights: Dyadic, upper: float) -> Bound:
        """Decide h_X(u) + Σ λ_i (b_c − b_i) ≤ 0 in integers; `upper` is known already."""
        u, offset = self._direction(class_id, classes, weights)
        total = weights.sum().fraction()
        if isinstance(self.domain, Box):
            support = box_support(self.domain, u)
            if support is not None:
                upper = min(upper, round_up((support + offset).fraction() / total))
        elif support_is_at_most(self.domain, u, offset * -1):
            upper = min(upper, 0.0 if u.sign().any() else round_up(offset.fraction() / total))
        return Bound(upper, Strength.EXACT)

    def _bound_by_solution(self, class_id: int, certificate: Certificate) -> Bound:
        """Exact weights next to the stored ones: shown to exist, or else computed as rationals."""
        if certificate.coordinates is None:
            shift = basis_error(self.head, self.domain, self.centre, class_id, certificate)
            if shift is not None:
                upper = self._bound_near(class_id, certificate, shift)
                if upper <= 0:
                    return Bound(upper, Strength.INTERVAL)
        weights = exact_weights(self.head, self.domain, class_id, certificate)
        if weights is None:
            return _NOTHING
        return self._exact_bound(class_id, certificate.classes, weights, math.inf)

    def _bound_near(self, class_id: int, certificate: Certificate, shift: float) -> float:
        """Bound with u = 0 for weights whose basis part may be off by `shift` in each entry."""
        biases = self._shifted_biases(np.append(certificate.classes, class_id))
        if biases is None:
            return 0.0
        values, errors = biases
        drop = values[-1] - values[:-1]
        size = np.abs(values[-1]) + np.abs(values[:-1])
        weights, head = certificate.weights, slice(0, certificate.basis)
        total = float(weights.sum())
        slack = shift * float(np.abs(drop[head]).sum())
        reach = total + certificate.basis * shift
        slack += gamma(len(drop) + 8) * (float(weights @ size) + slack)
        slack += reach * float(errors.max()) * 2
        return float(weights @ drop) + slack + 4 * UNIT * abs(float(weights @ drop))

    def _shifted_biases(self, ids: Ids) -> tuple[Vector, Vector] | None:
        """b_i + w_i·shift with error bounds; None when all are zero (no bias, no shift)."""
        domain = self.domain
        shift = domain.shifts(self.head.features) if isinstance(domain, RMSNorm | LayerNorm) else None
        if shift is None or not shift.any():
            return (self._biases[ids], np.abs(self._biases[ids]) * 2 * UNIT) if self._has_bias else None
        rows = self.head.rows(ids) - self.centre
        size = np.abs(rows) @ np.abs(shift) + np.abs(self._biases[ids])
        return rows @ shift + self._biases[ids], gamma(self.head.features + 6) * size


def _unclear_rivals(low: Vector, high: Vector, claim: float) -> Ids:
    """Rivals whose gap in [low, high] leaves open whether the smallest is above 0, or the claim."""
    if not low.min() > 0 and not (high < 0).any():
        return np.flatnonzero(~(low > max(0.0, claim)))
    if not low.min() >= claim and not (high < claim).any():
        return np.flatnonzero(~(low >= claim))
    return np.empty(0, np.intp)


def centre_of(head: Head) -> Vector:
    """The mean row, rounded to float32 so that it can be stored cheaply; zero where it overflows."""
    total = np.zeros(head.features)
    with np.errstate(over="ignore", invalid="ignore"):
        for block in _blocks(head.classes, head.features):
            total += head.rows(block).sum(axis=0)
        mean = (total / head.classes).astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def rival_certificate(rival: int) -> Certificate:
    """The simplest certificate: all weight on one rival."""
    return Certificate(np.array([rival]), np.ones(1))


def require(proven: bool, claim: str) -> None:
    """Stop the run when evidence of our own making does not hold."""
    if not proven:
        raise EvidenceError(f"{claim} This is a bug in argmaxable, not in your model; please report it.")


def _is_well_formed(certificate: Certificate, class_id: int, classes: int) -> bool:
    ids, weights = certificate.classes, certificate.weights
    return bool(
        len(ids) == len(weights) > 0
        and 0 <= certificate.basis <= len(ids)
        and (ids >= 0).all()
        and (ids < classes).all()
        and (ids != class_id).all()
        and len(np.unique(ids)) == len(ids)
        and np.isfinite(weights).all()
        and (weights >= 0).all()
        and math.isfinite(weights.sum())
        and weights.sum() > 0
    )


def _blocks(count: int, width: int) -> list[slice]:
    step = max(1, _BLOCK_SCORES // max(1, width))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _view(gaps: Gaps, block: slice) -> Gaps:
    return Gaps(gaps.lower[block], gaps.rival[block], gaps.strength[block])
