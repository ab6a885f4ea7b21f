"""Convex polygons cut by lines, exactly: the regions of a head with two features.

A region is what is left of a window after it was cut along every line that bounds it. Weights are dyadic
rationals and corners are fractions, so a region is empty exactly when its interior is, however thin it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from argmaxable.core.head import Head

# Corners (n × 2) in order, Fractions; floats (n × 3) where a picture in space needs no more.
Polygon = NDArray[Any]
Ranking = tuple[int, ...]

# Half the side of the window that stands for the whole plane: corners beyond it count as infinitely far.
_FAR = 2**40
_EMPTY: Polygon = np.empty((0, 2), dtype=object)
# How far the window reaches beyond the outermost corner, as a share of the way there.
_MARGIN = Fraction(2, 5)


def square(centre: tuple[Fraction | int, Fraction | int], half: Fraction | int) -> Polygon:
    """The window of that centre and half that side."""
    x, y = (Fraction(value) for value in centre)
    return np.array([[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]])


def part_above(polygon: Polygon, values: NDArray[Any]) -> Polygon:
    """The part of a convex polygon where an affine function, given by its values at the corners, is ≥ 0.

    Empty when it is nowhere above 0: a part without interior is no region.
    """
    if not (values > 0).any():
        return polygon[:0]
    corners = []
    for here, there, value, following in zip(
        polygon, np.roll(polygon, -1, axis=0), values, np.roll(values, -1), strict=True
    ):
        if value >= 0:
            corners.append(here)
        if (value > 0 > following) or (value < 0 < following):
            corners.append(here + (there - here) * (value / (value - following)))
    return np.array(corners)


def winner_regions(head: Head, window: Polygon) -> dict[int, Polygon]:
    """For each class that is the strict argmax somewhere inside the window, the polygon where it is."""
    require_plane(head)
    exact = exact_scores(head)
    regions = {number: _winner_region(head, exact, number, window) for number in range(head.classes)}
    return {number: region for number, region in regions.items() if len(region)}


def _winner_region(head: Head, exact: NDArray[Any], number: int, region: Polygon) -> Polygon:
    """Cut along the rival that takes most, until it is certain in floats that no other takes any."""
    rows, biases = head.rows(slice(None)), head.biases()
    rivals = np.delete(np.arange(head.classes), number)
    while len(rivals) and len(region):
        corners = region.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = corners @ (rows[number] - rows[rivals]).T + (biases[number] - biases[rivals])
            sizes = np.abs(corners) @ (np.abs(rows[number]) + np.abs(rows[rivals])).T
            sizes += np.abs(biases[number]) + np.abs(biases[rivals])
            # Six roundings lie between a gap and its true value; 32 half-ulps are more than enough.
            least = (gaps - 16 * np.finfo(np.float64).eps * sizes).min(axis=0)
        is_open = ~(least >= 0)  # also where a number overflowed
        rivals, least = rivals[is_open], least[is_open]
        if len(rivals):
            worst = int(np.argmin(least))
            region = part_above(region, values_at(region, exact[number] - exact[rivals[worst]]))
            rivals = np.delete(rivals, worst)
    return region


def ranking_regions(head: Head, window: Polygon) -> dict[Ranking, Polygon]:
    """For each ranking (highest class first) that some point inside the window has strictly, its polygon."""
    require_plane(head)
    scores = exact_scores(head)
    pieces = [window]
    for first, second in combinations(range(head.classes), 2):
        line = scores[first] - scores[second]
        halves = (part_above(piece, sign * values_at(piece, line)) for piece in pieces for sign in (1, -1))
        pieces = [half for half in halves if len(half)]
    return {ranking_of(scores @ np.append(middle(piece), 1)): piece for piece in pieces}


def ranking_of(values: NDArray[Any]) -> Ranking:
    """The classes by their scores, the highest first."""
    return tuple(sorted(range(len(values)), key=lambda number: -values[number]))


def window_of_regions(head: Head) -> Polygon:
    """A window in which every decision region can be seen, with all corners of all regions."""
    far = square((0, 0), _FAR)
    corners = {tuple(corner) for region in winner_regions(head, far).values() for corner in region}
    inner = [corner for corner in corners if max(map(abs, corner)) < _FAR]
    return _around(inner or _feet(_ties(head)))


def window_of_rankings(head: Head) -> Polygon:
    """A window in which every ranking can be seen: all crossings of the lines on which two classes tie."""
    lines = _ties(head)
    crossings = [
        ((b * f - c * e) / (a * e - b * d), (c * d - a * f) / (a * e - b * d))
        for (a, b, c), (d, e, f) in combinations(lines, 2)
        if a * e != b * d
    ]
    return _around(crossings or _feet(lines))


def _ties(head: Head) -> list[NDArray[Any]]:
    """The lines (a, b, c: where ax + by + c = 0) on which two classes tie."""
    pairs = combinations(exact_scores(head), 2)
    return [first - second for first, second in pairs if any((first - second)[:2])]


def _feet(lines: list[NDArray[Any]]) -> list[tuple[Fraction, ...]]:
    """The point of each line nearest to the origin: lines that are all parallel have no corners to show."""
    return [(-c * a / (a * a + b * b), -c * b / (a * a + b * b)) for a, b, c in lines]


def _around(points: Iterable[tuple[Fraction, ...]]) -> Polygon:
    found = np.array(list(points), dtype=object).reshape(-1, 2)
    if not len(found):
        return square((0, 0), 1)
    low, high = found.min(axis=0), found.max(axis=0)
    reach = max(high - low) / 2
    return square(tuple((low + high) / 2), reach * (1 + _MARGIN) if reach else 1)


def values_at(polygon: Polygon, line: NDArray[Any]) -> NDArray[Any]:
    """An affine function (its coefficients, the constant last) at the corners of a polygon."""
    values: NDArray[Any] = polygon @ line[:-1] + line[-1]
    return values


def area(polygon: Polygon) -> Fraction:
    """The area of a polygon in the plane."""
    (x, y), (right, above) = polygon.T, np.roll(polygon, -1, axis=0).T
    return abs(Fraction((x * above - y * right).sum())) / 2


def middle(polygon: Polygon) -> NDArray[Any]:
    """The centre of gravity of a polygon in the plane, a good place for its name."""
    x, y = (polygon - polygon[0]).T
    cross = x * np.roll(y, -1) - y * np.roll(x, -1)
    moments = [((axis + np.roll(axis, -1)) * cross).sum() / (3 * cross.sum()) for axis in (x, y)]
    return np.asarray(polygon[0] + np.array(moments))


def exact_scores(head: Head) -> NDArray[Any]:
    """Weights and bias of each class, classes × (features + 1), as Fractions."""
    table = np.column_stack([head.rows(slice(None)), head.biases()])
    return np.array([[Fraction(value) for value in row] for row in table.tolist()], dtype=object)


def require_plane(head: Head) -> None:
    """Raise InputError unless the head has two features."""
    if head.features != 2:
        raise InputError(f"regions are drawn for heads with 2 features, not {head.features}.")
