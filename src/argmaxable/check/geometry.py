"""Membership, placement and support function of every domain: in floats with proven error bounds,
and exactly. MATH: h_X(u) = sup over x in X of u·x.

A float answer here is always on the safe side: membership that is not certain is decided in
integers, a support function is never below the true one.
"""

from __future__ import annotations

import math

import numpy as np

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.domain import Ball, Box, Domain, Everywhere, LayerNorm, RMSNorm
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, UNIT, gamma


def contains(domain: Domain, points: Matrix) -> Mask:
    """Which points z (n × features) belong to the domain; exact."""
    inside = np.isfinite(points).all(axis=1)
    if isinstance(domain, Box):
        return np.asarray(inside & ((points >= domain.lo) & (points <= domain.hi)).all(axis=1))
    if isinstance(domain, Everywhere):
        return np.asarray(inside)
    features = points.shape[1]
    limit = (
        float(features) if not isinstance(domain, Ball) else domain.radius * domain.radius * (1 - 4 * UNIT)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (points * points).sum(axis=1)
    surely = squares * (1 + gamma(features + 4)) + features * TINY <= limit
    surely &= np.isfinite(squares)
    for row in np.flatnonzero(inside & ~surely):
        surely[row] = _contains_exactly(domain, points[row])
    return np.asarray(inside & surely)


def _contains_exactly(domain: Domain, point: Vector) -> bool:
    z = Dyadic.of(point)
    squares = z @ z
    if isinstance(domain, Ball):
        radius = Dyadic.of(domain.radius)
        return bool((squares - radius * radius).sign() <= 0)
    features = Dyadic.of(float(len(point)))
    if isinstance(domain, LayerNorm):  # Σ(z − mean)² ≤ d, times d
        total = z.sum()
        return bool((features * squares - total * total - features * features).sign() <= 0)
    return bool((squares - features).sign() <= 0)


def place(domain: Domain, points: Matrix) -> tuple[Matrix, Matrix]:
    """Feature vectors x of the points z, and a bound on the error of each coordinate."""
    if not isinstance(domain, RMSNorm | LayerNorm):
        return points, np.zeros_like(points)
    features = points.shape[1]
    gain, shift = domain.gains(features), domain.shifts(features)
    spread = np.abs(points)
    centred = points
    if isinstance(domain, LayerNorm):
        centred = points - points.mean(axis=1, keepdims=True)
        spread = spread + spread.mean(axis=1, keepdims=True)
    x = gain * centred + shift
    error = gamma(features + 8) * (np.abs(gain) * spread + np.abs(shift))
    error = error + features * TINY * (1 + np.abs(gain))  # underflow, magnified by the gain
    return x, error


def place_exactly(domain: Domain, point: Vector) -> tuple[Dyadic, int]:
    """(X, q) with x = X / q for one point z, in integers."""
    z = Dyadic.of(point)
    if not isinstance(domain, RMSNorm | LayerNorm):
        return z, 1
    features = len(point)
    gain, shift = Dyadic.of(domain.gains(features)), Dyadic.of(domain.shifts(features))
    if isinstance(domain, RMSNorm):
        return gain * z + shift, 1
    return gain * (z * features - z.sum()) + shift * features, features


def support_bound(domain: Domain, u: Matrix, error: Matrix) -> Vector:
    """Upper bounds on h_X over every direction within `error` of the rows of u (n × features)."""
    features = u.shape[1]
    if isinstance(domain, Everywhere):
        return np.where(u.any(axis=1) | error.any(axis=1), math.inf, 0.0)
    if isinstance(domain, Box):
        terms = np.maximum(_box_terms(domain, u - error), _box_terms(domain, u + error))
        slack = gamma(features + 4) * np.abs(terms).sum(axis=1) + features * TINY
        return np.asarray(terms.sum(axis=1) + slack)
    if isinstance(domain, Ball):
        return domain.radius * _norm_bound(np.abs(u) + error)
    return _norm_solid_bound(domain, u, error)


def _box_terms(domain: Box, u: Matrix) -> Matrix:
    lo, hi = domain.bounds(u.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        # 0·∞ counts as 0: a direction that does not move in a feature is not rewarded for it.
        return np.where(u > 0, hi * u, np.where(u < 0, lo * u, 0.0))


def _norm_bound(v: Matrix) -> Vector:
    features = v.shape[1]
    with np.errstate(over="ignore"):
        length = np.sqrt((v * v).sum(axis=1)) * (1 + gamma(features + 4))
    return np.asarray(length + features * math.sqrt(TINY))


def _norm_solid_bound(domain: Domain, u: Matrix, error: Matrix) -> Vector:
    assert isinstance(domain, RMSNorm | LayerNorm)
    features = u.shape[1]
    gain, shift = domain.gains(features), domain.shifts(features)
    moved = shift * u
    linear = moved.sum(axis=1) + gamma(features + 4) * np.abs(moved).sum(axis=1)
    linear += (np.abs(shift) * error).sum(axis=1) * (1 + gamma(features + 4))
    v = gain * u
    slack = np.abs(gain) * error + gamma(4) * np.abs(v) + TINY
    if isinstance(domain, LayerNorm):  # removing the mean shrinks the slack, so it may stay
        slack = slack + gamma(features + 4) * np.abs(v).mean(axis=1, keepdims=True)
        v = v - v.mean(axis=1, keepdims=True)
        slack = slack + gamma(2) * np.abs(v)
    curved = math.sqrt(features) * (1 + 4 * UNIT) * (_norm_bound(v) + _norm_bound(slack))
    return np.asarray(linear + curved + gamma(4) * (np.abs(linear) + curved))


def support_is_at_most(domain: Domain, u: Dyadic, limit: Dyadic) -> bool:
    """Whether h_X(u) ≤ limit, exactly."""
    if isinstance(domain, Everywhere):
        return not u.sign().any() and bool(limit.sign() >= 0)
    if isinstance(domain, Box):
        value = box_support(domain, u)
        return value is not None and bool((value - limit).sign() <= 0)
    if isinstance(domain, Ball):
        radius = Dyadic.of(domain.radius)
        return _root_is_at_most((u @ u) * radius * radius, limit)
    assert isinstance(domain, RMSNorm | LayerNorm)
    features = len(u.integers)
    v = scaled_rows(domain, u)
    squares = (v @ v) * features
    if isinstance(domain, LayerNorm):  # d‖Πv‖² = d‖v‖² − (Σv)²
        squares = squares - v.sum() * v.sum()
    return _root_is_at_most(squares, limit - Dyadic.of(domain.shifts(features)) @ u)


def box_support(domain: Box, u: Dyadic) -> Dyadic | None:
    """h_X(u) of a box, exactly; None when infinite."""
    lo, hi = domain.bounds(len(u.integers))
    sign = u.sign()
    bound = np.where(sign > 0, hi, np.where(sign < 0, lo, 0.0))
    return u @ Dyadic.of(bound) if np.isfinite(bound).all() else None


def _root_is_at_most(square: Dyadic, limit: Dyadic) -> bool:
    return bool(limit.sign() >= 0) and bool((square - limit * limit).sign() <= 0)


def scaled_rows(domain: Domain, rows: Dyadic) -> Dyadic:
    """Rows in the coordinates of z: gain ∘ w for the norm solids, w itself elsewhere."""
    if isinstance(domain, RMSNorm | LayerNorm):
        return rows * Dyadic.of(domain.gains(rows.integers.shape[-1]))
    return rows
