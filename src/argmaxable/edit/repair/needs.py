"""What raise each class needs at a point of its own, beside any raises of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.edit.repair.cuts import least_at_points

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.edit.repair.margin import MarginSolver


@dataclass(frozen=True, eq=False)
class Needs:
    """Class number k of some needs δ_k ≥ alone_k against all that are never raised, and
    δ_k ≥ among_ki + δ_i against each that may be."""

    alone: Vector
    among: Matrix

    def beside(self, raises: Vector) -> Vector:
        """The raise that each class needs when these are raised."""
        costs = np.empty(len(self.alone))
        for block in blocks(len(costs), len(raises)):
            costs[block] = (self.among[block] + raises).max(axis=1)
        return np.asarray(np.maximum(self.alone, costs))

    def least(self, limit: float) -> Vector | None:
        """The least raise that suffices at the points; None where there is none below the limit."""
        return least_at_points(self.alone, self.among, limit)

    def of_leaders(self, leaders: Ids, more: Vector) -> Needs:
        """The same where each raise is that of a leader (by its number among these classes) and some more;
        what a class needs against those that follow it is not counted."""
        order = np.argsort(leaders, kind="stable")
        starts = np.searchsorted(leaders[order], np.arange(len(self.alone)))
        among = np.maximum.reduceat(self.among[:, order] + more[order], starts, axis=1)
        np.fill_diagonal(among, -np.inf)
        return Needs(self.alone, among)


def needs_at(
    solver: MarginSolver, ids: Ids, targets: Vector, points: Matrix, places: Ids | slice = slice(None)
) -> Needs:
    """What those of the classes `ids` that are in these places need, each at its own of their points."""
    mine, points, targets = ids[places], points[places], targets[places]
    own = np.einsum("ij,ij->i", points, solver.rows[mine]) + solver.biases[mine]
    among = (targets - own)[:, None] + solver.scores(points, ids)
    among[np.arange(len(mine)), np.arange(len(ids))[places]] = -np.inf
    strongest = np.full(len(mine), -np.inf)
    for block in blocks(len(mine), solver.classes):
        scores = solver.scores(points[block])
        scores[:, ids] = -np.inf
        strongest[block] = scores.max(axis=1)
    return Needs(np.maximum(targets - own + strongest, 0.0), among)
