"""Witnesses that ordinary inputs come near: on the surface of the solid that a norm maps onto.

RMSNorm and LayerNorm with ε > 0 map onto the solid ‖z‖ ≤ √d, so a witness anywhere in it is reached by some
input; but inputs of ordinary variance land at its surface, and the interior takes features of almost
no variance. A class that wins in the interior only is argmaxable, and hardly ever seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.blocks import row_blocks
from argmaxable.core.balls import NormSolid
from argmaxable.core.verdict import Status, Verdict
from argmaxable.exact.rounding import gamma
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.questions.arithmetic.rounding import Machine
from argmaxable.questions.arithmetic.survival import witness_points
from argmaxable.search.ascent import ascend, onto_surface

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
    from argmaxable.core.result import Result

# Witnesses looked at together: 32 MB of points at 1024 features.
_BATCH = 4096
_STEPS = 60
# Share of the largest ‖z‖²: an input of variance v lands at v / (v + ε), and with ε = 1e-5, as is usual, all
# but those of a variance below 1e-3 come closer than this.
_NEAR = 0.99


@dataclass(frozen=True)
class Surface:
    """Of the argmaxable classes, how many win on the surface too; `solid_only` are those for which no
    point of it was found."""

    classes: int
    solid_only: tuple[int, ...]


def surface_of(result: Result) -> Surface | None:
    """Which argmaxable classes win on the surface of a norm's solid; None for other domains.

    A witness is moved outwards along its ray first, which always succeeds where neither a bias nor the
    norm's shift has a say; then the surface is searched. Each point is checked as a witness is.
    """
    domain = result.domain
    if not isinstance(domain, NormSolid):
        return None
    verdicts = [verdict for verdict in result.verdicts if verdict.status is Status.ARGMAXABLE]
    if not (result.head.has_bias or domain.shift.any()):  # scaling z scales every gap
        return Surface(len(verdicts), ())
    checker = Checker(result.head, domain, centre=result.centre)
    leads = _leads_at_zero(checker, domain)
    inside: list[int] = []
    for first in range(0, len(verdicts), _BATCH):
        inside += _inside_only(checker, domain, leads, verdicts[first : first + _BATCH])
    return Surface(len(verdicts), tuple(inside))


def _inside_only(checker: Checker, domain: NormSolid, leads: Vector, verdicts: list[Verdict]) -> list[int]:
    classes = np.array([verdict.class_id for verdict in verdicts], np.intp)
    lower = np.array([verdict.lower for verdict in verdicts])
    points = witness_points(checker, verdicts)
    left = np.flatnonzero(~_wins_further_out(domain, leads[classes], lower, points))
    moved = onto_surface(domain)(points[left])
    left = left[~_win_there(checker, domain, classes[left], moved)]
    if not len(left):
        return []
    found = _search(checker, domain, classes[left], points[left])
    left = left[~_win_there(checker, domain, classes[left], found)]
    return [int(class_id) for class_id in classes[left]]


def _search(checker: Checker, domain: NormSolid, classes: Ids, points: Matrix) -> Matrix:
    """Points of the surface where the classes lead, or come closest to it."""
    machine = Machine(checker.head, domain, Float.FP32)

    def climb(where: Ids, z: Matrix, length: float) -> tuple[Vector, Matrix]:
        return machine.climb(classes[where], z, length)

    return ascend(climb, points, onto_surface(domain), steps=_STEPS, enough=1.0)[0]


def _win_there(checker: Checker, domain: NormSolid, classes: Ids, points: Matrix) -> Mask:
    """Which points win, checked, and are near the surface."""
    z = _centred(domain, points)
    near = (z * z).sum(axis=1) >= _NEAR * points.shape[1]
    return np.asarray((checker.gaps(classes, points).lower > 0) & near)


def _centred(domain: NormSolid, points: Matrix) -> Matrix:
    return points - points.mean(axis=1, keepdims=True) if domain.removes_mean else points


def _wins_further_out(domain: NormSolid, ahead: Vector, lower: Vector, points: Matrix) -> Mask:
    """Which witnesses surely win at the end of their ray, without a product.

    Each gap is linear along the ray: g(s) = s·g(1) − (s − 1)·g(0), at least s·lower − (s − 1)·ahead, where
    `ahead` is the largest g(0), the lead over the weakest class at z = 0.
    """
    z = _centred(domain, points)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = math.sqrt(points.shape[1]) / np.sqrt((z * z).sum(axis=1))
        # The factor covers the rounding of s; the gaps themselves are proven bounds.
        return np.asarray(s * lower * (1 - 1e-9) > (s - 1) * ahead * (1 + 1e-9))


def _leads_at_zero(checker: Checker, domain: NormSolid) -> Vector:
    """Upper bounds on each class's lead over the weakest one at z = 0."""
    head, shift = checker.head, domain.shifts(checker.head.features)
    scores, error = np.empty(head.classes), 0.0
    for block in row_blocks(head.classes, head.features):
        rows, biases = head.rows(block) - checker.centre, head.biases(block)
        scores[block] = rows @ shift + biases
        size = np.abs(rows) @ np.abs(shift) + np.abs(biases)
        error = max(error, gamma(head.features + 8) * float(size.max()))
    return np.asarray(scores - scores.min() + 2 * error)
