"""A picture of a class between those that block it: the directions from it to them, in the plane that shows
most of these.

Seen from the class's own row, the blockers' rows are x_i = w_i − w, and a certificate without help from the
bias or the domain's bounds says Σ λ_i x_i = 0: the class lies in their hull. So it does when each x_i is
divided by its length, which keeps one far away from hiding all others. The plane is spanned by the two
leading right singular vectors of the matrix with rows √λ_i · x_i / |x_i|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from argmaxable.core.verdict import Status

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix
    from argmaxable.core.head import Head
    from argmaxable.core.verdict import Verdict
    from argmaxable.serve.rows import Reference

# Half of the drawing, and what is left of it for names.
_REACH = 175.0
_LONGEST_LABEL = 12


@dataclass(frozen=True)
class Dot:
    """A class in the drawing; `y` grows downwards."""

    x: float
    y: float
    size: float = 0.0
    label: str = ""

    @property
    def label_y(self) -> float:
        """Above its dot, or below it in the lower half: away from the middle."""
        return round(self.y - self.size - 5 if self.y < 0 else self.y + self.size + 15, 1)


@dataclass(frozen=True)
class BlockerPicture:
    """The class in the origin, its heaviest blockers by name, the others as dots, and the hull of all."""

    heaviest: tuple[Dot, ...]
    others: tuple[Dot, ...]
    hull: str
    share: str

    @property
    def own_label_y(self) -> int:
        """Above the class in the middle, or below it where the name of the nearest blocker is above."""
        nearest = min(self.heaviest, key=lambda dot: dot.x**2 + dot.y**2)
        return 26 if nearest.y < 0 else -15


def standing_of(head: Head | None, verdict: Verdict, heaviest: Sequence[Reference]) -> BlockerPicture | None:
    """The picture; None for a class that fewer than three others block together."""
    certificate = verdict.certificate
    if head is None or certificate is None or verdict.status is not Status.UNARGMAXABLE or len(heaviest) < 3:
        return None
    used = certificate.weights > 0
    classes, weights = certificate.classes[used], certificate.weights[used]
    if classes.max(initial=-1) >= head.classes:
        return None
    with np.errstate(over="ignore"):
        seen = head.rows(classes) - head.rows(np.array([verdict.class_id]))
        seen /= np.abs(seen).max(axis=1, keepdims=True, initial=np.finfo(float).tiny)
    lengths = np.linalg.norm(seen, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return None
    points, share = _plane(seen / lengths, weights)
    places = {int(class_id): place for place, class_id in enumerate(classes)}
    named = [places[each.class_id] for each in heaviest]
    largest = max(each.share or 0.0 for each in heaviest)
    dots = [
        _dot(points[place], 14 * float(np.sqrt((each.share or 0.0) / largest)), each.label)
        for place, each in zip(named, heaviest, strict=True)
    ]
    others = [_dot(point) for place, point in enumerate(points) if place not in set(named)]
    return BlockerPicture(tuple(dots), tuple(others), _hull(points), f"{100 * share:.0f} %")


def _plane(seen: Matrix, weights: Matrix) -> tuple[Matrix, float]:
    """The rows in the plane, scaled to the drawing, and the share of the spread that it shows."""
    _, values, directions = np.linalg.svd(np.sqrt(weights)[:, None] * seen, full_matrices=False)
    points = np.zeros((len(seen), 2))
    points[:, : min(2, len(directions))] = seen @ directions[:2].T
    squares = values**2
    farthest = float(np.abs(points).max()) or 1.0
    return points * (_REACH / farthest), float(squares[:2].sum() / (squares.sum() or 1.0))


def _dot(point: Matrix, size: float = 0.0, label: str = "") -> Dot:
    return Dot(
        round(float(point[0]), 1),
        round(-float(point[1]), 1),
        round(max(size, 2.0), 1),
        label[:_LONGEST_LABEL],
    )


def _hull(points: Matrix) -> str:
    """The corners of the hull, as an SVG polygon has them; none of points on a line."""
    try:
        corners = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return ""
    return " ".join(f"{x:.1f},{-y:.1f}" for x, y in corners)
