"""The one place that knows HiGHS. Its answers are floats within a tolerance and never trusted: the
caller checks what they claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import highspy
import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Vector

# HiGHS's default tolerance of 1e-7 is larger than margins of real heads; 1e-10 is its smallest.
_TOLERANCE = 1e-10
_SECONDS = 600.0


class Outcome(Enum):
    """What HiGHS says; anything not listed counts as failed, never as an answer."""

    OPTIMAL = highspy.HighsModelStatus.kOptimal
    UNBOUNDED = highspy.HighsModelStatus.kUnbounded
    INFEASIBLE = highspy.HighsModelStatus.kInfeasible
    FAILED = highspy.HighsModelStatus.kNotset


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Outcome, primal point, and the multiplier of each row (≥ 0 for a maximum over `≤` rows)."""

    outcome: Outcome
    x: Vector
    multipliers: Vector


def maximise(
    cost: Vector,
    rows: NDArray[np.float64],
    limits: Vector,
    lo: Vector,
    hi: Vector,
    *,
    seconds: float = _SECONDS,
) -> LinearSolution:
    """Maximise cost·x subject to rows x ≤ limits and lo ≤ x ≤ hi, with dense rows, or fail after so many
    seconds."""
    count, size = rows.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = size, count
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lo, hi
    model.row_lower_, model.row_upper_ = np.full(count, -highspy.kHighsInf), limits
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.arange(count + 1) * size
    model.a_matrix_.index_ = np.tile(np.arange(size), count)
    model.a_matrix_.value_ = rows.ravel()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("primal_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("dual_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(model)
    solver.run()
    outcome = next((o for o in Outcome if o.value == solver.getModelStatus()), Outcome.FAILED)
    solution = solver.getSolution()
    return LinearSolution(outcome, np.array(solution.col_value), np.abs(np.array(solution.row_dual)))
