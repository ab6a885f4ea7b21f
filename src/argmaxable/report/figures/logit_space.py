"""The space of logits without the direction (1, …, 1): a plane for three classes, R³ for four.

There the braid arrangement has a cone for each ranking, spanned by the indicators of its top 1, 2, … classes,
and a head's logits are a point, a line or a plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.report.figures.polygons import (
    Ranking,
    middle,
    part_above,
    ranking_of,
    ranking_regions,
    window_of_rankings,
)
from argmaxable.report.figures.style import INK, RGBA, colour_of, draw_faces, draw_lines, paint

if TYPE_CHECKING:
    from argmaxable.core.head import Head

Vectors = NDArray[np.float64]

# Straight pieces that stand for a circle, and for each side of a triangle on the sphere.
_CIRCLE, _SIDE = 96, 8
_ARC = 24
# Of a corner, relative to its size, and far below what can be seen.
_ROUNDING = 1e-9


def across_ones(classes: int) -> Vectors:
    """An orthonormal basis of the vectors with sum 0 (classes − 1 × classes)."""
    rows = np.tril(np.ones((classes - 1, classes))) - np.diag(np.arange(1.0, classes), 1)[: classes - 1]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def rays(ranking: Ranking) -> Vectors:
    """The edges of a ranking's cone, as unit vectors (classes − 1 × classes − 1)."""
    indicators = np.zeros((len(ranking) - 1, len(ranking)))
    for count, row in enumerate(indicators, start=1):
        row[list(ranking[:count])] = 1
    edges = indicators @ across_ones(len(ranking)).T
    return np.asarray(edges / np.linalg.norm(edges, axis=1, keepdims=True))


def reachable(head: Head) -> tuple[Vectors, Vectors]:
    """The head's logits as one of their points and the directions from it (features × classes − 1)."""
    basis = across_ones(head.classes)
    return basis @ head.biases(), (basis @ head.rows(slice(None))).T


def reaches_plane(head: Head) -> bool:
    """Whether the logits of a head with two features fill a plane; of weights on a line they don't."""
    return bool(np.linalg.matrix_rank(reachable(head)[1]) == 2)


def fan_sector(ranking: Ranking) -> Vectors:
    """The cone of a ranking of three classes, cut off at the unit circle."""
    first, second = rays(ranking)
    shares = np.linspace(0, 1, _ARC + 1)[:, None]
    arc = first * (1 - shares) + second * shares
    return np.vstack([np.zeros(2), arc / np.linalg.norm(arc, axis=1, keepdims=True)])


def draw_sphere(axes: Any, names: Sequence[str], towards: Vectors) -> None:
    """The unit sphere cut into the 24 rankings of four classes, seen from a direction."""
    faces: list[Vectors] = []
    colours: list[RGBA] = []
    for ranking in permutations(range(4)):
        for triangle in _triangles(rays(ranking)):
            # Darker towards the rim, as a ball is.
            light = 0.72 + 0.28 * float(np.clip(triangle.mean(axis=0) @ towards, 0, 1))
            faces.append(triangle)
            colours.append(paint(colour_of(ranking[0]), light=light))
    draw_faces(axes, faces, colours, colours, width=0.2)
    draw_lines(axes, _visible_arcs(towards), width=0.7)
    for ranking in permutations(range(4)):
        centre = _unit(rays(ranking).sum(axis=0))
        if centre @ towards > 0.45:  # others would be written at too steep an angle
            name = "".join(names[number] for number in ranking)
            axes.text(*(centre * 1.04), name, ha="center", va="center", fontsize=6.5, zorder=10)
    _set_up(axes, 1.0, towards, zoom=1.35)


def _visible_arcs(towards: Vectors) -> list[Vectors]:
    """Where two regions meet on the near side: arcs between the rays of two tops, one inside the other."""
    basis = across_ones(4)
    # In a fixed order, which sets would not have: files must not change without reason.
    tops = [frozenset(top) for count in (1, 2, 3) for top in combinations(range(4), count)]
    rays_of = {top: _unit(basis[:, list(top)].sum(axis=1)) for top in tops}
    shares = np.linspace(0, 1, _ARC + 1)[:, None]
    pieces = []
    for smaller, larger in ((a, b) for a in tops for b in tops if a < b):
        arc = rays_of[smaller] * (1 - shares) + rays_of[larger] * shares
        arc *= 1.005 / np.linalg.norm(arc, axis=1, keepdims=True)
        pieces += [np.array(ends) for ends in pairwise(arc) if min(end @ towards for end in ends) > 0.06]
    return pieces


def _triangles(corners: Vectors) -> list[Vectors]:
    """A triangle on the sphere as many small flat ones."""
    grid = {
        (i, j): corners[0] * i + corners[1] * j + corners[2] * (_SIDE - i - j)
        for i in range(_SIDE + 1)
        for j in range(_SIDE + 1 - i)
    }
    grid = {at: point / np.linalg.norm(point) for at, point in grid.items()}
    upward = [((i, j), (i + 1, j), (i, j + 1)) for i, j in grid if i + j < _SIDE]
    downward = [((i, j), (i - 1, j), (i, j - 1)) for i, j in grid if i and j]
    return [np.array([grid[at] for at in places]) for places in (*upward, *downward)]


