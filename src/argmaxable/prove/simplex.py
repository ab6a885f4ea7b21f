"""An exact dual simplex for the margin of one class: the last resort, in rational arithmetic.

maximise t subject to a_i·x + t ≤ β_i and lo ≤ x ≤ hi. Every basis it visits is dual feasible, so
its t is a proven upper bound on the margin over all rows: the search ends as soon as t ≤ 0 (a
certificate), or when no row is violated (t is the margin, x a witness).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
from numpy.typing import NDArray

from argmaxable.core.progress import NO_DEADLINE, Deadline
from argmaxable.core.verdict import Certificate, FinePoint, Point, Witness
from argmaxable.exact.dyadic import Dyadic

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.check.witnesses import Gaps
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids

# Pivots allowed per feature; the textbook expectation is a small multiple of the dimension.
_PIVOTS_PER_FEATURE = 40
# After so many pivots without progress the smallest index is taken (Bland), which can't cycle.
_PATIENCE = 20
# Bits of the stand-in bound for infinite domains: beyond any vertex of a small rational system.
_FAR_BITS = 200
# Binary places that are tried one after the other where no witness has the precision of float64.
_FINE_PLACES = (128, 512, 2048)


@dataclass(frozen=True, eq=False)
class Vertex:
    """Where the simplex ended: margin t, the point, and the basis that proves both."""

    t: Fraction
    x: list[Fraction]
    rows: list[int]
    weights: list[Fraction]
    free: list[int]


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """One class's linear programme in rationals: rows a_i = w_i − w_c, limits b_c − b_i, bounds."""

    rivals: Ids
    rows: list[list[Any]]
    limits: list[Any]
    lo: list[Any]
    hi: list[Any]


def exact_problem(coordinates: Coordinates, class_id: int, rivals: Ids) -> ExactProblem | None:
    """The programme over these rivals, or None where the domain is neither a box nor a cone."""
    if coordinates.radius is not None or coordinates.corners is not None:
        return None
    ids = np.append(rivals, class_id)
    rows = coordinates.domain.rows_seen_exactly(Dyadic.of(coordinates.head.rows(ids)))
    if coordinates.domain.removes_mean:
        rows = rows[:, :-1] - rows[:, -1:]
        used = np.arange(coordinates.head.features - 1)
    else:
        used = coordinates.used
    unit = flint.fmpq(2) ** rows.exponent
    own = rows.integers[-1]
    table = [[flint.fmpq(int(v)) * unit for v in (line - own)[used]] for line in rows.integers[:-1]]
    if coordinates.is_cone:
        zero = flint.fmpq(0)
        low, high = (
            (-np.ones(len(used)), np.ones(len(used)))
            if len(used) != coordinates.size
            else (coordinates.lo, coordinates.hi)
        )
        return ExactProblem(rivals, table, [zero] * len(rivals), rationals(low), rationals(high))
    biases = _exact_offsets(coordinates, ids)
    limits = [biases[-1] - value for value in biases[:-1]]
    low, high = coordinates.domain_bounds()
    return ExactProblem(rivals, table, limits, rationals(low), rationals(high))


def rationals(values: NDArray[np.float64]) -> list[Any]:
    """Exact values; infinite ones become a stand-in so far off that the checker will notice."""
    far = flint.fmpq(2) ** _FAR_BITS
    out = []
    for value in values:
        out.append(
            flint.fmpq(*float(value).as_integer_ratio())
            if math.isfinite(value)
            else far
            if value > 0
            else -far
        )
    return out


def _exact_offsets(coordinates: Coordinates, ids: Ids) -> list[Any]:
    """b_i + w_i · (features that a box fixes), exactly."""
    values = Dyadic.of(coordinates.head.biases(ids))
    fixed = coordinates.domain.fixed_part_exactly(coordinates.head.features)
    if fixed.sign().any():
        values = values + Dyadic.of(coordinates.head.rows(ids)) @ fixed
    unit = flint.fmpq(2) ** values.exponent
    return [flint.fmpq(int(v)) * unit for v in values.integers]


def solve_exactly(problem: ExactProblem, *, deadline: Deadline = NO_DEADLINE) -> Vertex | None:
    """The optimum, or the first basis with t ≤ 0; None when it takes too many pivots. Raises TimeIsOver."""
    basis = _Basis(problem)
    stuck, last = 0, None
    for _ in range(_PIVOTS_PER_FEATURE * (len(problem.lo) + 2)):
        deadline.require_time()
        t, x = basis.vertex()
        stuck = stuck + 1 if t == last else 0
        last = t
        violated = None if t <= 0 else basis.violated(t, x, first=stuck > _PATIENCE)
        if violated is None:
            return basis.result(t, x)
        basis.pivot(violated)
    return None


