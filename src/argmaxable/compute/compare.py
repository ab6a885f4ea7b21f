"""Who scores best at a point, for many points at once and in blocks: no array of points × classes, ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.rows import Rows, StreamedRows
from argmaxable.core.arrays import Ids, Matrix32, Vector32

if TYPE_CHECKING:
    from argmaxable.compute.backend import Backend, Block

# Points and rows multiplied at a time: 16 MB of products, which caches like and BLAS does not mind.
_SIDE = 2048
# Streamed rows are converted once for so many points.
_POINTS_PER_CONVERSION = 16384
# Blocks meet in several threads, and each improves what the others have found.
_IMPROVING = threading.Lock()


@dataclass(frozen=True, eq=False)
class Best:
    """For each point its class's own score, and the best score of any other class with its id (−1: none)."""

    own: Vector32
    rival: Ids
    score: Vector32

    @staticmethod
    def unknown(count: int) -> Best:
        nothing = np.full(count, -np.inf, np.float32)
        return Best(nothing, np.full(count, -1), nothing.copy())

    def part(self, where: slice) -> Best:
        """A window on some of the points."""
        return Best(self.own[where], self.rival[where], self.score[where])

    def improve(self, where: Ids, rivals: Ids, scores: Vector32) -> None:
        """Take what is better; threads may do so at the same time."""
        with _IMPROVING:
            better = ~(scores <= self.score[where])
            self.score[where[better]] = scores[better]
            self.rival[where[better]] = rivals[better]


def best_at(backend: Backend, rows: Rows, offsets: Vector32 | None, points: Matrix32, classes: Ids) -> Best:
    """The best rival of each class at its point (points × features), and the class's own score."""
    best = Best.unknown(len(points))
    # Few points meet more rows at a time, where these need not be converted.
    side = _SIDE if isinstance(rows, StreamedRows) else max(_SIDE, _SIDE * _SIDE // max(1, len(points)))
    for most in _slices(len(points), _POINTS_PER_CONVERSION):
        some = best.part(most)
        parts = [(part, backend.block(points[most], part)) for part in _slices(len(some.own), _SIDE)]
        for ids in _slices(rows.shape[0], side):
            block = backend.block(rows, ids)
            for part, placed in parts:
                _compare(backend, some.part(part), placed, classes[most][part], block, ids, None, offsets)
    return best


def best_at_own_rows(
    backend: Backend, rows: Rows, offsets: Vector32 | None, scale: Vector32, classes: Ids
) -> Iterator[tuple[slice, Best]]:
    """The same at the points scale_c · row_c, a slice of the classes at a time.

    w_c · w_i serves both c at its point and i at its own, so two blocks of these classes meet only once:
    when all classes are asked for, half of the products are never formed.
    """
    best = Best.unknown(len(classes))
    others = np.setdiff1d(np.arange(rows.shape[0]), classes)
    side = _POINTS_PER_CONVERSION if isinstance(rows, StreamedRows) else _SIDE
    scales = scale if offsets is not None else None  # without offsets a scale moves no comparison
    for mine in _slices(len(classes), side):
        placed = [
            (part, backend.block(rows, _run(classes[part])))
            for part in _slices(mine.stop, _SIDE, first=mine.start)
        ]
        tasks = [
            partial(_meet_others, backend, rows, best, placed, classes, others[ids], scales, offsets)
            for ids in _slices(len(others), _SIDE)
        ] + [
            partial(_meet_each_other, backend, rows, best, placed, classes, theirs, scales, offsets)
            for theirs in _slices(len(classes), _SIDE, first=mine.start)
        ]
        backend.do(tasks)
        done = best.part(mine)
        if offsets is None:
            done.own[:] *= scale[mine]
            done.score[:] *= scale[mine]
        yield mine, done


def _meet_others(
    backend: Backend,
    rows: Rows,
    best: Best,
    placed: list[tuple[slice, Block]],
    classes: Ids,
    others: Ids,
    scales: Vector32 | None,
    offsets: Vector32 | None,
) -> None:
    """Set blocks of classes, at their own points, against rows of other classes."""
    block = backend.block(rows, _run(others))
    for part, points in placed:
        scale = None if scales is None else scales[part]
        _compare(backend, best.part(part), points, classes[part], block, others, scale, offsets)


def _meet_each_other(
    backend: Backend,
    rows: Rows,
    best: Best,
    placed: list[tuple[slice, Block]],
    classes: Ids,
    theirs: slice,
    scales: Vector32 | None,
    offsets: Vector32 | None,
) -> None:
    """Set blocks of classes, at their own points, against a block that is not before them."""
    block = backend.block(rows, _run(classes[theirs]))
    for part, points in placed:
        if part.start <= theirs.start:
            _meet(backend, best, points, part, block, theirs, classes, scales, offsets)


@np.errstate(all="ignore")  # extreme heads overflow; the bound on errors is infinite then
def _compare(
    backend: Backend,
    best: Best,
    points: Block,
    classes: Ids,
    rows: Block,
    ids: Ids | slice,
    scale: Vector32 | None,
    offsets: Vector32 | None,
) -> None:
    """Set the points of some classes against some rows."""
    first, count = (ids.start, ids.stop - ids.start) if isinstance(ids, slice) else (0, len(ids))
    numbers = np.arange(first, first + count) if isinstance(ids, slice) else ids
    scores = backend.shift(backend.products(points, rows), scale, None if offsets is None else offsets[ids])
    column = np.searchsorted(numbers, classes)
    inside = np.flatnonzero(numbers[np.minimum(column, count - 1)] == classes)
    if len(inside):
        best.own[inside] = backend.take_out(scores, inside, column[inside])
    winners, highest = backend.best_in_lines(scores)
    best.improve(np.arange(len(classes)), numbers[winners], highest)


@np.errstate(all="ignore")
def _meet(
    backend: Backend,
    best: Best,
    points: Block,
    part: slice,
    rows: Block,
    theirs: slice,
    classes: Ids,
    scale: Vector32 | None,
    offsets: Vector32 | None,
) -> None:
    """Set two blocks of classes against each other, each at its own points."""
    mine_scale, their_scale = (None, None) if scale is None else (scale[part], scale[theirs])
    mine_offset, their_offset = (
        (None, None) if offsets is None else (offsets[classes[part]], offsets[classes[theirs]])
    )
    products = backend.products(points, rows)
    scores = backend.shift(products, mine_scale, their_offset)
    here = np.arange(part.stop - part.start)
    if part == theirs:
        best.own[part] = backend.take_out(scores, here, here)
    winners, highest = backend.best_in_lines(scores)
    best.improve(here + part.start, classes[theirs][winners], highest)
    if part != theirs:
        scores = backend.shift_transposed(products, their_scale, mine_offset)
        columns, lines, highest = backend.better_in_columns(scores, best.score[theirs])
        best.improve(columns + theirs.start, classes[part][lines], highest)


def _run(ids: Ids) -> Ids | slice:
    """Consecutive ids as a slice, which is a view and no copy."""
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
        return slice(int(ids[0]), int(ids[-1]) + 1)
    return ids


def _slices(stop: int, step: int, *, first: int = 0) -> list[slice]:
    return [slice(start, min(start + step, stop)) for start in range(first, stop, step)]
