"""Moving rows where biases can't help: identical or nearly identical rows, and heads without a bias.

Rows u and v can both win by a margin m only if the domain is at least 2m wide in the direction w_u − w_v, and
the nearer the rows are, the farther apart their inputs and the larger the raises. So a row that is too near
another is moved along one feature, each by its own; how far balances the two costs (`step_length`).
Without a bias a row grows away from the mean of all rows until it has its margin.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import blocks

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.edit.repair.margin import MarginSolver

# A step must survive rounding to the weight's dtype: at least so many units in the last place.
_LEAST_UNITS = 4
# A row without a bias is tried from the first to the last of these multiples of its distance from the mean.
_FIRST_GROWTH, _LARGEST_GROWTH = 1 / 256, 64.0
# A row this near to the mean, in units of the usual distance, has no direction of its own.
_AT_THE_MEAN = 1e-3
# Single features tried where a row's own direction leads nowhere.
_OTHER_WAYS = 16
# Growth is found to within this share.
_GROWTH_ACCURACY = 0.01
# What a change of logits in the corners of the domain, which few inputs reach, counts beside one of the bias.
# At 1/16 PP-OCRv4's biases change by a third of what they would at 1, and are found in half the rounds.
_CORNERS = 1 / 16
# The square of a distance by its three products is off by rounding, by less than this share of the rows'.
_ROUGH = 1e-9
_SEED = 8


@dataclass(frozen=True, eq=False)
class Steps:
    """Directions for rows to move in: single features, up and down, best first."""

    features: Ids
    signs: Vector
    length: float


def steps_for(head: Head, domain: Domain, chosen: Ids, margin: float, varying: Ids) -> Steps:
    """Features, in order of how little others stand in the way there, and how far to move.

    Separating two classes by m with rows a apart takes inputs m/a apart, over which rivals gain reach·m/a;
    moving a row by a changes its logit by at most h·a over the domain, and by far less at inputs that are not
    in its corners: q·h·a. The sum reach·m/(2a) + q·h·a is least at a = √(reach·m/(2qh)).
    """
    rows = head.rows(slice(None))
    middle = rows[chosen].mean(axis=0)
    reach = np.concatenate([rows.max(axis=0) - middle, middle - rows.min(axis=0)])[_both(varying, head)]
    features, signs = np.tile(varying, 2), np.repeat([1.0, -1.0], len(varying))
    units = np.eye(head.features)[varying]
    widths = np.maximum(*(domain.support_bound(side * units, np.zeros_like(units)) for side in (1, -1)))
    order = np.argsort(reach, kind="stable")
    length = math.sqrt(float(np.median(reach)) * margin / (2 * _CORNERS * float(np.median(widths))))
    return Steps(features[order], signs[order], length)


def _both(varying: Ids, head: Head) -> Ids:
    return np.concatenate([varying, varying + head.features])


def crowded_rows(head: Head, chosen: Ids, standing: Ids, distance: float) -> dict[int, int]:
    """The chosen classes whose rows are nearer than that to a standing row, or to an earlier chosen one that
    stays where it is, and the class that each is near to."""
    near_to: dict[int, int] = {}
    rows = head.rows(chosen)
    nearest = _nearest(head, rows, standing, distance)
    stays = nearest < 0  # unless an earlier one that stays is too near
    squares = (rows * rows).sum(axis=1)
    limit = distance * distance + _ROUGH * (distance * distance + float(squares.max(initial=0.0)))
    for block in blocks(len(rows), len(rows)):
        may_be_near = squares[block, None] + squares - 2 * (rows[block] @ rows.T) <= limit
        for place, candidates in zip(range(block.start, block.stop), may_be_near, strict=True):
            class_id = int(chosen[place])
            if nearest[place] >= 0:
                near_to[class_id] = int(nearest[place])
                continue
            others = np.flatnonzero(candidates[:place] & stays[:place])
            apart = np.sqrt(((rows[others] - rows[place]) ** 2).sum(axis=1))
            if len(apart) and apart.min() < distance:
                near_to[class_id] = int(chosen[others[apart.argmin()]])
                stays[place] = False
    return near_to


def _nearest(head: Head, rows: Matrix, standing: Ids, distance: float) -> Ids:
    """For each row a standing class nearer than the distance, or −1."""
    found = np.full(len(rows), -1)
    if not len(standing):
        return found
    theirs = head.rows(standing)
    squares = (theirs * theirs).sum(axis=1)
    for block in blocks(len(rows), len(standing)):
        mine = rows[block]
        rough = (mine * mine).sum(axis=1)[:, None] + squares - 2 * (mine @ theirs.T)
        nearest = rough.argmin(axis=1)
        apart = np.sqrt(((theirs[nearest] - mine) ** 2).sum(axis=1))
        found[block] = np.where(apart < distance, standing[nearest], -1)
    return found


def stepped_rows(head: Head, near_to: dict[int, int], steps: Steps) -> dict[int, NDArray[Any]]:
    """New rows, in the head's dtype, for classes that are too near another: each takes a step of its own."""
    counts = Counter(near_to.values())
    directions = {near: _directions(head.features, steps, count) for near, count in counts.items()}
    rows = {}
    for class_id, near in near_to.items():
        direction = next(directions[near])
        row = head.weight[class_id]
        units = _LEAST_UNITS * np.abs(np.spacing(row)).astype(np.float64)
        moved = row.astype(np.float64) + direction * np.maximum(steps.length, units)
        rows[class_id] = moved.astype(row.dtype)
    return rows


