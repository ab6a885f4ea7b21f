"""Largest probabilities by means that share no code with the package: Clarabel's exponential cones, softmax
in float64 at many points, and balls of arbitrary precision at one.
"""

from __future__ import annotations

import math

import clarabel
import flint
import numpy as np
from numpy.typing import NDArray
from oracles import placed, rationals
from scipy import sparse

import argmaxable as am

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

GAIN, SHIFT = np.array([0.5, 2.0, 1.0]), np.array([0.3, -0.2, 0.1])
BOUNDED: dict[str, am.Domain] = {
    "box": am.Box(-3.0, 3.0),
    "wide box": am.Box(-100.0, 100.0),
    "uneven box": am.Box([-1.0, 0.0, 2.0], [2.0, 0.5, 2.0]),
    "ball": am.Ball(2.0),
    "RMSNorm": am.RMSNorm(GAIN, SHIFT),
    "LayerNorm": am.LayerNorm(GAIN, SHIFT),
}
ENDLESS: dict[str, am.Domain] = {
    "everywhere": am.Everywhere(),
    "ReLU": am.Box(0.0, np.inf),
    "mixed": am.Box([-np.inf, 0.0, -1.0], [np.inf, np.inf, 1.0]),
}
DOMAINS = BOUNDED | ENDLESS


def random_head(seed: int, classes: int = 9, features: int = 3, *, bias: bool = True) -> am.Head:
    """A head with some classes inside the hull of others."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(classes, features))
    weight[-3:] *= 0.2
    return am.Head(weight.astype(np.float32), rng.normal(size=classes).astype(np.float32) if bias else None)


def largest_probability(head: am.Head, domain: am.Domain, class_id: int, temperature: float = 1.0) -> float:
    """max P(c) over a bounded or endless domain by Clarabel, accurate to about 1e-7; 1 where it is unbounded.

    Minimises t subject to Σ y_i ≤ 1 and y_i ≥ exp((s_i − s_c)/T − t).
    """
    rivals = np.arange(head.classes) != class_id
    rows, offsets, columns = _in_z(head, domain)
    rows, offsets = rows / temperature, offsets / temperature
    above, lift = rows[rivals] - rows[class_id], offsets[rivals] - offsets[class_id]
    size, count = head.features, len(above)
    width = size + 1 + count  # x, t, y
    blocks, right = [np.r_[np.zeros(size + 1), np.ones(count)][None]], [np.ones(1)]
    cones: list[object] = [clarabel.NonnegativeConeT(1)]
    for i in range(count):
        block = np.zeros((3, width))
        block[0, :size], block[0, size] = -above[i], 1.0
        block[2, size + 1 + i] = -1.0
        blocks.append(block)
        right.append(np.array([lift[i], 1.0, 0.0]))
        cones.append(clarabel.ExponentialConeT())
    for matrix, bound, cone in columns:
        blocks.append(np.hstack([matrix, np.zeros((len(matrix), 1 + count))]))
        right.append(bound)
        cones.append(cone)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((width, width)), np.eye(width)[size], sparse.csc_matrix(np.vstack(blocks)),
        np.concatenate(right), cones, settings,
    ).solve()  # fmt: skip
    if solution.status == clarabel.SolverStatus.DualInfeasible:
        return 1.0
    assert solution.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    return 1 / (1 + math.exp(solution.obj_val))


def _in_z(head: am.Head, domain: am.Domain) -> tuple[Matrix, Vector, list[tuple[Matrix, Vector, object]]]:
    """Rows and biases as functions of z, and the constraints on z (matrix, right-hand side, cone)."""
    rows, biases, size = head.rows(slice(None)), head.biases(), head.features
    unit = np.eye(size)
    if isinstance(domain, am.Everywhere):
        return rows, biases, []
    if isinstance(domain, am.Box):
        lo, hi = np.broadcast_to(domain.lo, size), np.broadcast_to(domain.hi, size)
        matrix = np.vstack([unit[np.isfinite(hi)], -unit[np.isfinite(lo)]])
        bound = np.concatenate([hi[np.isfinite(hi)], -lo[np.isfinite(lo)]])
        return rows, biases, [(matrix, bound, clarabel.NonnegativeConeT(len(bound)))]
    constraints: list[tuple[Matrix, Vector, object]] = []
    radius = math.sqrt(size)
    if isinstance(domain, am.Ball):
        radius = domain.radius
    else:
        assert isinstance(domain, am.RMSNorm | am.LayerNorm)
        biases = biases + rows @ domain.shifts(size)
        rows = rows * domain.gains(size)
        if isinstance(domain, am.LayerNorm):
            constraints.append((np.ones((1, size)), np.zeros(1), clarabel.ZeroConeT(1)))
    ball = np.vstack([np.zeros(size), -unit])
    constraints.append((ball, np.append(radius, np.zeros(size)), clarabel.SecondOrderConeT(size + 1)))
    return rows, biases, constraints


def random_points(domain: am.Domain, count: int, features: int, seed: int) -> Matrix:
    """Feature vectors x of the domain: inside, on its surface, and far out where it has no end."""
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(count, features)) * np.exp(rng.uniform(-4, 4, size=(count, 1)))
    if isinstance(domain, am.Box):
        return np.clip(spread, domain.lo, domain.hi)
    if isinstance(domain, am.Everywhere):
        return spread
    radius = domain.radius if isinstance(domain, am.Ball) else math.sqrt(features)
    if isinstance(domain, am.LayerNorm):
        spread -= spread.mean(axis=1, keepdims=True)
    length = np.linalg.norm(spread, axis=1, keepdims=True)
    z = spread * np.minimum(1.0, radius / length)
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        return z * domain.gains(features) + domain.shifts(features)
    return z


def probabilities(head: am.Head, x: Matrix, temperature: float = 1.0) -> Matrix:
    """The softmax at feature vectors (n × classes), in float64."""
    scores = (x @ head.rows(slice(None)).T + head.biases()) / temperature
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def exact_probability(
    head: am.Head, domain: am.Domain, class_id: int, z: Vector, temperature: float = 1.0
) -> flint.arb:
    """P(c) at the point z, as a ball of 200 bits around the true value."""
    x = placed(domain, rationals(z))
    assert x is not None, "the point is outside the domain"
    with flint.ctx.workprec(200):
        exact = [flint.fmpq(value.numerator, value.denominator) for value in x]
        scores = [
            sum((_ratio(w) * value for w, value in zip(row, exact, strict=True)), _ratio(bias))
            for row, bias in zip(head.rows(slice(None)), head.biases(), strict=True)
        ]
        heat = _ratio(temperature)
        powers = [flint.arb((score - scores[class_id]) / heat).exp() for score in scores]
        return 1 / sum(powers, flint.arb(0))


def _ratio(value: float) -> flint.fmpq:
    return flint.fmpq(*float(value).as_integer_ratio())
