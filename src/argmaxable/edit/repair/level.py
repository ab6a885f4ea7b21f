"""A first guess at the raises of classes that have all but the same row.

Such classes win near one point: the one at which any of them would do best if the rest were out of the way.
Raised to one and the same level there, they leave each class a question of its own: does it win by its
margin in some direction from that point? So no class has to wait for the raises of the rest, and the lowest
level at which a few classes win is found in a few solves. Nothing here is proven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.edit.repair.alike import Group
    from argmaxable.edit.repair.margin import Estimate, MarginSolver

# Classes that are solved at each level, and the least that have to be alike.
_SAMPLE, _FEWEST = 16, 32
# The first level, in units of the target above the best of the rest; then twice as far each time.
_FIRST_LEVEL, _MOST_LEVELS = 8.0, 8
# A class that would need this many times the raise of one that is alike has another place to win.
_FAR = 2.0

# Margins of classes beside raises of all, as exact as the targets ask for; None where the time was over.
Solve = Callable[["Ids", "Vector"], "list[Estimate] | None"]


@dataclass(frozen=True, eq=False)
class RaisedLevel:
    """Raises for all classes of the head; the scores of these, without raises, at the point chosen; the
    classes that are alike, with the one in their middle; of these a sample that was solved; and the classes
    that win elsewhere."""

    raises: Vector
    scores: Vector
    stem: int
    members: Ids
    sample: Ids
    far: Ids

    def alike(self, ids: Ids) -> tuple[Ids, Ids]:
        """Those of the classes that were not solved but win near the point, each with one that was."""
        rest = np.setdiff1d(ids, np.concatenate([self.sample, self.far]))
        return rest, np.resize(self.sample, len(rest))


def first_raises(
    solver: MarginSolver, ids: Ids, targets: Vector, group: Group, solve: Solve, *, more: float = 1.0
) -> RaisedLevel | None:
    """Raises of `ids` at which most of them should reach their targets, if those of the group are alike: to
    the lowest level at which a few do, times `more`. None where there are too few of them, or no such level
    was found."""
    members, target = group.members, float(targets.max())
    if len(members) < _FEWEST:
        return None
    away = np.zeros(solver.classes)
    away[ids] = -2 * solver.farthest_gap()
    away[members[0]] = 0.0
    alone = solve(members[:1], away)
    if alone is None:
        return None
    scores = solver.scores(alone[0].x[None])[0]
    sample = members[np.linspace(0, len(members) - 1, _SAMPLE).astype(np.intp)]
    below, least = 0.0, -np.inf
    height = _FIRST_LEVEL * target
    for _ in range(_MOST_LEVELS):
        level = _at_height(height, ids, scores, group, sample, target)
        found = solve(sample, level.raises)
        if found is None:
            return None
        before, least = least, min(estimate.lower for estimate in found)
        if least >= target:
            # Margins are concave in the height: they are above the straight line between two of them.
            share = (target - before) / (least - before) if before > -np.inf and least > before else 1.0
            lowest = below + share * (height - below)
            level = _at_height(more * lowest, ids, scores, group, sample, target)
            return _with_far(level, ids, targets, solve)
        below, height = height, 2 * height
    return None


def _at_height(
    height: float, ids: Ids, scores: Vector, group: Group, sample: Ids, target: float
) -> RaisedLevel:
    """All classes that much above the best score at the point, but for those that are too far below it."""
    raises = np.zeros(len(scores))
    raises[ids] = np.maximum(scores.max() + height - scores[ids], 0.0)
    far = ids[raises[ids] > _FAR * np.median(raises[group.members])]
    raises[far] = 0.0
    if raises[group.stem] > 0:  # in the middle of the rest, it wins at the point itself or nowhere
        raises[group.stem] += target
    return RaisedLevel(raises, scores, group.stem, group.members, sample, far)


def _with_far(level: RaisedLevel, ids: Ids, targets: Vector, solve: Solve) -> RaisedLevel | None:
    """The same with raises for classes that win elsewhere: what each needs beside the rest."""
    if not len(level.far):
        return level
    found = solve(level.far, level.raises)
    if found is None:
        return None
    wanted, raises = targets[np.isin(ids, level.far)], level.raises.copy()
    raises[level.far] = np.maximum(wanted - np.array([estimate.lower for estimate in found]), 0.0)
    return replace(level, raises=raises)
