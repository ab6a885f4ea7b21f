"""The one door to HiGHS: dense and sparse rows, whole numbers, and what counts as an answer."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from argmaxable.prove.highs import SolverStatus, SparseRows, maximise

ONES = np.ones(3)
# The sides of a triangle, as pairs of its corners.
SIDES = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])


def test_sparse_rows_are_the_same_as_dense_ones() -> None:
    entries = np.nonzero(SIDES)
    sparse = SparseRows.of_entries(entries[0][::-1], entries[1][::-1], 1.0)
    for rows in (SIDES, sparse, SparseRows.dense(SIDES)):
        solution = maximise(ONES, rows, ONES, 0 * ONES, ONES)
        assert solution.status is SolverStatus.OPTIMAL
        np.testing.assert_allclose(solution.x, 0.5)
        np.testing.assert_allclose(solution.multipliers, 0.5)


def test_whole_numbers_are_whole() -> None:
    solution = maximise(-ONES, -SIDES, -ONES, 0 * ONES, ONES, whole=True)
    assert solution.status is SolverStatus.OPTIMAL
    assert sorted(solution.x.round(9)) == [0.0, 1.0, 1.0]


def test_programmes_without_an_answer_say_so() -> None:
    assert maximise(ONES, SIDES, -ONES, 0 * ONES, ONES).status is SolverStatus.INFEASIBLE
    assert maximise(ONES, SIDES[:1], ONES[:1], 0 * ONES, np.inf * ONES).status is SolverStatus.UNBOUNDED


def test_the_library_is_loaded_by_the_first_programme() -> None:
    program = "import sys, argmaxable.prove.highs; print('highspy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
