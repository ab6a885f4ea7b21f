"""The least cross-entropy that a head with fixed weights can have on a target distribution.

Theorem 2 of Ganea et al. 2019: the infimum over h of H(P*, Q_h) is the maximum of H(R) over all
distributions R with E_R[w] = E_P*[w]; with a bias, of H(R) + E_R[b] − E_P*[b]. Both sides come out of one
Newton iteration: from the iterate h, and from the distribution R that solves the constraints linearised
around Q_h. They enclose the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, log_softmax, xlogy

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head

if TYPE_CHECKING:
    from argmaxable.core.arrays import Mask, Matrix, Vector

# Far below the 1e-8 that is promised, and above what rounding leaves of a difference of entropies.
_GAP = 1e-10
_MOST_STEPS = 200
# A Newton step towards a minimum changes logits less and less, one towards infinity by about 1 each time.
_RESTLESS = 0.1
# Numbers that the Hessians of one batch of targets may need: 8 MB, so that they stay in a cache.
_BATCH = 2**20
_ARMIJO = 1e-4
# A probability whose share of the loss is below float64's rounding, whatever its logit.
_ABSENT = 1e-18
_MOST_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class LeastCrossEntropy:
    """For each target: the cross-entropy reached (`primal`), the entropy that bounds it from below
    (`dual`), and what reached them.

    `residual` is how far R is from meeting its constraints, max |E_R[w] − E_P*[w]|: rounding.
    `is_attained` is False where no h attains the infimum, as far as float64 can tell: h grows without
    end, since the target has zeros and its E_P*[w] lies on the rim of the weights' hull. The values are
    right there too, h is only on its way.
    """

    primal: Vector
    dual: Vector
    h: Matrix  # targets × features
    distribution: Matrix  # R, targets × classes
    residual: Vector
    is_attained: Mask

    @property
    def gap(self) -> Vector:
        """The duality gap: the infimum lies within so much of both values."""
        return self.primal - self.dual


def least_cross_entropy(head: Head, targets: ArrayLike, *, gap: float = _GAP) -> LeastCrossEntropy:
    """Solve Theorem 2 for every target (targets × classes) until the gap is closed, or nothing improves.

    Raises InputError unless the targets are distributions over the head's classes.
    """
    wanted = _distributions(targets, head.classes)
    space = _Space.of(head)
    size = max(1, _BATCH // max(1, head.classes * space.basis.shape[1]))
    parts = [_solve(space, wanted[start : start + size], gap) for start in range(0, len(wanted), size)]
    coordinates, primal, dual, distribution, is_attained = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    residual = np.abs((distribution - wanted) @ head.rows(slice(None))).max(axis=1)
    return LeastCrossEntropy(
        primal, dual, coordinates @ space.back, distribution, residual, is_attained.astype(bool)
    )


def by_features(head: Head, targets: ArrayLike, dims: Sequence[int], *, gap: float = _GAP) -> Matrix:
    """The least cross-entropy with the first d features alone (dims × targets).

    It never rises with d (Corollary 2.1), and with C features of full rank, or C − 1, it is H(P*)
    (Corollary 2.2).
    """
    if not all(1 <= d <= head.features for d in dims):
        raise InputError(f"the head has 1 to {head.features} features to keep, found {list(dims)}.")
    heads = (Head(head.weight[:, :d], head.bias) for d in dims)
    return np.stack([least_cross_entropy(each, targets, gap=gap).primal for each in heads])


# ---------------------------------------------------------------------- how near two distributions are


def entropy(p: ArrayLike) -> Vector:
    """H(P) in nats, of each row."""
    values: Vector = entr(np.asarray(p, dtype=np.float64)).sum(axis=-1)
    return values


def cross_entropy(p: ArrayLike, log_q: ArrayLike) -> Vector:
    """H(P, Q) = −Σ p log q in nats, of each row; infinite where Q lacks a class that P has."""
    p, log_q = np.asarray(p, dtype=np.float64), np.asarray(log_q, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        terms = np.where(p > 0, -p * log_q, 0.0)
    values: Vector = terms.sum(axis=-1)
    return values


def kl_divergence(p: ArrayLike, log_q: ArrayLike) -> Vector:
    """KL(P ‖ Q) = H(P, Q) − H(P), of each row."""
    return cross_entropy(p, log_q) - entropy(p)


def mode_matching(p: ArrayLike, log_q: ArrayLike) -> float:
    """The share of contexts whose most likely class the model gets right (eq. 10). Where P has several most
    likely classes, any of them counts; where Q has, it must have none that P has not."""
    p, log_q = np.asarray(p, dtype=np.float64), np.asarray(log_q, dtype=np.float64)
    first = p == p.max(axis=-1, keepdims=True)
    said = log_q == log_q.max(axis=-1, keepdims=True)
    return float((~(said & ~first).any(axis=-1)).mean())


# ---------------------------------------------------------------------- Newton's method


@dataclass(frozen=True, eq=False)
class _Space:
    """The logits that the head can have: U θ + b, U orthonormal and free of constants (classes × rank).

    Directions of h that change no distribution are gone, so that Hessians are regular; `back` leads from
    θ to h.
    """

    basis: Matrix
    bias: Vector
    back: Matrix

    @staticmethod
    def of(head: Head) -> _Space:
        weight = head.rows(slice(None))
        left, values, right = np.linalg.svd(weight - weight.mean(axis=0), full_matrices=False)
        kept = values > max(weight.shape) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
        return _Space(left[:, kept], head.biases(), right[kept] / values[kept, None])


def _distributions(targets: ArrayLike, classes: int) -> Matrix:
    wanted = np.atleast_2d(np.asarray(targets, dtype=np.float64))
    if wanted.ndim != 2 or wanted.shape[1] != classes or not len(wanted):
        raise InputError(f"expected targets × {classes} classes, found shape {wanted.shape}.")
    wrong = ~((wanted >= 0).all(axis=1) & (np.abs(wanted.sum(axis=1) - 1) < 1e-6))
    if wrong.any():
        raise InputError(
            f"target {int(np.argmax(wrong))} is not a distribution: entries must be ≥ 0 and add up to 1."
        )
    normalised: Matrix = wanted / wanted.sum(axis=1, keepdims=True)
    return normalised


def _solve(space: _Space, wanted: Matrix, gap: float) -> tuple[Matrix, Vector, Vector, Matrix, Mask]:
    """θ, both values, R and whether a minimum is attained, for a batch of targets."""
    count, rank = len(wanted), space.basis.shape[1]
    theta = np.zeros((count, rank))
    best_dual = np.full(count, -np.inf)
    best = np.array(wanted)
    change = np.zeros(count)
    active = np.arange(count)
    primal = _loss(space, theta, wanted)
    for _ in range(_MOST_STEPS):
        now = theta[active]
        q = np.exp(log_softmax(now @ space.basis.T + space.bias, axis=1))
        step, moves = _newton(space, q, wanted[active])
        dual, feasible = _dual(space, now, q, moves, wanted[active])
        better = dual > best_dual[active]
        best_dual[active[better]], best[active[better]] = dual[better], feasible[better]
        change[active] = np.abs(moves).max(axis=1, initial=0.0)
        open_ = primal[active] - best_dual[active] > gap
        after, loss = _search(space, now[open_], step[open_], moves[open_], wanted[active[open_]])
        going = active[open_]
        moved = loss < primal[going]
        theta[going[moved]], primal[going[moved]] = after[moved], loss[moved]
        active = going[moved]
        if not len(active):
            break
    # A target without zeros has E_P*[w] inside the weights' hull, where a minimum is always attained.
    return theta, primal, best_dual, best, (change < _RESTLESS) | (wanted > 0).all(axis=1)


def _loss(space: _Space, theta: Matrix, wanted: Matrix) -> Vector:
    """H(P*, Q)."""
    return cross_entropy(wanted, log_softmax(theta @ space.basis.T + space.bias, axis=1))


def _newton(space: _Space, q: Matrix, wanted: Matrix) -> tuple[Matrix, Matrix]:
    """Newton's step δ (to be taken from θ) and how it moves the logits, their mean under Q removed."""
    gradient, means = (q - wanted) @ space.basis, q @ space.basis
    hessian = (q[:, None, :] * space.basis.T) @ space.basis - means[:, :, None] * means[:, None, :]
    # Nearly flat directions of a minimum at infinity: enough that the solver finds a pivot.
    ridge = np.finfo(np.float64).eps * np.trace(hessian, axis1=1, axis2=2) + np.finfo(np.float64).tiny
    eye = np.eye(hessian.shape[1])
    step = np.linalg.solve(hessian + ridge[:, None, None] * eye, gradient[:, :, None])[:, :, 0]
    moves = step @ space.basis.T
    return step, moves - (q * moves).sum(axis=1, keepdims=True)