class _Basis:
    """k + 1 active constraints: rows (row numbers) and, for features not free, a side of the box."""

    def __init__(self, problem: ExactProblem) -> None:
        self.problem = problem
        # All weight on one row, every feature at the side where that row is weakest: dual feasible.
        self.rows = [0]
        self.free: list[int] = []
        self.side = {j: (-1 if value > 0 else 1) for j, value in enumerate(problem.rows[0])}

    def _matrix(self) -> Any:
        size = len(self.rows)
        entries = [[self.problem.rows[i][j] for j in self.free] + [flint.fmpq(1)] for i in self.rows]
        return flint.fmpq_mat(size, size, [value for line in entries for value in line])

    def _bound(self, j: int) -> Any:
        return self.problem.hi[j] if self.side[j] > 0 else self.problem.lo[j]

    def vertex(self) -> tuple[Any, list[Any]]:
        """t and x where all active constraints hold with equality."""
        x: list[Any] = [None if j not in self.side else self._bound(j) for j in range(len(self.problem.lo))]
        right = []
        for i in self.rows:
            row = self.problem.rows[i]
            right.append([self.problem.limits[i] - sum((row[j] * x[j] for j in self.side), flint.fmpq(0))])
        self.inverse = self._matrix().inv()
        solution = self.inverse * flint.fmpq_mat(right)
        for k, j in enumerate(self.free):
            x[j] = solution[k, 0]
        return solution[len(self.free), 0], x

    def violated(self, t: Any, x: list[Any], *, first: bool) -> tuple[str, int, int] | None:
        """The constraint broken most at (x, t), or the first broken one; None when there is none.

        First in the order by which `pivot` breaks its ties, rows before bounds: otherwise Bland's rule
        would be none, and could cycle.
        """
        worst, found = flint.fmpq(0), None
        active = set(self.rows)
        for i, row in enumerate(self.problem.rows):
            if i in active:
                continue
            excess = sum((a * b for a, b in zip(row, x, strict=True)), t) - self.problem.limits[i]
            if excess > worst:
                worst, found = excess, ("row", i, 0)
                if first:
                    return found
        for j in sorted(self.free):
            for side, excess in ((1, x[j] - self.problem.hi[j]), (-1, self.problem.lo[j] - x[j])):
                if excess > worst:
                    worst, found = excess, ("bound", j, side)
                    if first:
                        return found
        return found

    def multipliers(self) -> list[Any]:
        """Weights of the active rows: they sum to one and cancel in every free feature."""
        size = len(self.rows)
        return [self.inverse[size - 1, k] for k in range(size)]

    def pivot(self, violated: tuple[str, int, int]) -> None:
        """Let the violated constraint in; the dual ratio test says which one leaves."""
        kind, number, side = violated
        normal = [flint.fmpq(0)] * len(self.problem.lo)
        height = flint.fmpq(0)
        if kind == "row":
            normal, height = self.problem.rows[number], flint.fmpq(1)
        else:
            normal[number] = flint.fmpq(side)
        target = flint.fmpq_mat([[*(normal[j] for j in self.free), height]])
        shares = target * self.inverse
        alpha = [shares[0, k] for k in range(len(self.rows))]
        weights = self.multipliers()
        choices = [(weights[k] / alpha[k], 0, self.rows[k], k) for k in range(len(alpha)) if alpha[k] > 0]
        for j, direction in self.side.items():
            mixed = sum(
                (a * self.problem.rows[i][j] for a, i in zip(alpha, self.rows, strict=True)), flint.fmpq(0)
            )
            share = direction * (normal[j] - mixed)
            if share > 0:
                pull = sum(
                    (w * self.problem.rows[i][j] for w, i in zip(weights, self.rows, strict=True)),
                    flint.fmpq(0),
                )
                choices.append((-direction * pull / share, 1, j, j))
        _, leaves_bound, _, which = min(choices, key=lambda choice: choice[:3])
        if leaves_bound:
            self.free.append(which)
            del self.side[which]
        else:
            del self.rows[which]
        if kind == "row":
            self.rows.append(number)
        else:
            self.free.remove(number)
            self.side[number] = side

    def result(self, t: Any, x: list[Any]) -> Vertex:
        weights = [_fraction(weight) for weight in self.multipliers()]
        return Vertex(_fraction(t), [_fraction(v) for v in x], list(self.rows), weights, list(self.free))


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def certificate_of(coordinates: Coordinates, problem: ExactProblem, vertex: Vertex) -> Certificate:
    """The vertex's weights as a certificate whose exact values the checker solves for again."""
    positive = [k for k, weight in enumerate(vertex.weights) if weight > 0]
    ids = np.array([problem.rivals[vertex.rows[k]] for k in positive])
    weights = np.array([float(vertex.weights[k]) for k in positive])
    if not coordinates.domain.has_features:  # no equations in features name these weights
        over = math.lcm(*(vertex.weights[k].denominator for k in positive))
        return Certificate(ids, weights, whole=tuple(int(vertex.weights[k] * over) for k in positive))
    everything = coordinates.is_cone and not np.isfinite(coordinates.domain_bounds()).any()
    solved_for = None if everything else coordinates.used[np.array(sorted(vertex.free), dtype=np.intp)]
    return Certificate(ids, weights, len(ids), solved_for)


