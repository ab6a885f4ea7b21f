"""Rows on the trigonometric curve, and what rounding leaves of their promise.

A row ρ·(1, cos θ, sin θ, …, cos kθ, sin kθ) scores x by a trigonometric polynomial p of degree k at the
angle θ. For a set S of m ≤ k labels let q = Π (1 − cos(θ − θ_i)) over S: it is 0 on S and at least μ
elsewhere. So p = μ/2 − q is positive on S alone. Stored rows are off the curve by at most η in each entry,
and the coefficients of p add up to at most μ/2 + √2·2^m in size (each factor has 2 in exponentials; a pair
of those becomes a cosine and a sine of √2 times that). The signs stay as they are when

    μ/2 > η (μ/2 + √2·2^m).

The smallest μ over all sets of m labels is the smallest product, over a label, of its m nearest others.

Many labels on one circle are close together. They may stand on several circles instead, at one of few places
on each, so that no two labels share more than r places. Then another label shares at most rm of its q places
with the set's, so Σ q over the circles (each over the set's places there) is 0 on S and at least (q − rm) μ
elsewhere, with μ the smallest product over at most m places of a circle. With q circles the coefficients add
up to q times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxable.exact.rounding import UNIT, gamma

Matrix = NDArray[np.float64]
Places = NDArray[np.intp]


def proven_active(rows: Matrix, places: Places | None = None) -> int:
    """The largest m such that every set of at most m labels is proven feasible for the rows as stored: some x
    makes exactly its scores positive. −1 where not even the empty set is.

    Rows are labels × (1 + 2k) for one circle. With `places` (labels × circles), the numbers of each label's
    places, they are labels × (1 + 2k·circles), circle after circle.
    """
    if not (np.isfinite(rows).all() and (rows[:, 0] > 0).all()):
        return -1
    if places is None:
        places = np.arange(len(rows))[:, None]
    circles = places.shape[1]
    degree = (rows.shape[1] - 1) // (2 * circles)
    with np.errstate(all="ignore"):
        unit = rows / rows[:, :1]  # one rounding
        found = [_circle(unit, degree, number, places[:, number]) for number in range(circles)]
    shared = _most_shared(places)
    if shared is None:
        return 0  # x = (−1, 0, …) switches every label off
    proven = 0
    for size in range(1, degree + 1):
        sound = [circle for circle in found if circle is not None and circle.reaches(size)]
        spare = circles - shared * size
        if len(sound) < circles or spare < 1:
            break
        # Labels that share no place have as many there as there are of them; others may have fewer.
        fewest = size if shared == 0 else 1
        mu = spare * min(float(circle.least[fewest - 1 : size].min()) for circle in sound)
        # p has degree m, so the first 2m columns of each circle count. A quotient is off by a unit of at most
        # about 1, a point of the curve by 12 for each multiple. The bound's own roundings are far within a
        # thousandth.
        off = max(float(circle.missed[:, : 2 * size + 1].max()) for circle in sound)
        off += (12 * size + 16) * UNIT
        if not 0.999 * mu / 2 > off * (mu / 2 + 1.415 * circles * 2.0**size):
            break
        proven = size
    return proven


@dataclass(frozen=True, eq=False)
class _Circle:
    """How far rows miss the points of their places (labels × (2k + 1)), and for m = 1, 2, … the smallest
    product of 1 − cos over a place's m nearest others."""

    missed: Matrix
    least: Matrix

    def reaches(self, size: int) -> bool:
        return len(self.least) >= size


def _circle(unit: Matrix, degree: int, number: int, places: Places) -> _Circle | None:
    """A place is where the first row that stands there says it is; None where that is no angle."""
    columns = slice(1 + 2 * degree * number, 1 + 2 * degree * (number + 1))
    own = np.hstack([unit[:, :1], unit[:, columns]])
    _, first, which = np.unique(places, return_index=True, return_inverse=True)
    curve = _on_the_curve(own[first], degree)
    if curve is None:
        return None
    least = np.array(_least_products(curve[:, 1:3], degree))
    return _Circle(np.abs(own - curve[which]), least)


def _most_shared(places: Places) -> int | None:
    """0 where no two labels share a place, 1 where none share two, or where there is one circle, which spares
    none then; None where some share more."""
    circles = places.shape[1]
    if all(len(np.unique(places[:, number])) == len(places) for number in range(circles)):
        return 0
    pairs = ((one, two) for one in range(circles) for two in range(one))
    return 1 if all(len(np.unique(places[:, pair], axis=0)) == len(places) for pair in pairs) else None


def _on_the_curve(unit: Matrix, degree: int) -> Matrix | None:
    """The points of the curve at the angles of the rows' first cosine and sine, within 12 units a multiple;
    None where that is no angle, or where there is none."""
    if degree == 0:
        return None
    step = unit[:, 1] + 1j * unit[:, 2]
    length = np.abs(step)
    if not (np.abs(length - 1) < 0.5).all():
        return None
    step = step / length  # the point itself, off by 8 units
    power, columns = np.ones_like(step), [np.ones(len(unit))]
    for _ in range(degree):  # each product rounds by 3 units, and adds the 8 of the step
        power = power * step
        columns += [power.real, power.imag]
    return np.stack(columns, axis=1)


def _least_products(circle: Matrix, most: int) -> list[float]:
    """For m = 1, …, most: from below, the smallest product of 1 − cos over a label's m nearest others."""
    count = len(circle)
    if count == 1:  # no other label is near
        return []
    order = np.argsort(np.arctan2(circle[:, 1], circle[:, 0]))
    points = circle[order]
    reach = min(most, count - 1)
    shifts = [s for s in range(-reach, reach + 1) if s] if 2 * reach < count - 1 else list(range(1, count))
    # 1 − cos of the angle between = half the square of the chord; coordinates are off by 16 units at most.
    chords = np.stack([np.sqrt(((np.roll(points, s, axis=0) - points) ** 2).sum(axis=1)) for s in shifts])
    nearest = np.maximum(np.sort(chords, axis=0)[:reach] - 64 * UNIT, 0.0) ** 2 / 2 * (1 - gamma(8))
    products = np.multiply.accumulate(nearest, axis=0)
    return [float(row.min()) * (1 - gamma(2 * most + 8)) for row in products]
