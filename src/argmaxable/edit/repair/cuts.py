"""Least solutions of what is known about raises: of cuts, which bound every sufficient raise from below, and
of points, at which a raise suffices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from argmaxable.compute.blocks import blocks

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector

# Policies of so few classes change a handful of times; this only stops rounding from cycling.
_MOST_POLICIES = 200
# From here on a system is solved by iteration: its rows have few entries, and a factor of it is dense.
_MANY = 600
_RESIDUAL, _MOST_ITERATIONS = 1e-11, 500


@dataclass(frozen=True, eq=False)
class Cut:
    """δ_c ≥ constant + Σ λ_i δ_i for every sufficient raise δ."""

    class_id: int
    constant: float
    classes: Ids
    weights: Vector

    def value(self, raises: Vector) -> float:
        """What the class needs beside these raises of all."""
        return self.constant + float(self.weights @ raises[self.classes])


def least_solution(
    cuts: list[Cut], classes: int, limit: float, *, room: float = 0.0, start: Vector | None = None
) -> Vector | None:
    """Least δ ≥ 0 with δ_c ≥ r + room + Σ λ_i δ_i for every cut, or None where there is none below the limit.

    Policy iteration: take the strongest cut of each class, solve that linear system, repeat. From below each
    solution is smaller than the least one of all cuts, so stopping early is sound. `start` is a solution of
    some of the cuts, with no more room.
    """
    raises = np.zeros(classes) if start is None else start
    if not cuts:
        return raises
    ids = np.array([cut.class_id for cut in cuts])
    constants = np.array([cut.constant + room for cut in cuts])
    starts = np.cumsum([0, *(len(cut.classes) for cut in cuts)])
    matrix = csr_array(
        (
            np.concatenate([cut.weights for cut in cuts]),
            np.concatenate([cut.classes for cut in cuts]),
            starts,
        ),
        shape=(len(cuts), classes),
    )
    policy = np.empty(0, np.intp)
    for _ in range(_MOST_POLICIES):
        values = constants + matrix @ raises
        order = np.lexsort((values, ids))
        best = order[np.append(np.flatnonzero(np.diff(ids[order])), len(order) - 1)]
        best = best[values[best] > 0]
        if np.array_equal(best, policy):
            break
        policy = best
        chosen = ids[policy]
        solution = _solved(matrix[policy][:, chosen], constants[policy], raises[chosen])
        # Where others' raises come back in full there is no solution: the linear one turns negative.
        if solution is None or not (solution.min() >= 0 and solution.max() <= limit):
            return None
        raises = np.zeros(classes)
        raises[chosen] = solution
    return raises


def _solved(among: csr_array, constants: Vector, near: Vector) -> Vector | None:
    """x = constants + among x, or None where the system is singular."""
    count = len(constants)
    if count >= _MANY:
        try:
            found = _by_iteration(among, constants, near)
        except ZeroDivisionError:  # it broke down
            found = None
        if found is not None and found.min() >= 0:  # a negative entry decides, and should not be rounding
            return found
    try:
        return np.asarray(np.linalg.solve(np.eye(count) - among.toarray(), constants))
    except np.linalg.LinAlgError:
        return None


@np.errstate(all="ignore")
def _by_iteration(among: csr_array, constants: Vector, near: Vector) -> Vector | None:
    """The same by BiCGSTAB (van der Vorst 1992) from a guess; None where it does not converge."""
    x = near
    residual = constants - (x - among @ x)
    shadow, direction, image = residual, np.zeros(len(x)), np.zeros(len(x))
    rho = alpha = omega = 1.0
    enough = _RESIDUAL * float(np.sqrt(constants @ constants))
    for _ in range(_MOST_ITERATIONS):
        if float(np.sqrt(residual @ residual)) <= enough:
            return x
        before, rho = rho, float(shadow @ residual)
        direction = residual + (rho / before) * (alpha / omega) * (direction - omega * image)
        image = direction - among @ direction
        alpha = rho / float(shadow @ image)
        half = residual - alpha * image
        moved = half - among @ half
        omega = float(moved @ half) / float(moved @ moved)
        x = x + alpha * direction + omega * half
        residual = half - omega * moved
        if not np.isfinite(alpha * omega):
            return None
    return None


def least_at_points(alone: Vector, among: Matrix, limit: float) -> Vector | None:
    """Least δ with δ ≥ alone and δ_c ≥ among_ci + δ_i, or None where there is none below the limit.

    These are longest paths. Each class follows the one that asks most of it, paths are added up, and classes
    that are asked for more by another follow that one: a circle has a gain above 0, and then there is none.
    """
    count = len(alone)
    raises, leader = alone, np.full(count, -1)
    for _ in range(count + 1):
        asks, asked = _strongest(among, raises)
        is_more = (asked > raises) & (asks != leader)  # from its leader only rounding asks for more
        if not is_more.any():
            return raises
        leader = np.where(is_more, asks, leader)
        found = _along_paths(alone, among, leader)
        if found is None or not found.max() <= limit:
            return None
        raises = found
    return None


def _strongest(among: Matrix, raises: Vector) -> tuple[Ids, Vector]:
    """Who asks most of each class, and how much."""
    asks, asked = np.empty(len(among), np.intp), np.empty(len(among))
    for block in blocks(len(among), len(among)):
        values = among[block] + raises
        asks[block] = values.argmax(axis=1)
        asked[block] = values[np.arange(len(values)), asks[block]]
    return asks, asked


def _along_paths(alone: Vector, among: Matrix, leader: Ids) -> Vector | None:
    """What each class needs when it follows its leader, and that one its own; None if some go in circles."""
    count = len(alone)
    follows = np.flatnonzero(leader >= 0)
    gain = np.append(alone, 0.0)
    gain[follows] = among[follows, leader[follows]]
    ahead = np.append(np.where(leader >= 0, leader, count), count)
    for _ in range(count.bit_length() + 1):  # twice as far each time
        gain += gain[ahead]
        ahead = ahead[ahead]
    return None if (ahead < count).any() else gain[:-1]
