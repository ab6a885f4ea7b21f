"""Independent truths about small heads: hulls by Qhull, margins by HiGHS, Clarabel and rationals.

None of them shares code with the package. The rational simplex checks its own answer on both sides
(a feasible point and a feasible combination of the same value), so it needs no trust either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import clarabel
import flint
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import argmaxable as am

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rationals = list[Fraction]


def box_bounds(domain: am.Box | am.Everywhere, features: int) -> tuple[Vector, Vector]:
    """lo and hi of a box, or of all of space."""
    if isinstance(domain, am.Everywhere):
        return np.full(features, -math.inf), np.full(features, math.inf)
    return np.broadcast_to(domain.lo, features), np.broadcast_to(domain.hi, features)


# ---------------------------------------------------------------------- Qhull


def hull_vertices(rows: Matrix) -> set[int]:
    """The rows that are vertices of the hull of all rows (Qhull; exact ends in one dimension)."""
    if rows.shape[1] == 1:
        return {int(rows[:, 0].argmin()), int(rows[:, 0].argmax())}
    # C-0: merge only what is certainly concave or coplanar; Pp: no remarks about narrow hulls.
    options = "C-0 Pp" if rows.shape[1] <= 4 else "Qx C-0 Pp"
    return {int(vertex) for vertex in ConvexHull(rows, qhull_options=options).vertices}


# ---------------------------------------------------------------------- linear programmes in floats


def margin_by_highs(head: am.Head, domain: am.Box | am.Everywhere, class_id: int) -> float:
    """t* over a box by HiGHS, accurate to about 1e-9; infinite where unbounded."""
    above, offset = _differences(head.rows(slice(None)), head.biases(), class_id)
    if len(above) == 0:
        return math.inf
    lo, hi = box_bounds(domain, head.features)
    answer = linprog(
        np.append(np.zeros(head.features), -1.0),
        A_ub=np.hstack([above, np.ones((len(above), 1))]),
        b_ub=offset,
        bounds=[*zip(lo, hi, strict=True), (None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status == 3:
        return math.inf
    assert answer.status == 0, answer.message
    return float(-answer.fun)


def _differences(rows: Matrix, biases: Vector, class_id: int) -> tuple[Matrix, Vector]:
    """The constraints (w_i − w_c)·x + t ≤ b_c − b_i of all rivals."""
    rivals = np.arange(len(rows)) != class_id
    return rows[rivals] - rows[class_id], biases[class_id] - biases[rivals]


# ---------------------------------------------------------------------- cone programmes


def margin_by_clarabel(head: am.Head, domain: am.Ball | am.RMSNorm | am.LayerNorm, class_id: int) -> float:
    """t* over a ball or a norm's solid by Clarabel, accurate to about 1e-9."""
    features = head.features
    rows, biases, radius = head.rows(slice(None)), head.biases(), 0.0
    if isinstance(domain, am.Ball):
        radius = domain.radius
    else:
        biases = biases + rows @ domain.shifts(features)
        rows, radius = rows * domain.gains(features), math.sqrt(features)
    above, offset = _differences(rows, biases, class_id)
    blocks = [np.hstack([above, np.ones((len(above), 1))])]
    right, cones = [offset], [clarabel.NonnegativeConeT(len(above))]
    if isinstance(domain, am.LayerNorm):
        blocks.append(np.append(np.ones(features), 0.0)[None])
        right.append(np.zeros(1))
        cones.append(clarabel.ZeroConeT(1))
    blocks.append(np.vstack([np.zeros(features + 1), -np.eye(features, features + 1)]))
    right.append(np.append(radius, np.zeros(features)))
    cones.append(clarabel.SecondOrderConeT(features + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((features + 1, features + 1)),
        np.append(np.zeros(features), -1.0),
        sparse.csc_matrix(np.vstack(blocks)),
        np.concatenate(right),
        cones,
        settings,
    ).solve()
    solved = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    assert solution.status in solved, solution.status
    return float(-solution.obj_val)


# ---------------------------------------------------------------------- linear programmes in rationals


def exact_margin(head: am.Head, domain: am.Box | am.Everywhere, class_id: int) -> Fraction | float:
    """t* over a box or everywhere, exactly; math.inf where unbounded."""
    lo, hi = box_bounds(domain, head.features)
    gaps, drops = exact_differences(head, class_id)
    if not gaps:
        return math.inf
    # The dual in standard form, min cost·y with A y = right, y ≥ 0: weights λ on the rivals, and
    # u = Σ λ_i (w_c − w_i) split into p − q, where p costs hi and q costs −lo (if they are finite).
    columns = [[*gap, Fraction(1)] for gap in gaps]
    cost = list(drops)
    for j in range(head.features):
        for bound, side in ((hi[j], -1), (lo[j], 1)):
            if math.isfinite(bound):
                columns.append([Fraction(side if i == j else 0) for i in range(head.features + 1)])
                cost.append(-side * Fraction(float(bound)))
    right = [Fraction(0)] * head.features + [Fraction(1)]
    value, multipliers = _minimise(columns, cost, right)
    x = [-multiplier for multiplier in multipliers[:-1]]
    if value is None:
        _require_escape(gaps, lo, hi, x)
        return math.inf
    _require_reached(gaps, drops, lo, hi, x, value)
    return value


@functools.lru_cache(maxsize=512)
def exact_differences(head: am.Head, class_id: int) -> tuple[list[Rationals], Rationals]:
    """w_c − w_i and b_c − b_i of all rivals i, as rationals."""
    rows, biases = exact_head(head)
    rivals = [i for i in range(head.classes) if i != class_id]
    gaps = [[a - b for a, b in zip(rows[class_id], rows[i], strict=True)] for i in rivals]
    return gaps, [biases[class_id] - biases[i] for i in rivals]


@functools.lru_cache(maxsize=128)
def exact_head(head: am.Head) -> tuple[list[Rationals], Rationals]:
    """All rows and biases, as rationals."""
    return [rationals(row) for row in head.rows(slice(None))], rationals(head.biases())


def _minimise(
    columns: list[Rationals], cost: Rationals, right: Rationals
) -> tuple[Fraction | None, Rationals]:
    """Two-phase simplex with Bland's rule: the minimum (None: infeasible) and its multipliers.

    Every right-hand side is ≥ 0. The artificial columns stay in the tableau, barred from the basis:
    their reduced costs are the multipliers. The rationals are FLINT's, which are faster; whoever asks checks
    the answer in Python's own.
    """
    height, width = len(right), len(columns)
    columns, cost, right = [_to_flint(column) for column in columns], _to_flint(cost), _to_flint(right)
    zero, one = flint.fmpq(0), flint.fmpq(1)
    tableau = [
        [column[i] for column in columns] + [one if i == k else zero for k in range(height)] + [right[i]]
        for i in range(height)
    ]
    basis = list(range(width, width + height))
    first = [zero] * width + [one] * height + [zero]
    line = [a - sum(row[j] for row in tableau) for j, a in enumerate(first)]
    _descend(tableau, line, basis, width)
    if line[-1] != 0:  # minus the least sum of artificials
        return None, _from_flint([1 - line[width + k] for k in range(height)])
    _drive_out(tableau, basis, width)
    second = [*cost, *[zero] * (height + 1)]
    line = list(second)
    for i, row in enumerate(tableau):
        if basis[i] < width:
            line = [a - cost[basis[i]] * b for a, b in zip(line, row, strict=True)]
    _descend(tableau, line, basis, width)
    value, *multipliers = _from_flint([-line[-1], *(-line[width + k] for k in range(height))])
    return value, multipliers


def _to_flint(values: Rationals) -> list[Any]:
    return [flint.fmpq(value.numerator, value.denominator) for value in values]


def _from_flint(values: list[Any]) -> Rationals:
    return [Fraction(int(value.p), int(value.q)) for value in values]


def _descend(tableau: list[list[Any]], line: list[Any], basis: list[int], width: int) -> None:
    """Pivot until no column promises less; the programmes here are never unbounded."""
    while True:
        column = next((j for j in range(width) if line[j] < 0), None)
        if column is None:
            return
        ratios = [(row[-1] / row[column], basis[i], i) for i, row in enumerate(tableau) if row[column] > 0]
        _pivot(tableau, line, basis, min(ratios)[2], column)


def _drive_out(tableau: list[list[Any]], basis: list[int], width: int) -> None:
    """Swap artificials at zero for real columns; rows without any are redundant and stay zero."""
    for i, row in enumerate(tableau):
        column = next((j for j in range(width) if row[j] != 0), None)
        if basis[i] >= width and column is not None:
            _pivot(tableau, [flint.fmpq(0)] * len(row), basis, i, column)


def _pivot(tableau: list[list[Any]], line: list[Any], basis: list[int], row: int, column: int) -> None:
    scale = tableau[row][column]
    tableau[row] = [value / scale for value in tableau[row]]
    for other in (*(tableau[i] for i in range(len(tableau)) if i != row), line):
        factor = other[column]
        if factor:
            other[:] = [a - factor * b if b else a for a, b in zip(other, tableau[row], strict=True)]
    basis[row] = column


def dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """The inner product of two lists of rationals; over one denominator, since a sum of fractions would be
    reduced after every term."""
    terms = [
        (a.numerator * b.numerator, a.denominator * b.denominator) for a, b in zip(left, right, strict=True)
    ]
    denominator = math.lcm(*(below for _, below in terms))
    return Fraction(sum(above * (denominator // below) for above, below in terms), denominator)


def _require_reached(
    gaps: list[Rationals], drops: Rationals, lo: Vector, hi: Vector, x: Rationals, value: Fraction
) -> None:
    """The multipliers are a point of the box with exactly this margin: nothing is left to trust."""
    assert all(low <= entry <= high for low, entry, high in zip(lo, x, hi, strict=True))
    assert min(dot(gap, x) + drop for gap, drop in zip(gaps, drops, strict=True)) == value


def _require_escape(gaps: list[Rationals], lo: Vector, hi: Vector, ray: Rationals) -> None:
    """Along this ray, which never leaves the box, every gap grows."""
    assert all(entry <= 0 for entry, high in zip(ray, hi, strict=True) if math.isfinite(high))
    assert all(entry >= 0 for entry, low in zip(ray, lo, strict=True) if math.isfinite(low))
    assert all(dot(gap, ray) > 0 for gap in gaps)


# ---------------------------------------------------------------------- evidence in rationals


def rationals(values: Any) -> Rationals:
    """Floats as the rationals they are."""
    return [Fraction(value) for value in np.asarray(values, np.float64).ravel().tolist()]


def exact_gap(head: am.Head, domain: am.Domain, class_id: int, z: Vector) -> Fraction | None:
    """The least gap of the class at the point z, exactly; None outside the domain or without rivals."""
    x = placed(domain, rationals(z)) if np.isfinite(z).all() else None
    if x is None:
        return None
    gaps, drops = exact_differences(head, class_id)
    return min((dot(gap, x) + drop for gap, drop in zip(gaps, drops, strict=True)), default=None)


def placed(domain: am.Domain, z: Rationals) -> Rationals | None:
    """The feature vector x of a point z, or None when z does not belong to the domain."""
    size = len(z)
    if isinstance(domain, am.Box):
        lo, hi = box_bounds(domain, size)
        return z if all(a <= b <= c for a, b, c in zip(lo, z, hi, strict=True)) else None
    if isinstance(domain, am.Ball):
        return z if dot(z, z) <= Fraction(domain.radius) ** 2 else None
    if isinstance(domain, am.Hull):
        if min(z) < 0 or not any(z):
            return None
        columns = [rationals(column) for column in domain.points.T]
        return [dot(z, column) / sum(z) for column in columns]
    if isinstance(domain, am.Reach):
        if placed(domain.within, z) is None:
            return None
        rows = [rationals(row) for row in domain.moves]
        return [start + dot(z, row) for start, row in zip(rationals(domain.base), rows, strict=True)]
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        if isinstance(domain, am.LayerNorm):
            z = [entry - sum(z) / size for entry in z]
        gain, shift = rationals(domain.gains(size)), rationals(domain.shifts(size))
        x = [g * entry + s for g, entry, s in zip(gain, z, shift, strict=True)]
        return x if dot(z, z) <= size else None
    return z


def support_is_at_most(domain: am.Domain, u: Rationals, limit: Fraction) -> bool:
    """Whether h_X(u) ≤ limit, exactly."""
    size = len(u)
    if isinstance(domain, am.Everywhere):
        return not any(u) and limit >= 0
    if isinstance(domain, am.Box):
        lo, hi = box_bounds(domain, size)
        ends = [(high if entry > 0 else low) for entry, low, high in zip(u, lo, hi, strict=True)]
        used = [(entry, end) for entry, end in zip(u, ends, strict=True) if entry]
        return all(math.isfinite(end) for _, end in used) and (
            sum(entry * Fraction(float(end)) for entry, end in used) <= limit
        )
    if isinstance(domain, am.Ball):
        return limit >= 0 and Fraction(domain.radius) ** 2 * dot(u, u) <= limit**2
    if isinstance(domain, am.Hull):
        return all(dot(u, rationals(point)) <= limit for point in domain.points)
    if isinstance(domain, am.Reach):
        seen = [dot(u, rationals(move)) for move in domain.moves.T]
        return support_is_at_most(domain.within, seen, limit - dot(u, rationals(domain.base)))
    assert isinstance(domain, am.RMSNorm | am.LayerNorm)
    limit -= dot(rationals(domain.shifts(size)), u)
    v = [g * entry for g, entry in zip(rationals(domain.gains(size)), u, strict=True)]
    if isinstance(domain, am.LayerNorm):
        v = [entry - sum(v) / size for entry in v]
    return limit >= 0 and size * dot(v, v) <= limit**2


def certificate_proves(
    head: am.Head, domain: am.Domain, class_id: int, certificate: am.Certificate, claim: Fraction
) -> bool:
    """Whether the certificate proves t* ≤ claim by the words of its docstring, exactly."""
    ids = [int(i) for i in certificate.classes]
    if len(ids) != len(certificate.weights) or not np.isfinite(certificate.weights).all():
        return False
    if class_id in ids or len(set(ids)) != len(ids) or not all(0 <= i < head.classes for i in ids):
        return False
    if (certificate.weights < 0).any() or not certificate.weights.any():
        return False
    if certificate.coordinates is None and certificate.basis > head.features + 1:
        return _some_solution_proves(head, domain, class_id, certificate, claim)
    weights = _meant_weights(head, domain, class_id, certificate)
    if weights is None or any(weight < 0 for weight in weights) or sum(weights) <= 0:
        return False
    all_rows, all_biases = exact_head(head)
    rows, biases = ([values[i] for i in (*ids, class_id)] for values in (all_rows, all_biases))
    u = [dot(weights, [own - other[j] for other in rows[:-1]]) for j, own in enumerate(rows[-1])]
    drop = dot(weights, [biases[-1] - bias for bias in biases[:-1]])
    return support_is_at_most(domain, u, claim * sum(weights) - drop)


def _some_solution_proves(
    head: am.Head, domain: am.Domain, class_id: int, certificate: am.Certificate, claim: Fraction
) -> bool:
    """Whether a basis larger than the number of equations has a solution that proves t* ≤ claim.

    With every feature in the equations u has no part that the domain could reward, so the least bound of any
    solution is the least value of a linear programme. Where the truth is at stake it is as good as the one
    near the stored weights.
    """
    basis = certificate.basis
    system = _equations(head, domain, class_id, certificate)
    if system is None or basis > len(certificate.weights):
        return False
    weights, ids = rationals(certificate.weights), [*certificate.classes.tolist(), class_id]
    biases = rationals(head.biases(np.array(ids)))
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        shift = rationals(domain.shifts(head.features))
        rows = [rationals(row) for row in head.rows(np.array(ids))]
        biases = [bias + dot(shift, row) for bias, row in zip(biases, rows, strict=True)]
    drops = [biases[-1] - bias for bias in biases[:-1]]
    system = [[-value for value in line] if line[-1] < 0 else line for line in system]
    columns = [[line[k] for line in system] for k in range(basis)]
    least, _ = _minimise(columns, drops[:basis], [line[-1] for line in system])
    return least is not None and least + dot(weights[basis:], drops[basis:]) <= claim


def _meant_weights(
    head: am.Head, domain: am.Domain, class_id: int, certificate: am.Certificate
) -> Rationals | None:
    """The stored weights, or those whose basis part solves its equations (None: not uniquely)."""
    weights = rationals(certificate.weights)
    basis = certificate.basis
    if not 0 <= basis <= len(weights):
        return None
    if basis == 0:
        return weights
    system = _equations(head, domain, class_id, certificate)
    solution = None if system is None else _solve(system, basis)
    return None if solution is None else [*solution, *weights[basis:]]


def _equations(
    head: am.Head, domain: am.Domain, class_id: int, certificate: am.Certificate
) -> list[Rationals] | None:
    """The linear system for the basis weights, each line with its right-hand side."""
    weights, basis = rationals(certificate.weights), certificate.basis
    size = head.features
    rows = [rationals(row) for row in head.rows(np.append(certificate.classes, class_id))]
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        gain = rationals(domain.gains(size))
        rows = [[g * value for g, value in zip(gain, row, strict=True)] for row in rows]
    wanted = range(size) if certificate.coordinates is None else [int(j) for j in certificate.coordinates]
    if not all(0 <= j < size for j in wanted):
        return None
    if isinstance(domain, am.LayerNorm):  # the mean's removal leaves all differences between features
        rows, wanted = [[value - row[-1] for value in row] for row in rows], range(size)
    rows = [[*(row[j] for j in wanted), Fraction(1)] for row in rows]
    return [
        [
            *(row[k] for row in rows[:basis]),
            rows[-1][k] - dot(weights[basis:], [r[k] for r in rows[basis:-1]]),
        ]
        for k in range(len(wanted) + 1)
    ]


def _solve(system: list[Rationals], unknowns: int) -> Rationals | None:
    """The unique solution of a linear system (rows with their right-hand side), or None."""
    for column in range(unknowns):
        pivot = next((i for i in range(column, len(system)) if system[i][column]), None)
        if pivot is None:
            return None
        system[column], system[pivot] = system[pivot], system[column]
        scale = system[column][column]
        system[column] = [value / scale for value in system[column]]
        for i, row in enumerate(system):
            if i != column and row[column]:
                factor = row[column]
                system[i] = [a - factor * b for a, b in zip(row, system[column], strict=True)]
    if any(row[-1] for row in system[unknowns:]):
        return None
    return [system[k][-1] for k in range(unknowns)]
