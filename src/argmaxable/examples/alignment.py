"""Where in a line its characters are: the best CTC path through the scores, with a joker for what can't be
read.

A class that is to be taught has no useful score yet. Wherever it stands in the text, the best score of any
class but the blank counts: something is read there, and its neighbours say where.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from argmaxable.core.arrays import Ids, Matrix32


def aligned(scores: Matrix32, classes: Sequence[int | None], blank: int) -> Ids | None:
    """The steps (n × 2) of each class of a text; None stands for any class but the blank.

    Steps between two characters go to both halves. The answer is None where the line has fewer steps than
    needed.
    """
    states = _state_scores(scores, classes, blank)
    path = _best_path(states, classes)
    if path is None:
        return None
    places = [np.flatnonzero(path == 2 * number + 1) for number in range(len(classes))]
    first, last = np.array([each[0] for each in places]), np.array([each[-1] + 1 for each in places])
    middle = (last[:-1] + first[1:] + 1) // 2
    return np.stack([np.r_[0, middle], np.r_[middle, len(scores)]], axis=1).astype(np.intp)


def _state_scores(scores: Matrix32, classes: Sequence[int | None], blank: int) -> Matrix32:
    """Scores of blank, first class, blank, second class, …, blank at each step (steps × 2n + 1)."""
    spoken = scores.copy()
    spoken[:, blank] = -np.inf
    anything = spoken.max(axis=1)
    silence = scores[:, blank]
    columns = [silence]
    for each in classes:
        columns += [anything if each is None else scores[:, each], silence]
    return np.stack(columns, axis=1)


def _best_path(states: Matrix32, classes: Sequence[int | None]) -> Ids | None:
    steps, count = states.shape
    # A blank may be skipped, unless it stands between two equal classes.
    skips = np.zeros(count, bool)
    skips[3::2] = [one is None or one != other for one, other in pairwise(classes)]
    best = np.full(count, -np.inf)
    best[: 2 if classes else 1] = states[0, : 2 if classes else 1]
    came = np.zeros((steps, count), np.intp)
    for step in range(1, steps):
        options = np.full((3, count), -np.inf)
        options[0] = best
        options[1, 1:] = best[:-1]
        options[2, 2:] = np.where(skips[2:], best[:-2], -np.inf)
        came[step] = options.argmax(axis=0)
        best = options.max(axis=0) + states[step]
    state = count - 1 if count == 1 or best[-1] >= best[-2] else count - 2
    if not np.isfinite(best[state]):
        return None
    path = np.empty(steps, np.intp)
    for step in range(steps - 1, -1, -1):
        path[step] = state
        state -= came[step, state]
    return path
