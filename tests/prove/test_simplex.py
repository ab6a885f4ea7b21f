"""The exact dual simplex where a careless pivot rule would run in circles."""

from __future__ import annotations

import flint
import numpy as np
from scipy.optimize import linprog

from argmaxable.prove.simplex import ExactProblem, solve_exactly

# Bland's rule cycles here when constraints come in by one order and leave by another.
ROWS = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [-2, 0, -4, -2, 4, -4, 0, 0, 0, -1, 0],
    [0, 0, 0, 0, 0, 0, 4, 0, 1, 0, -2], [0, 0, 0, 0, 0, 0, 0, -1, -4, 4, 0],
    [0, 0, 0, 0, -1, 0, 0, 1, -2, 0, 0], [0, 2, -2, 0, 2, 1, 0, -1, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0, -1, 2, 1, 0], [0, -1, 3, 0, 4, -3, 0, -3, -1, 1, 0],
    [1, 3, 2, 0, 0, 1, 0, 0, 0, -1, 1], [-2, 0, 1, 0, 0, 0, -1, -2, 0, -1, 0],
    [-1, -1, -2, 0, 3, 0, 2, -3, -2, 0, 0], [3, 0, 4, 0, 0, -3, 2, 0, 0, 1, -2],
    [0, 1, 0, 0, 0, 4, 1, 2, 0, -2, -1], [0, 2, 4, 1, 0, 0, -3, 0, 0, 0, 2],
    [4, 1, 0, 0, -1, -2, 0, 0, -1, 0, -3], [-1, 0, -2, 0, 1, 0, 0, -2, 1, 2, 0],
    [0, 1, 0, 0, 0, 1, 0, 2, 0, 0, -1], [1, -1, 0, -2, -1, 3, 0, 0, 3, 0, -3],
    [0, -2, 0, 0, 2, 0, -2, 0, -1, -1, 2], [3, -2, 3, 0, 0, 0, 0, 0, -2, 0, -2],
    [1, 0, 0, 0, 0, -3, 0, 0, 0, 2, 0], [0, -2, 2, 0, 0, 0, 0, 0, 0, 0, 1],
    [4, -1, -1, 0, 2, 0, 0, 0, 0, 0, -1], [-3, 0, 0, 1, 1, 0, 0, 0, -2, 0, -2],
]  # fmt: skip
LIMITS = [1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]


def test_a_degenerate_programme_is_solved() -> None:
    size = len(ROWS[0])
    vertex = solve_exactly(
        ExactProblem(
            rivals=np.arange(len(ROWS)),
            rows=[[flint.fmpq(value) for value in row] for row in ROWS],
            limits=[flint.fmpq(value) for value in LIMITS],
            lo=[flint.fmpq(-1)] * size,
            hi=[flint.fmpq(1)] * size,
        )
    )
    assert vertex is not None
    by_highs = linprog(
        [0.0] * size + [-1.0],
        A_ub=np.column_stack([ROWS, np.ones(len(ROWS))]),
        b_ub=LIMITS,
        bounds=[(-1, 1)] * size + [(None, None)],
    )
    assert abs(float(vertex.t) + by_highs.fun) < 1e-9
