"""What a repair is to do to which head, and what it proposes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.edit.repair.rows import Steps, steps_for

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.progress import Deadline, ProgressCallback

# Room for the rounding of our own sums, in units of the margin.
ROOM = 1e-6


@dataclass(frozen=True, eq=False)
class RepairTask:
    """What is to be done to which head."""

    head: Head
    domain: Domain
    margin: float
    chosen: Ids
    standing: Ids
    standing_lower: Vector
    standing_points: Matrix  # points z of the domain
    blockers: Vector  # for each class, how much it stands in the way of the unargmaxable ones
    deadline: Deadline
    workers: int
    progress: ProgressCallback

    def standing_targets(self, unit: float) -> Vector:
        """Half of the margin a class has, or of the one asked for, and room for rounding if it has that."""
        half = np.minimum(self.standing_lower, self.margin) / 2
        return np.asarray(np.minimum(half + unit, self.standing_lower))

    def steps(self) -> Steps:
        """In which features rows may move, and how far."""
        coordinates = MarginSolver(Checker(self.head, self.domain)).coordinates
        return steps_for(self.head, self.domain, self.chosen, self.margin, coordinates.used)


@dataclass(frozen=True, eq=False)
class Draft:
    """A head that should do, points z at which the chosen classes should win, and bounds on the raises."""

    head: Head
    points: Matrix
    reached: float | None = None
    least: float | None = None
