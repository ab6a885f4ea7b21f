"""Certificates with a basis: exact weights for classes whose margin is zero, or whose domain asks
for u = 0 exactly. A float λ leaves a residue; here it is moved onto a well-conditioned basis of
rows, whose exact weights the checker then solves for or shows to exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from argmaxable.compute.lapack import dpotrf, dpotrs, pivoted_triangle
from argmaxable.core.verdict import Certificate
from argmaxable.prove.row_table import RowTable

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector

# Weights below this share of the largest count as zero when the support is degenerate; a strictly
# complementary interior point keeps the two kinds many orders of magnitude apart.
_SUPPORT = 1e-7
# Diagonal entries of R below this share of the first mean linear dependence.
_RANK = 1e-11
# From here on choosing a basis by pivoted QR takes longer than all else; the largest weights, half as many
# again as there are equations, are nearly always well-conditioned enough together.
_MANY_FEATURES, _SPREAD = 128, 1.5
# Each takes the residual down to a rounding error of the one before.
_CORRECTIONS = 3


class RowSource(Protocol):
    """What a basis is chosen from: rows by their ids (n × size), and the feature of each coordinate."""

    @property
    def size(self) -> int: ...

    @property
    def used(self) -> Ids: ...

    def rows(self, ids: Ids) -> Matrix: ...


def basis_certificate(
    coordinates: RowSource,
    class_id: int,
    rows: Ids,
    weights: Vector,
    free: Ids | None = None,
    *,
    whole: bool = False,
    table: RowTable | None = None,
) -> Certificate | None:
    """A certificate with a basis next to float weights, or None when the weights are far from one.

    `free` are the coordinates in which u must vanish (None: all of them). A `whole` certificate keeps every
    weight, for claims that depend on more than the support. `table` holds these rows less the class's own,
    where a solve has it already.
    """
    if free is None and not whole and coordinates.size >= _MANY_FEATURES:
        if table is None:
            table = RowTable(coordinates.rows(rows) - coordinates.rows(np.array([class_id])))
        spread = _spread_certificate(table, rows, weights)
        if spread is not None:
            return spread
    keep = (weights > 0) if whole else weights > _SUPPORT * weights.max()
    rows, weights = rows[keep], weights[keep]
    columns = np.arange(coordinates.size) if free is None else free
    points = np.hstack([coordinates.rows(rows)[:, columns], np.ones((len(rows), 1))])
    target = np.append(coordinates.rows(np.array([class_id]))[0, columns], 1.0)
    scale = np.maximum(np.abs(points).max(axis=0), 1e-300)
    points, target = points / scale, target / scale
    triangle, order = pivoted_triangle((points * weights[:, None]).T)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > _RANK * diagonal[0]).sum())
    chosen, others = order[:rank], order[rank:]
    solved_for = None if free is None else coordinates.used[free]
    lone = None if whole else _solve(points[chosen], target)
    if lone is not None and (lone > 0).all():
        return Certificate(rows[chosen], lone, rank, solved_for)
    adjusted = _solve(points[chosen], target - weights[others] @ points[others])
    if adjusted is None or not (adjusted > 0).all():
        return None
    ids = np.concatenate([rows[chosen], rows[others]])
    return Certificate(ids, np.concatenate([adjusted, weights[others]]), rank, solved_for)


def _spread_certificate(table: RowTable, rows: Ids, weights: Vector) -> Certificate | None:
    """A certificate whose basis is larger than it need be: no rows have to be chosen, which takes as long as
    many Newton steps, and the exact weights that the checker shows to exist are close to these."""
    points = table.double
    size = points.shape[1]
    basis = int(_SPREAD * size)
    if len(rows) < basis:
        return None
    target = np.zeros(size)
    target[-1] = 1.0
    factor, failed = dpotrf(table.gram(weights).T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None
    for _ in range(_CORRECTIONS):
        step, _ = dpotrs(factor, target - weights @ points, lower=1)
        weights = weights * (1 + points @ step)
        if not (weights > 0).all():
            return None
    order = np.argsort(-weights)
    return Certificate(rows[order], weights[order], basis)


def _solve(points: Matrix, target: Vector) -> Vector | None:
    """Weights on the points that reproduce the target, refined once."""
    try:
        if points.shape[0] == points.shape[1]:
            weights = np.linalg.solve(points.T, target)
            weights += np.linalg.solve(points.T, target - weights @ points)
        else:
            weights = np.linalg.lstsq(points.T, target, rcond=None)[0]
    except np.linalg.LinAlgError:
        return None
    return np.asarray(weights) if np.isfinite(weights).all() else None