def _dual(space: _Space, theta: Matrix, q: Matrix, moves: Matrix, wanted: Matrix) -> tuple[Vector, Matrix]:
    """R = Q ∘ (1 − moves), whose E_R[w] is E_P*[w] by the choice of the step, and its entropy.

    −∞ where a probability would be negative: R is no distribution then, and bounds nothing. Rounding leaves
    E_R[w] off by some ρ; then H(P*, Q_h) ≥ dual + ρ·θ, so that much is taken off.
    """
    r = q * (1 - moves)
    # A minimum at infinity wants R = 0 where Q > 0 is left: rounding may fall on the wrong side of it.
    is_one = (r >= -1e-15).all(axis=1)
    r = np.maximum(r, 0.0)
    r /= r.sum(axis=1, keepdims=True)
    off = np.linalg.norm((r - wanted) @ space.basis, axis=1) * np.linalg.norm(theta, axis=1)
    value = -xlogy(r, r).sum(axis=1) + (r - wanted) @ space.bias - off
    return np.where(is_one, value, -np.inf), r


def _search(
    space: _Space, theta: Matrix, step: Matrix, moves: Matrix, wanted: Matrix
) -> tuple[Matrix, Vector]:
    """Go along the step until the loss falls enough (Armijo), first the damped length log(1 + m)/m, m the
    most that a logit moves: further out, a class that is wanted may lose its curvature with its
    probability. Classes that the target lacks may fall as far as they like."""
    matters = (moves < 0) | (wanted > _ABSENT)
    reach = np.where(matters, np.abs(moves), 0.0).max(axis=1, initial=0.0)
    length = np.where(reach > 1, np.log1p(reach) / np.maximum(reach, 1.0), 1.0)
    start = _loss(space, theta, wanted)
    q = np.exp(log_softmax(theta @ space.basis.T + space.bias, axis=1))
    slope = (((q - wanted) @ space.basis) * step).sum(axis=1)
    after = theta - length[:, None] * step
    loss = _loss(space, after, wanted)
    for _ in range(_MOST_HALVINGS):
        short = loss > start - _ARMIJO * length * slope
        if not short.any():
            break
        length[short] /= 2
        after[short] = theta[short] - length[short, None] * step[short]
        loss[short] = _loss(space, after[short], wanted[short])
    return after, loss
