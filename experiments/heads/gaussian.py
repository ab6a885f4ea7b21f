"""How many classes a head of normal numbers is expected to lose, by a formula.

The rows are the vertices of a regular simplex seen from a random side: their hull is a Gaussian polytope,
whose expected number of vertices is known (Affentranger & Schneider 1992, Baryshnikov & Vitale 1994).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import erfcx, gammaln, log_ndtr, logsumexp

# Terms of the sum that the expected number is: later ones are below any float where they matter.
_TERMS = 250


def expected_unargmaxable(classes: int, features: int, *, has_bias: bool) -> float:
    """The expected number of unargmaxable classes of a normal head, over all of space.

    Without bias n classes lose 2·(T_{d+2} + T_{d+4} + …) of theirs, those inside the polytope, where
    T_m = m·C(n, m)·β_m·γ_m: the regular simplex of m vertices has the angle β_m at each of them, and the
    outer angle γ_m as a face of the one with n. With a bias, normal as well, the vertices of the upper hull
    of the rows (w, b) win: half of those of the polytope in d + 1 dimensions and half of those in d. So
    T_{d+2} + T_{d+3} + … are unargmaxable.
    """
    first, last = features + 2, min(classes, features + _TERMS)
    if has_bias:
        return sum(_term(classes, m) for m in range(first, last + 1))
    return 2 * sum(_term(classes, m) for m in range(first, last + 1, 2))


@cache
def _term(n: int, m: int) -> float:
    faces = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return float(np.exp(np.log(m) + faces + log_inner_angle(m) + _log_outer_angle(m, n)))


def log_inner_angle(m: int) -> float:
    """Log of the solid angle at a vertex of the regular simplex with m vertices, as a share of the sphere.

    √(m/2π) ∫ exp(m y²/2) Φ(y)^(m−1) dy along a vertical line (Kabluchko & Zaporozhets 2020 have it on the
    imaginary axis, where it cancels to nothing); through the saddle at y ≈ −√(m − 1) hardly anything cancels.
    """
    t = np.linspace(-12, 12, 4801)
    y = -np.sqrt(max(m - 1, 1)) + 1j * t
    # exp(y²/2) Φ(y) = erfcx(−y/√2)/2 neither overflows nor underflows.
    logs = y * y / 2 + (m - 1) * np.log(erfcx(-y / np.sqrt(2)) / 2)
    top = logs.real.max()
    total = np.exp(logs - top).real.sum() * (t[1] - t[0]) * np.sqrt(m / (2 * np.pi))
    return float(top + np.log(total))


def _log_outer_angle(m: int, n: int) -> float:
    """log E Φ(Z/√m)^(n−m): the outer angle at a face of m vertices of the regular simplex with n."""
    u = np.linspace(-12, 12, 4801)
    total = logsumexp(-m * u * u / 2 + (n - m) * log_ndtr(u))
    return float(total + np.log((u[1] - u[0]) * np.sqrt(m / (2 * np.pi))))
