"""What a point proves about a class's largest probability: at least what it has there, and by convexity
at most what the tangent there allows. The only module whose word makes a ceiling; it needs no solver.

With F(x) = log Σ_{i≠c} exp((s_i(x) − s_c(x))/T) the probability of c is 1/(1 + e^F). F is convex, so for
any y, u = −T∇F(y) and every x of X:  F(x) ≥ F(y) + (u·y − h_X(u))/T.  All roundings are bounded: ε is UNIT,
the error of one, γ_n that of n (exact/rounding.py). A bound is itself computed, so it has room for that too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks, row_blocks
from argmaxable.exact.exponential import exp_bounds
from argmaxable.exact.rounding import TINY, UNIT, gamma, length_bounds

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Ids, Matrix, Vector

# Log-odds held at a time: 16 MB in float64, of which a handful of temporaries is made.
_BLOCK = 1 << 21
# Roundings that a score meets besides its dot product (centring, bias, difference, temperature), with room.
_EXTRA_ROUNDINGS = 12


@dataclass(frozen=True, eq=False)
class _Odds:
    """log P_i/P_c of all classes (n × classes; −∞ for c itself) at points, with bounds on their errors."""

    classes: Ids
    x: Matrix
    misplaced: Matrix
    values: Matrix
    errors: Matrix


class CeilingChecker:
    """Bounds on probabilities of the classes of one checker's head, over its domain."""

    def __init__(self, checker: Checker, *, temperature: float = 1.0) -> None:
        self.checker, self.temperature = checker, temperature
        self.head, self.domain = checker.head, checker.domain

    def reached(self, classes: Ids, points: Matrix) -> Vector:
        """Lower bounds on each class's probability at its point z (n × features); 0 outside the domain."""
        lower = np.zeros(len(classes))
        for block in blocks(len(classes), self.head.classes, _BLOCK):
            with np.errstate(all="ignore"):
                lower[block] = _reached(self._odds(classes[block], points[block]))
        return np.where(self.domain.contains(points), lower, 0.0)

    def allowed(self, classes: Ids, points: Matrix) -> Vector:
        """Upper bounds on each class's probability at every x of the domain, by the tangent at its point."""
        upper = np.ones(len(classes))
        for block in blocks(len(classes), self.head.classes, _BLOCK):
            with np.errstate(all="ignore"):
                upper[block] = self._allowed(self._odds(classes[block], points[block]))
        return upper

    def mass_above(self, classes: Ids, points: Matrix) -> Vector:
        """Upper bounds on the probability that classes at least as likely as each have at its point
        together, itself left out; 1 outside the domain."""
        mass = np.ones(len(classes))
        for block in blocks(len(classes), self.head.classes, _BLOCK):
            with np.errstate(all="ignore"):
                mass[block] = _mass_above(self._odds(classes[block], points[block]))
        return np.where(self.domain.contains(points), mass, 1.0)

    def _odds(self, classes: Ids, points: Matrix) -> _Odds:
        scores, head = self.checker.scores, self.head
        index = np.arange(len(classes))
        x, misplaced = self.domain.place(points)
        values = np.empty((len(classes), head.classes))
        for block in row_blocks(head.classes, head.features):
            values[:, block] = x @ (head.rows(block) - scores.centre).T + scores.biases[block]
        errors = self._score_errors(x, misplaced)
        values = (values - values[index, classes][:, None]) / self.temperature
        errors = (errors + errors[index, classes][:, None]) / self.temperature
        # Up to the exponential a value is rounded three times (difference, quotient, sum with its error): γ_4
        # and an error at most seven times (quotient, product, sums): 8ε. A quotient underflows by TINY.
        errors = errors * (1 + 8 * UNIT) + gamma(4) * np.abs(values) + TINY
        errors[~np.isfinite(values)] = np.inf
        values[index, classes], errors[index, classes] = -np.inf, 0.0
        return _Odds(classes, x, misplaced, values, errors)

    def _score_errors(self, x: Matrix, misplaced: Matrix) -> Matrix:
        """Bounds on the errors of scores (n × classes) formed in any order (Cauchy-Schwarz).

        A dot product takes γ_d; centring row and bias and adding it takes 3 roundings, this bound 6 more:
        γ_{d+12} of ‖w‖‖x‖ + |b| covers all. A misplaced x adds ‖w‖ times its distance; the bounds on lengths
        have the room that this product needs. Products and centred rows underflow by TINY each.
        """
        scores, features = self.checker.scores, self.head.features
        length, astray = length_bounds(x)[:, None], length_bounds(misplaced)[:, None]
        size = scores.norms * length + np.abs(scores.biases)
        underflow = 2 * features * TINY * (1 + np.abs(x).max(axis=1, keepdims=True))
        relative = gamma(features + _EXTRA_ROUNDINGS)
        bound = relative * size + scores.norms * astray + underflow * (1 + scores.norms)
        return np.asarray(np.where(np.isfinite(bound), bound, np.inf))

    def _allowed(self, odds: _Odds) -> Vector:
        head, count = self.head, self.head.classes
        top = odds.values.max(axis=1, keepdims=True)  # e^v may overflow, e^(v − top) can't
        if count == 1:
            return np.ones(len(odds.classes))
        values = odds.values - top
        # Two roundings more: this difference, and its sum with the error.
        errors = odds.errors + gamma(2) * (np.abs(odds.values) + np.abs(top))
        errors[np.arange(len(values)), odds.classes] = 0.0
        low, _ = exp_bounds(values - errors)
        _, high = exp_bounds(values + errors)
        # Sums of C terms, each positive: γ_C, and three roundings for the product and its factor.
        least = low.sum(axis=1, keepdims=True) * (1 - gamma(count + 4))
        most = high.sum(axis=1, keepdims=True) * (1 + gamma(count + 4))
        # The weights λ = softmax are between low/most and high/least, and so are those used: the doubt D is
        # the difference. Its quotients are at most weights + D, and three roundings are below γ_8 of that.
        weights = high / most
        doubt = (high / least - low / most) * (1 + gamma(8)) + gamma(8) * weights + TINY
        u, slack = self._slopes(odds.classes, weights, doubt)
        # u·y from below: γ_d of |u||x| for the dot product, 6 roundings more for what is taken off; slack|x|
        # and (|u| + slack) misplaced for what u and x may be off. Products underflow by TINY each.
        along = (u * odds.x).sum(axis=1) - 2 * head.features * TINY
        along -= ((gamma(head.features + 6) * np.abs(u) + slack) * np.abs(odds.x)).sum(axis=1) * (
            1 + gamma(head.features + 8)
        )
        along -= ((np.abs(u) + slack) * odds.misplaced).sum(axis=1) * (1 + gamma(head.features + 8))
        support = self.domain.support_bound(u, slack)
        # Difference, quotient and what is taken off: three roundings each here and in the exponent.
        drop = (along - support) / self.temperature
        drop -= gamma(8) * (np.abs(along) + np.abs(support)) / self.temperature + TINY
        exponent = top[:, 0] + drop - gamma(4) * (np.abs(top[:, 0]) + np.abs(drop))
        share, _ = exp_bounds(exponent)
        # Two products, then a sum and a quotient.
        odds_against = least[:, 0] * share * (1 - gamma(4))
        upper = np.minimum(1.0, (1 + 8 * UNIT) / (1 + odds_against))
        sound = np.isfinite(exponent) & np.isfinite(u).all(axis=1) & np.isfinite(slack).all(axis=1)
        return np.where(sound & np.isfinite(odds_against), upper, 1.0)

    def _slopes(self, classes: Ids, weights: Matrix, doubt: Matrix) -> tuple[Matrix, Matrix]:
        """u = Σ λ_i (w_c − w_i), Σλ = 1, for weights within their doubts; and bounds on its errors.

        A combination of C rows takes γ_C, centring and subtracting from the own row 3 roundings: γ_{C+8} of
        λ|w_i| and |w_c|, once more for the sums of the slack itself. Its products and those of u underflow.
        """
        head, centre = self.head, self.checker.centre
        own = head.rows(classes) - centre
        relative = gamma(head.classes + 8)
        u, slack = own.copy(), relative * np.abs(own) + TINY
        for block in row_blocks(head.classes, head.features):
            rows = head.rows(block) - centre
            u -= weights[:, block] @ rows
            slack += (doubt[:, block] + relative * weights[:, block]) @ np.abs(rows)
        return u, slack * (1 + relative) + head.classes * TINY