def settle_exactly(
    coordinates: Coordinates, checker: Checker, class_id: int, rivals: Ids, *, tied: bool, deadline: Deadline
) -> tuple[Witness | None, Certificate | None]:
    """A checked witness or certificate by exact simplex over these rivals, or neither.

    Rivals that turn out to beat the point found are added until the answer stands. Where a class wins only
    between the numbers of float64 the witness is a `FinePoint`. Raises TimeIsOver.
    """
    while True:
        problem = exact_problem(coordinates, class_id, rivals)
        vertex = None if problem is None else solve_exactly(problem, deadline=deadline)
        if problem is None or vertex is None:
            return None, None
        if vertex.t <= 0:
            certificate = certificate_of(coordinates, problem, vertex)
            return None, certificate if checker.bound(class_id, certificate).upper <= 0 else None
        point, gaps = _best_nearby(checker, class_id, _point(coordinates, vertex))
        if gaps.settle(np.array([tied]))[0]:
            return Point(point[0]), None
        if gaps.rival[0] in rivals or np.isneginf(gaps.lower[0]):
            return None if tied else _fine_point(coordinates, checker, class_id, vertex), None
        rivals = np.append(rivals, gaps.rival[0])


def _best_nearby(
    checker: Checker, class_id: int, point: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Gaps]:
    """The point, or one with a feature shrunk towards 0 where that widens the gap: a vertex may touch
    rows that its margin does not need, and rounding must not push it over."""
    ids = np.array([class_id])
    gaps = checker.gaps(ids, point)
    for feature in np.flatnonzero(point[0]):
        for factor in (0.0, 0.5, 1 - 2.0**-20):
            if gaps.lower[0] > 0:
                return point, gaps
            moved = point.copy()
            moved[0, feature] *= factor
            found = checker.gaps(ids, moved)
            if found.lower[0] > gaps.lower[0]:
                point, gaps = moved, found
    return point, gaps


def _fine_point(
    coordinates: Coordinates, checker: Checker, class_id: int, vertex: Vertex
) -> FinePoint | None:
    """The vertex rounded to more places than float64 has, with as few as prove that the class wins there."""
    near = _point(coordinates, vertex)[0]
    if coordinates.domain.removes_mean or not np.isfinite(near).all():
        return None
    z = [Fraction(value) for value in near.tolist()]
    used = coordinates.used.tolist()
    largest = max(range(len(used)), key=lambda k: abs(vertex.x[k]))
    # Without a bias only the direction counts, and `near` is this multiple of the vertex.
    times = Fraction(1)
    if coordinates.is_cone and z[used[largest]]:
        times = Fraction(2) ** round(math.log2(z[used[largest]] / vertex.x[largest]))
    for feature, value in zip(used, vertex.x, strict=True):
        z[feature] = value * times
    return fine_point_at(checker, class_id, z)


def fine_point_at(checker: Checker, class_id: int, z: Sequence[Fraction]) -> FinePoint | None:
    """The point rounded to as few binary places as prove that the class wins there, or None."""
    for places in _FINE_PLACES:
        point = FinePoint(tuple(round(value * 2**places) for value in z), -places)
        if checker.fine_gap(class_id, point) > 0:
            return point
    return None


def _point(coordinates: Coordinates, vertex: Vertex) -> NDArray[np.float64]:
    x = np.array([[float(v) for v in vertex.x]])
    if coordinates.domain.removes_mean:
        x = np.hstack([x, -x.sum(axis=1, keepdims=True)])
    return coordinates.to_point(x)
