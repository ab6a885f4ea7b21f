"""An independent answer for small heads without bias: the vertices of the hull, by Qhull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from argmaxable.core.verdict import Status

if TYPE_CHECKING:
    from argmaxable.core.result import Result

LARGEST_DIMENSION = 9


@dataclass(frozen=True)
class Agreement:
    """How our unargmaxable classes compare with the rows that are no vertex of the hull."""

    precision: float
    recall: float
    decided: bool
    note: str = ""

    def describe(self) -> str:
        if self.note:
            return f"Qhull: {self.note}"
        text = f"Compared with Qhull: precision {self.precision:.0%}, recall {self.recall:.0%}"
        return text if self.decided else text + " (counting undecided classes as unargmaxable)"


def compare_with_qhull(result: Result) -> Agreement:
    """Precision and recall of "unargmaxable" against Qhull's hull (head without bias)."""
    rows = result.head.rows(slice(None))
    try:
        vertices = _vertices(rows)
    except QhullError:
        return Agreement(0.0, 0.0, False, "needs more classes than features, in general position")
    truth = np.ones(len(rows), bool)
    truth[vertices] = False
    ours = np.array([verdict.status is not Status.ARGMAXABLE for verdict in result.verdicts])
    both = float((truth & ours).sum())
    precision = both / ours.sum() if ours.any() else 1.0
    recall = both / truth.sum() if truth.any() else 1.0
    return Agreement(float(precision), float(recall), not result.undecided)


def _vertices(
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    if rows.shape[1] == 1:
        return np.array([int(rows.argmin()), int(rows.argmax())])
    return np.asarray(ConvexHull(rows).vertices, np.intp)