def draw_feasible_plane(axes: Any, head: Head, towards: Vectors) -> None:
    """The plane of logits that a head of four classes and two features reaches, coloured where it meets the
    regions of the braid arrangement, among the arrangement's six planes."""
    pieces = feasible_pieces(head)
    faces = list(pieces.values())
    colours = [paint(colour_of(ranking[0]), alpha=0.92) for ranking in pieces]
    edges = [paint(INK, pale=0)] * len(faces)
    centre, radius = _feasible_disc(head)
    reach = float(np.linalg.norm(centre)) + radius
    upright = _unit(np.cross(*reachable(head)[1]))
    normals = _normals()
    for normal in normals:
        cuts = [(other, 0.0) for other in normals if other is not normal]
        # Cut along all others, no two faces intersect: they can be drawn one after the other by depth.
        parts = _cut([reach * _disc(normal)], [*cuts, (upright, float(upright @ centre))])
        faces += parts
        colours += [paint("#777777", pale=0, alpha=0.09)] * len(parts)
        edges += [paint("#777777", pale=0, alpha=0.35)] * len(parts)
    draw_faces(axes, faces, colours, edges, width=0.5)
    _set_up(axes, reach, towards, zoom=1.45)


def feasible_pieces(head: Head) -> dict[Ranking, Vectors]:
    """A disc of the head's plane (see draw_feasible_plane), cut into a polygon for each ranking it meets."""
    centre, radius = _feasible_disc(head)
    disc = centre + radius * _disc(np.cross(*reachable(head)[1]))
    pieces = _cut([disc], [(normal, 0.0) for normal in _normals()])
    basis = across_ones(4)
    return {ranking_of(piece.mean(axis=0) @ basis): piece for piece in pieces}


def _feasible_disc(head: Head) -> tuple[Vectors, float]:
    """Centre and radius of a disc in the head's plane, around all places where it crosses two planes."""
    point, directions = reachable(head)
    window = window_of_rankings(head)
    crossings = {tuple(corner) for region in ranking_regions(head, window).values() for corner in region}
    inner = [corner for corner in crossings if (window[0] < corner).all() and (corner < window[2]).all()]
    shown = np.array(inner) if inner else middle(window)[None]
    places = point + shown.astype(np.float64) @ directions
    centre = places.mean(axis=0)
    distance = np.linalg.norm(places - centre, axis=1).max()
    return centre, float(distance * 1.3) if distance > 0 else 1.0


def view_of(head: Head) -> Vectors:
    """A direction to look from: onto the head's plane, but not straight down."""
    _, directions = reachable(head)
    upright = _unit(np.cross(*directions))
    return _unit(upright + 0.75 * _unit(directions[0]) - 0.3 * _unit(np.cross(upright, directions[0])))


def _cut(pieces: list[Vectors], planes: list[tuple[Vectors, float]]) -> list[Vectors]:
    """Polygons in space cut along planes (normal · y = offset)."""
    for normal, offset in planes:
        halves = [
            part_above(piece, sign * _distances(piece, normal, offset))
            for piece in pieces
            for sign in (1, -1)
        ]
        pieces = [half for half in halves if len(half)]
    return pieces


def _distances(piece: Vectors, normal: Vectors, offset: float) -> Vectors:
    """Of the corners from a plane; corners on it would otherwise be cut off as slivers by their rounding."""
    distances = piece @ normal - offset
    return np.where(np.abs(distances) > _ROUNDING * np.abs(piece).max(), distances, 0.0)


def _disc(normal: Vectors) -> Vectors:
    """The unit circle across a direction, as a polygon."""
    first = _unit(np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))]))
    second = np.cross(_unit(normal), first)
    angles = np.linspace(0, 2 * np.pi, _CIRCLE, endpoint=False)[:, None]
    return np.asarray(np.cos(angles) * first + np.sin(angles) * second)


def _normals() -> list[Vectors]:
    """Of the six planes on which two of four classes tie."""
    basis = across_ones(4)
    return [_unit(basis[:, first] - basis[:, second]) for first, second in combinations(range(4), 2)]


def _unit(vector: Vectors) -> Vectors:
    return np.asarray(vector / np.linalg.norm(vector))


def _set_up(axes: Any, reach: float, towards: Vectors, *, zoom: float) -> None:
    axes.set_proj_type("ortho")
    axes.view_init(
        elev=np.degrees(np.arcsin(towards[2])), azim=np.degrees(np.arctan2(towards[1], towards[0]))
    )
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    axes.set_box_aspect((1, 1, 1), zoom=zoom)
    axes.set_axis_off()
