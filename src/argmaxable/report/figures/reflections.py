"""The way of one class through reflections, in the plane: Figure 5 of Grivas et al. 2022, as a picture."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.boxes import Everywhere
from argmaxable.questions.argmax import verify
from argmaxable.report.figures.examples import HARD_CLASS
from argmaxable.report.figures.polygons import require_plane, square, winner_regions
from argmaxable.report.figures.regions import colours_of, draw_regions, require_few_classes
from argmaxable.report.figures.style import FAINT, INK, PAGE, drawing, legible
from argmaxable.run.plan import ONE_PROCESS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.core.arrays import Ids, Matrix
    from argmaxable.core.head import Head

# More arrows than this can't be told apart.
_MOST_STEPS = 20
# The window reaches this far beyond the farthest point.
_MARGIN = 1.25


def reflections(head: Head = HARD_CLASS, *, title: str | None = None) -> Figure:
    """The class that takes most reflections, of those that at most 20 find, and how far it is behind on the
    way. Each arrow crosses the line on which the class ties with the one that wins at the arrow's tail.

    Raises InputError for another number of features than two, or more than 200 classes.
    """
    require_plane(head)
    require_few_classes(head)
    class_id, points, winners = _longest(head)
    window = square((0, 0), Fraction(_MARGIN * float(np.abs(points).max()) or 1.0))
    with drawing(PAGE, PAGE / 2 + 0.3, title or head.name) as figure:
        left, right = figure.subplots(1, 2)
        regions = winner_regions(head, window)
        result = verify(head, Everywhere(), engine=ONE_PROCESS)
        draw_regions(left, result, regions, window, colours_of(regions))
        _draw_path(left, points)
        count = len(points) - 1
        name = legible(head.label(class_id))
        left.set_title(f"{name} wins after {count} reflection{'' if count == 1 else 's'}")
        _draw_gaps(right, head, class_id, points, winners)
    return figure


def _longest(head: Head) -> tuple[int, Matrix, Ids]:
    """The class with the longest way, its points, and who wins at each."""
    ways = [(class_id, *_way(head, class_id)) for class_id in range(head.classes)]
    # Never empty: where ‖w‖²/2 + b is largest, the class wins at its own row.
    found = [way for way in ways if way[2][-1] == way[0]]
    return max(found, key=lambda way: len(way[1]))


def _way(head: Head, class_id: int) -> tuple[Matrix, Ids]:
    """The paper's algorithm from x = w_c: where it has been, and who won there."""
    rows, biases = head.rows(slice(None)), head.biases()
    points, winners = [rows[class_id]], []
    for _ in range(_MOST_STEPS + 1):
        x = points[-1]
        winners.append(int(np.argmax(rows @ x + biases)))
        normal = rows[class_id] - rows[winners[-1]]
        if not normal.any():  # it wins, or its twin does
            break
        lead = float(normal @ x + biases[class_id] - biases[winners[-1]])
        points.append(x - 2 * lead / float(normal @ normal) * normal)
    return np.array(points[: len(winners)]), np.array(winners)


def _draw_path(axes: Any, points: Matrix) -> None:
    reach = float(np.abs(axes.get_xlim()).max()) * 3
    for here, there in pairwise(points):
        middle, along = (here + there) / 2, there - here
        across = np.array([-along[1], along[0]]) / np.hypot(*along) * reach
        ends = np.array([middle - across, middle + across])
        axes.plot(*ends.T, color=FAINT, linewidth=0.7, linestyle="--", scalex=False, scaley=False)
        axes.annotate(
            "", there, here, arrowprops={"arrowstyle": "->", "color": INK, "shrinkA": 3, "shrinkB": 3}
        )
    axes.scatter(*points.T, s=14, color=INK, zorder=3)
    for number, point in enumerate(points):
        axes.annotate(str(number), point, xytext=(4, 4), textcoords="offset points", color=INK)


def _draw_gaps(axes: Any, head: Head, class_id: int, points: Matrix, winners: Ids) -> None:
    """How far the class is behind the winner after each reflection."""
    scores = points @ head.rows(slice(None)).T + head.biases()
    behind = scores[np.arange(len(points)), winners] - scores[:, class_id]
    axes.plot(behind, color=INK, marker="o", markersize=4, clip_on=False)
    for number, winner in enumerate(winners[:-1].tolist()):
        axes.annotate(
            f"{legible(head.label(winner))} wins", (number, behind[number]), xytext=(5, 4),
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xlabel="reflections", ylabel="logits behind the winner", title="how far behind")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.set_box_aspect(1)