def _directions(features: int, steps: Steps, count: int) -> Iterator[Vector]:
    """Vectors that differ, of length one, one for each row: features up and down; for more rows than that,
    halfway between two of these; then random ones, which in one or two features, where there are few
    directions, differ in length as well.

    In a box a vector of two features moves logits √2 times as far as one of one feature, a random one of
    120 features nine times as far.
    """
    kinds = len(steps.features)
    if count <= kinds:
        yield from (_unit(features, steps, [place]) for place in range(kinds))
    for apart in range(1, (kinds + 1) // 2):
        for place in range(kinds):
            pair = [place, (place + apart) % kinds]
            if steps.features[pair[0]] != steps.features[pair[1]]:
                yield _unit(features, steps, pair)
    generator = np.random.default_rng(_SEED)
    varying = np.unique(steps.features)
    while True:
        unit = np.zeros(features)
        unit[varying] = generator.standard_normal(len(varying))
        length = 1 + generator.random() if len(varying) <= 2 else 1.0
        yield unit * (length / np.sqrt(unit @ unit))


def _unit(features: int, steps: Steps, places: list[int]) -> Vector:
    """The vector of length one between some of the steps' directions."""
    unit = np.zeros(features)
    unit[steps.features[places]] = steps.signs[places] / math.sqrt(len(places))
    return unit


def grown_row(
    solver: MarginSolver, class_id: int, target: float, row: NDArray[Any], away: Vector
) -> tuple[NDArray[Any], Vector] | None:
    """The row, moved by the least multiple of `away` that gives the class its target (in units of the
    coordinates), and a point that shows it; None where none up to the largest does. The solver
    takes over the new row."""
    still = np.zeros(solver.classes)

    def attempt(multiple: float) -> tuple[NDArray[Any], Vector] | None:
        moved = (row.astype(np.float64) + multiple * away).astype(row.dtype)
        solver.place_row(class_id, moved)
        found = solver.solve(class_id, still, target=target, tolerance=target / 8)
        return (moved, found.x) if found.lower >= target else None

    low, high, best = 0.0, 0.0, attempt(0.0)
    while best is None and high < _LARGEST_GROWTH:
        low, high = high, max(2 * high, _FIRST_GROWTH)
        best = attempt(high)
    if best is None:
        solver.place_row(class_id, row)
        return None
    while high - low > _GROWTH_ACCURACY * high:
        middle = (low + high) / 2
        found = attempt(middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    solver.place_row(class_id, best[0])
    return best


class Ways:
    """The directions in which rows may grow, as long as rows mostly are: away from the mean of all rows, or
    along a feature of its own where another row lies in the same place.

    Single features are the last resort: where x can't be negative, growing downwards helps nobody.
    """

    def __init__(self, head: Head, chosen: Ids, near_to: dict[int, int], steps: Steps) -> None:
        self.head, self.steps = head, steps
        rows = head.rows(slice(None))
        self.mean = rows.mean(axis=0)
        lengths = np.sqrt(((rows - self.mean) ** 2).sum(axis=1))
        self.usual = float(np.median(lengths))
        near = {
            class_id: near_to.get(class_id, -1)
            for class_id in chosen.tolist()
            if class_id in near_to or lengths[class_id] < _AT_THE_MEAN * self.usual
        }
        counts = Counter(near.values())
        units = {place: _directions(head.features, steps, count) for place, count in counts.items()}
        self._apart = {class_id: next(units[place]) * self.usual for class_id, place in near.items()}

    def of(self, class_id: int) -> Iterator[Vector]:
        """Directions for one class, best first."""
        if class_id in self._apart:
            yield self._apart[class_id]
        else:
            yield self.head.rows(np.array([class_id]))[0] - self.mean
        turn = class_id % len(self.steps.features)  # not all by the same feature
        units = itertools.islice(_directions(self.head.features, self.steps, 1), turn, turn + _OTHER_WAYS)
        yield from (unit * self.usual for unit in units)
