"""Room for the rounding of float32 in bounds that interval arithmetic gives.

A sum, difference, product or quotient is rounded once, and rounding never turns an order round: no result is
beyond the bound as float32 rounds it. A bound that is a number of float32 therefore stays as it is; any
other becomes the second number of float32 outwards at most, since it was itself computed in float64.

A sum of n numbers, in whatever order it is taken, rounds each at most n times, and a mean twice more: of n
numbers of one sign it is off by at most (n + 2)·2⁻²⁴ of itself, to first order. Of numbers above a bound
it is at least the same sum of the bound alone. Bounds of 0 and infinite bounds need no room.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.models.graph.layout import axes_of, counted_from_end

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.models.graph.nodes import Graph, Node

_UNIT = 2.0**-24
# The least positive number that float32 holds in full; some runtimes take what is smaller as 0.
_LEAST = 2.0**-126
# With more numbers than this the second order of the bound on a mean counts, too.
_MOST_SUMMANDS = 2**19
AVERAGING = frozenset({"ReduceMean", "AveragePool", "GlobalAveragePool"})


def outwards(lo: Vector, hi: Vector) -> tuple[Vector, Vector]:
    """Bounds for what float32 makes of results within these bounds."""
    return -_upwards(-lo) + 0.0, _upwards(hi) + 0.0  # no −0


def _upwards(bound: Vector) -> Vector:
    with np.errstate(over="ignore"):
        single = np.asarray(bound).astype(np.float32)
    beyond = np.nextafter(single, np.float32(math.inf)).astype(np.float64)
    rounded = np.where(np.equal(single, bound), single.astype(np.float64), beyond)
    # What is below 0 stays below or becomes 0.
    rounded = np.where(np.less_equal(bound, 0), np.minimum(rounded, 0.0), rounded)
    return np.where(np.logical_and(np.less(bound, 0), np.greater(bound, -_LEAST)), 0.0, rounded)


def mean_outwards(lo: Vector, hi: Vector, count: int | None) -> tuple[Vector, Vector]:
    """Bounds for means of `count` numbers within bounds; where it is unknown, only those that are 0."""
    if count is None or count > _MOST_SUMMANDS:
        return np.where(np.equal(lo, 0), lo, -np.inf), np.where(np.equal(hi, 0), hi, np.inf)
    # The second order is below a sixteenth of the first.
    room = (count + 2) * _UNIT * (1 + 2.0**-4)
    return outwards(lo - np.abs(_finite(lo)) * room, hi + np.abs(_finite(hi)) * room)


def sum_outwards(lo: Vector, hi: Vector, parts: list[tuple[Vector, Vector]]) -> tuple[Vector, Vector]:
    """Bounds for sums of several tensors, whose bounds are the parts, in whatever order they are taken."""
    room = (len(parts) + 2) * _UNIT
    below = sum((np.abs(_finite(part)) for part, _ in parts), start=np.zeros(())) * room
    above = sum((np.abs(_finite(part)) for _, part in parts), start=np.zeros(())) * room
    return outwards(lo - below, hi + above)


def _finite(bound: Vector) -> Vector:
    return np.where(np.isfinite(bound), bound, 0.0)


def summands(graph: Graph, node: Node) -> int | None:
    """How many numbers an averaging operation takes the mean of, at most; None where that is not known."""
    if node.op == "AveragePool":
        kernel = node.integers("kernel_shape")
        return math.prod(kernel) if kernel else None
    shape = graph.shapes.get(node.input(0))
    if shape is None:
        return None
    if node.op == "GlobalAveragePool":
        places = frozenset(range(2 - len(shape), 0))
    else:
        places = counted_from_end(axes_of(graph, node), len(shape)) or frozenset()
    if not places or min(places) < -len(shape):
        return None
    lengths = [length for place in places if isinstance(length := shape[place], int) and length >= 0]
    return math.prod(lengths) if len(lengths) == len(places) else None