def _reached(odds: _Odds) -> Vector:
    """1/(1 + Σ e^v), rounded down: γ_{C+4} for a sum of C positive terms and its product, 8ε for a sum and a
    quotient."""
    _, high = exp_bounds(odds.values + odds.errors)
    high[np.arange(len(high)), odds.classes] = 0.0
    against = high.sum(axis=1) * (1 + gamma(high.shape[1] + 4))
    return np.asarray((1 - 8 * UNIT) / (1 + against))


def _mass_above(odds: _Odds) -> Vector:
    """Σ e^v over classes that may be above, over 1 + all; more of those above or less below makes it more.

    γ_{C+8} for sums of up to C positive terms and their products, 16ε for the five roundings of the quotient.
    """
    low, _ = exp_bounds(odds.values - odds.errors)
    _, high = exp_bounds(odds.values + odds.errors)
    surely_below = odds.values + odds.errors < 0
    surely_below[np.arange(len(high)), odds.classes] = False
    high[np.arange(len(high)), odds.classes] = 0.0
    relative = gamma(high.shape[1] + 8)
    above = np.where(surely_below, 0.0, high).sum(axis=1) * (1 + relative)
    below = np.where(surely_below, low, 0.0).sum(axis=1) * (1 - relative)
    mass = 1 / (1 + (1 + below) / above) * (1 + 16 * UNIT)
    return np.where(np.isfinite(mass), np.where(above == 0, 0.0, np.minimum(mass, 1.0)), 1.0)


def never_enters(upper: float, classes: int, top_p: float) -> bool:
    """Whether a ceiling K keeps a class out of the nucleus: it and the classes not above it have at most K
    each, so those above have at least 1 − C·K ≥ p at every input. Exact."""
    return 1 - classes * Fraction(upper) >= Fraction(top_p)
