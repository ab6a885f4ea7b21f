"""The only module that knows HiGHS. Its answers are floats within a tolerance and never trusted: the
caller checks what they claim. The library is loaded by the first programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector

# HiGHS's default tolerance of 1e-7 is larger than margins of real heads; 1e-10 is its smallest.
_TOLERANCE = 1e-10
_SECONDS = 600.0


class SolverStatus(Enum):
    """What HiGHS says, by its own name for it; anything not listed counts as failed, never as an answer."""

    OPTIMAL = "kOptimal"
    UNBOUNDED = "kUnbounded"
    INFEASIBLE = "kInfeasible"
    FAILED = "kNotset"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Status, primal point (of a failure the best known, if any), and the multiplier of each row (≥ 0 for a
    maximum over `≤` rows)."""

    status: SolverStatus
    x: Vector
    multipliers: Vector


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows by their entries: row i has those from start[i] to start[i + 1] of `columns` and `values`."""

    start: Ids
    columns: Ids
    values: Vector

    @staticmethod
    def dense(rows: Matrix) -> SparseRows:
        count, size = rows.shape
        return SparseRows(np.arange(count + 1) * size, np.tile(np.arange(size), count), rows.ravel())

    @staticmethod
    def of_entries(rows: Ids, columns: Ids, value: float) -> SparseRows:
        """The same value in the given rows and columns; every row up to the last has some."""
        order = np.argsort(rows, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(rows))])
        return SparseRows(start, columns[order], np.full(len(rows), value))


def maximise(
    cost: Vector,
    rows: Matrix | SparseRows,
    limits: Vector,
    lo: Vector,
    hi: Vector,
    *,
    whole: bool = False,
    seconds: float = _SECONDS,
    tolerance: float = _TOLERANCE,
) -> LinearSolution:
    """Maximise cost·x subject to rows x ≤ limits and lo ≤ x ≤ hi, in whole numbers if asked, or fail after so
    many seconds."""
    import highspy  # a fifth of a second, for the few who need it

    sparse = rows if isinstance(rows, SparseRows) else SparseRows.dense(rows)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), len(limits)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lo, hi
    model.row_lower_, model.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = sparse.start, sparse.columns
    model.a_matrix_.value_ = sparse.values
    if whole:
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(cost)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", tolerance)
    solver.setOptionValue("dual_feasibility_tolerance", tolerance)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(model)
    solver.run()
    said = solver.getModelStatus().name
    status = next((status for status in SolverStatus if status.value == said), SolverStatus.FAILED)
    solution = solver.getSolution()
    return LinearSolution(status, np.array(solution.col_value), np.abs(np.array(solution.row_dual)))
