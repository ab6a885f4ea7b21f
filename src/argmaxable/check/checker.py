"""Re-checks evidence, exactly and without a solver: the only module whose word makes a verdict.

A witness z is checked by the class's smallest gap to any rival there (scores.py); a certificate λ by weak
duality, h_X(u) + Σ λ_i (b_c − b_i) ≤ 0 with u = Σ λ_i (w_c − w_i). Floats are used only together
with a proven bound on their rounding; what they can't decide is decided in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from argmaxable.check.solutions import Equations, exact_weights, with_independent_basis
from argmaxable.check.witnesses import Gaps, Scores
from argmaxable.compute.blocks import point_blocks, row_blocks
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.errors import EvidenceError
from argmaxable.core.head import Head
from argmaxable.core.verdict import Certificate, FinePoint, OwnDirection, Strength, Witness
from argmaxable.exact.dyadic import Dyadic, round_up
from argmaxable.exact.rounding import TINY, UNIT, gamma


@dataclass(frozen=True, slots=True)
class Bound:
    """What a certificate proves: t* ≤ `upper` (infinite when it proves nothing)."""

    upper: float
    strength: Strength


_NOTHING = Bound(math.inf, Strength.EXACT)
# Sets of rows whose common part of the proofs is remembered; each takes a few numbers for a row.
_EQUATIONS_KEPT = 16


class Checker:
    """Checks evidence about the classes of one head over one domain."""

    def __init__(
        self,
        head: Head | PreparedHead,
        domain: Domain,
        *,
        centre: Vector | None = None,
        without: Ids | None = None,
    ) -> None:
        """`centre` is the one that own-direction witnesses refer to (None: of this head's own). Gaps leave
        out the rivals `without`, which must not be asked about themselves."""
        self.prepared = prepared(head, centre)
        self.head, self.domain, self.centre = self.prepared.head, domain, self.prepared.centre
        domain.require_features(self.head.features)
        self.scores = Scores(self.prepared, domain, without)
        self._known_equations: dict[tuple[int, bytes], Equations] = {}

    @property
    def point_size(self) -> int:
        """How many entries a point z of the domain has."""
        return self.domain.point_size(self.head.features)

    def rebuild(self, classes: Ids, exponents: Ids) -> Matrix:
        """Own-direction witnesses z = 2^exponent · gain ∘ (w_c − centre), clipped to a box."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.domain.own_points(self.head.rows(classes) - self.centre, exponents)

    def point(self, class_id: int, witness: Witness) -> Vector:
        """The vector z a witness stands for."""
        if isinstance(witness, OwnDirection):
            return np.asarray(self.rebuild(np.array([class_id]), np.array([witness.exponent]))[0])
        return witness.values

    def fine_gap(self, class_id: int, point: FinePoint) -> float:
        """The proven gap of a class at a point that float64 is too coarse for; −∞ outside the domain."""
        return self.scores.exact_gap(class_id, Dyadic(np.array(point.integers, dtype=object), point.exponent))

    def gaps(self, classes: Ids, points: Matrix, *, claims: Vector | None = None) -> Gaps:
        """The proven gap of each class at its point (n × features); −∞ outside the domain.

        Arithmetic gets more exact where a sign, or a claimed lower bound, can't be told otherwise.
        """
        return self.scores.gaps(classes, points, claims=claims)

    def own_gaps(
        self, classes: Ids, exponents: Ids, *, claims: Vector | None = None
    ) -> Iterator[tuple[Ids, Gaps]]:
        """The gaps of classes, in ascending order, at their own-direction witnesses: for some of the classes
        (given by their positions) at a time, until all have been answered."""
        plain = self._is_plain(classes, exponents)
        for mutual, positions in ((True, np.flatnonzero(plain)), (False, np.flatnonzero(~plain))):
            some = None if claims is None else claims[positions]
            found = self.scores.own_gaps if mutual else self._gaps_in_blocks
            for block, gaps in found(classes[positions], exponents[positions], claims=some):
                yield positions[block], gaps

    def _is_plain(self, classes: Ids, exponents: Ids) -> Mask:
        """Whether the witnesses z are multiples of rows as z sees them, not clipped, and x = gain ∘ z."""
        plain = np.zeros(len(classes), bool)
        domain, features = self.domain, self.head.features
        if not domain.has_features or domain.removes_mean or domain.shifts(features).any():
            return plain
        for block in row_blocks(len(classes), features):
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                rows = domain.rows_seen(self.head.rows(classes[block]) - self.centre)
                plain[block] = domain.contains(np.ldexp(rows, exponents[block, None]))
        return plain

    def _gaps_in_blocks(
        self, classes: Ids, exponents: Ids, *, claims: Vector | None
    ) -> Iterator[tuple[slice, Gaps]]:
        for block in point_blocks(len(classes), self.head.features):
            some = None if claims is None else claims[block]
            yield (
                block,
                self.gaps(classes[block], self.rebuild(classes[block], exponents[block]), claims=some),
            )

    def bound(self, class_id: int, certificate: Certificate) -> Bound:
        """The upper bound on the class's margin that the certificate proves."""
        if not is_well_formed(certificate, class_id, self.head.classes):
            return _NOTHING
        if certificate.whole:
            return self._exact_bound(class_id, certificate.classes, _whole_weights(certificate), math.inf)
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
        is_literal = not (certificate.basis or certificate.whole)
        if not is_literal or not is_well_formed(certificate, -1, self.head.classes):
            return np.full(len(classes), math.inf)
        uppers = self._float_bounds(classes, certificate)
        uppers[np.isin(classes, certificate.classes)] = math.inf
        return uppers

    def _float_bounds(self, classes: Ids, certificate: Certificate) -> Vector:
        weights = certificate.weights
        # Of n terms: a total and a dot product round n times each at most, a row's centring, a product and a
        # difference once each. What underflows is at most TINY a term.
        relative = gamma(len(weights) + 8)
        total = float(weights.sum())
        underflow = len(weights) * TINY
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            own = self.head.rows(classes) - self.centre
            rows = self.head.rows(certificate.classes) - self.centre
            u = total * own - weights @ rows
            error = relative * (total * np.abs(own) + weights @ np.abs(rows)) + underflow
            mine, theirs = self.scores.biases[classes], self.scores.biases[certificate.classes]
            offset = total * mine - weights @ theirs
            slack = relative * (total * np.abs(mine) + float(weights @ np.abs(theirs))) + underflow
            value = self.domain.support_bound(u, error)
            upper = (value + offset + slack) / total
            # The total is rounded too, and a quotient that underflows by as much as anything can.
            upper += relative * (np.abs(value) + np.abs(offset) + slack) / total + TINY
        sound = np.isfinite(upper) & np.isfinite(u).all(axis=1) & np.isfinite(error).all(axis=1)
        return np.where(sound, upper, math.inf)

    def rival_bounds(self, classes: Ids, rivals: Ids) -> Vector:
        """Upper bounds on the margins from one rival each: t* ≤ h_X(w_c − w_i) + b_c − b_i."""
        uppers = np.empty(len(classes))
        for block in row_blocks(len(classes), self.head.features):
            mine, theirs = self.scores.biases[classes[block]], self.scores.biases[rivals[block]]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                u = self.head.rows(classes[block]) - self.head.rows(rivals[block])  # one rounding: γ_2
                value = self.domain.support_bound(u, gamma(2) * np.abs(u) + TINY)
                # Biases are centred (one rounding each), then two sums and the slack's own.
                slack = gamma(8) * (np.abs(mine) + np.abs(theirs) + np.abs(value))
                bound = value + (mine - theirs) + slack
            sound = np.isfinite(bound) & np.isfinite(u).all(axis=1)
            uppers[block] = np.where(sound, bound, math.inf)
        return uppers

    def proves(self, class_id: int, certificate: Certificate, claim: float) -> bool:
        """Whether the certificate proves t* ≤ claim; exact where floats can't tell."""
        return self.bound(class_id, certificate).upper <= claim or self._proves_exactly(
            class_id, certificate, claim
        )

    def proves_in_rationals(self, class_id: int, certificate: Certificate) -> bool:
        """Whether the certificate proves t* ≤ 0 by integers and rationals alone, which may take minutes."""
        if not is_well_formed(certificate, class_id, self.head.classes):
            return False
        if not certificate.whole:
            certificate = with_independent_basis(self.head, self.domain, certificate)
        return self._proves_exactly(class_id, certificate, 0.0)

    def _proves_exactly(self, class_id: int, certificate: Certificate, claim: float) -> bool:
        if not math.isfinite(claim) or not is_well_formed(certificate, class_id, self.head.classes):
            return False
        weights: Dyadic | None = Dyadic.of(certificate.weights)
        if certificate.whole:
            weights = _whole_weights(certificate)
        elif certificate.basis:
            weights = exact_weights(self.head, self.domain, class_id, certificate)
        if weights is None:
            return False
        u, offset = self._direction(class_id, certificate.classes, weights)
        return self.domain.support_is_at_most(u, Dyadic.of(claim) * weights.sum() - offset)

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
        return exact_bound(self.domain, u, offset, weights.sum().fraction(), upper)

    def _bound_by_solution(self, class_id: int, certificate: Certificate) -> Bound:
        """Exact weights next to the stored ones: shown to exist, or else computed as rationals."""
        if certificate.coordinates is None:
            upper = float(self.bounds_together(np.array([class_id]), [certificate])[0])
            if upper <= 0:
                return Bound(upper, Strength.INTERVAL)
        weights = exact_weights(self.head, self.domain, class_id, certificate)
        if weights is None:
            return _NOTHING
        return self._exact_bound(class_id, certificate.classes, weights, math.inf)

    def bounds_together(self, classes: Ids, certificates: Sequence[Certificate]) -> Vector:
        """Upper bounds that certificates, one for each class, prove by float64; all with the same rows and
        the same basis, and no coordinates left out."""
        uppers = np.full(len(classes), math.inf)
        sound = [
            k for k, c in enumerate(classes.tolist()) if is_well_formed(certificates[k], c, self.head.classes)
        ]
        if not sound:
            return uppers
        equations = self._equations(certificates[0].classes, certificates[0].basis)
        shifts = equations.errors(classes[sound], np.stack([certificates[k].weights for k in sound]))
        for k, shift in zip(sound, shifts.tolist(), strict=True):
            if shift < math.inf:
                uppers[k] = self._bound_near(int(classes[k]), certificates[k], shift)
        return uppers

    def _equations(self, classes: Ids, basis: int) -> Equations:
        """Kept for the certificates to come: the next one may be over the same rows."""
        classes = np.array(classes, np.int64)  # a copy of its own: the caller's may change
        key = (basis, classes.tobytes())
        if key not in self._known_equations:
            while len(self._known_equations) >= _EQUATIONS_KEPT:
                del self._known_equations[next(iter(self._known_equations))]
            self._known_equations[key] = Equations(self.head, self.domain, self.centre, classes, basis)
        return self._known_equations[key]

    def _bound_near(self, class_id: int, certificate: Certificate, shift: float) -> float:
        """Bound with u = 0 for weights whose basis part may be off by `shift` in each entry."""
        biases = self._shifted_biases(np.append(certificate.classes, class_id))
        if biases is None:
            return 0.0
        values, errors = biases
        drop = values[-1] - values[:-1]
        size = np.abs(values[-1]) + np.abs(values[:-1])
        weights, head = certificate.weights, slice(0, certificate.basis)
        # Exact weights are within `shift` of the basis part: Σ shift·|drop| more at most. The product of n
        # terms rounds n times, each difference of biases and the slack's sums a few times: γ_{n+8}. Biases
        # off by `errors` move each drop by two of them at most, times all the weight there can be.
        total = float(weights.sum())
        slack = shift * float(np.abs(drop[head]).sum())
        reach = total + certificate.basis * shift
        slack += gamma(len(drop) + 8) * (float(weights @ size) + slack)
        slack += reach * float(errors.max()) * 2 + (len(drop) + 8) * TINY
        return float(weights @ drop) + slack + 4 * UNIT * abs(float(weights @ drop))

    def _shifted_biases(self, ids: Ids) -> tuple[Vector, Vector] | None:
        """b_i + w_i·shift with error bounds; None when all are zero (no bias, no shift)."""
        shift = self.domain.shifts(self.head.features)
        biases = self.scores.biases[ids]
        if not shift.any():
            return (biases, np.abs(biases) * 2 * UNIT) if self.prepared.has_bias else None
        # d products and sums, the row's centring, the bias's, and the last sum.
        rows = self.head.rows(ids) - self.centre
        size = np.abs(rows) @ np.abs(shift) + np.abs(biases)
        return rows @ shift + biases, gamma(self.head.features + 6) * size


def exact_bound(domain: Domain, u: Dyadic, offset: Dyadic, total: Fraction, upper: float) -> Bound:
    """(h_X(u) + offset) / total in integers, or whether that is 0 or less; `upper` is known already."""
    support = domain.support_exactly(u)
    if support is not None:
        upper = min(upper, round_up((support + offset).fraction() / total))
    elif domain.support_is_at_most(u, offset * -1):
        upper = min(upper, 0.0 if u.sign().any() else round_up(offset.fraction() / total))
    return Bound(upper, Strength.EXACT)


def rival_certificate(rival: int) -> Certificate:
    """The simplest certificate: all weight on one rival."""
    return Certificate(np.array([rival]), np.ones(1))


def _whole_weights(certificate: Certificate) -> Dyadic:
    return Dyadic(np.array(certificate.whole, dtype=object), 0)


def require(proven: bool, claim: str) -> None:
    """Stop the run when evidence of our own making does not hold."""
    if not proven:
        raise EvidenceError(f"{claim} This is a bug in argmaxable, not in your model. Please report it.")


def is_well_formed(certificate: Certificate, class_id: int, classes: int) -> bool:
    """Whether these are weights ≥ 0, not all 0, on distinct classes of the head other than this one."""
    ids, weights = certificate.classes, certificate.weights
    with np.errstate(over="ignore"):
        total = float(weights.sum()) if len(weights) else 0.0
    return bool(
        len(ids) == len(weights) > 0
        and 0 <= certificate.basis <= len(ids)
        and (ids >= 0).all()
        and (ids < classes).all()
        and (ids != class_id).all()
        and len(np.unique(ids)) == len(ids)
        and np.isfinite(weights).all()
        and (weights >= 0).all()
        and 0 < total < math.inf
        and _are_weights(certificate.whole, len(ids))
    )


def _are_weights(whole: tuple[int, ...], count: int) -> bool:
    return not whole or (len(whole) == count and min(whole) >= 0 and max(whole) > 0)
