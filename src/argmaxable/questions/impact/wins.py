"""Who wins at saved inputs, and who wins where a class that can never be predicted is second or meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from argmaxable.compute.blocks import blocks, row_blocks
from argmaxable.core.arrays import Ids, Matrix, Vector
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.result import Result
from argmaxable.core.verdict import Verdict

# Scores held at a time, in float64: 32 MB.
_MOST_SCORES = 1 << 22


@dataclass(frozen=True, eq=False)
class Substitution:
    """An unargmaxable class: the winners at inputs where it comes second, those at inputs that it is the
    target of, and how far it is behind at the input where it is nearest to winning."""

    verdict: Verdict
    ahead: Counter[int]
    instead: Counter[int]
    nearest: int
    behind: float


@dataclass(frozen=True, eq=False)
class Wins:
    """How often each class wins at the inputs. `outside` counts inputs that an unargmaxable class wins: they
    are not in the domain of the verdicts. `substitutions` are the unargmaxable classes that come second
    somewhere or are targets, those that do so most often first. Classes that tie with identical ones are
    passed over."""

    inputs: int
    counts: Counter[int]
    outside: int
    substitutions: tuple[Substitution, ...]


def read_features(path: Path, head: Head) -> Matrix:
    """A matrix with a row for each input, from an .npy file; raises InputError."""
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"--features {path}: it is not an .npy file of numbers ({error}).") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputError(f"--features {path}: expected one matrix of numbers, saved with numpy.save.")
    if matrix.shape[1] != head.features or not len(matrix):
        rows, columns = matrix.shape
        raise InputError(
            f"--features {path}: {rows:,} inputs with {columns:,} features; the head has {head.features:,}."
        )
    features = matrix.astype(np.float64)
    if not np.isfinite(features).all():
        raise InputError(f"--features {path}: it holds NaN or infinite values.")
    return features


def wins(result: Result, features: Matrix, *, order: Sequence[int | None] | None = None) -> Wins:
    """Who wins at the inputs, in float64; `order` has the target of each input where that is known."""
    never = [verdict for verdict in result.unargmaxable if not verdict.is_tied]
    ids = np.array([verdict.class_id for verdict in never], np.intp)
    leaders, behind, nearest = _contest(result.head, features, ids)
    first, second = leaders[:, 0], leaders[:, 1]
    unargmaxable = set(ids.tolist())
    ahead: dict[int, Counter[int]] = {class_id: Counter() for class_id in unargmaxable}
    instead: dict[int, Counter[int]] = {class_id: Counter() for class_id in unargmaxable}
    for winner, runner_up, target in zip(
        first.tolist(), second.tolist(), order or [None] * len(first), strict=True
    ):
        if runner_up in unargmaxable:
            ahead[runner_up][winner] += 1
        if target is not None and target in unargmaxable and target != winner:
            instead[target][winner] += 1
    found = [
        Substitution(verdict, ahead[verdict.class_id], instead[verdict.class_id], int(row), float(gap))
        for verdict, row, gap in zip(never, nearest, behind, strict=True)
    ]
    found = [each for each in found if each.ahead or each.instead]
    found.sort(key=lambda each: (-each.instead.total(), -each.ahead.total(), each.verdict.class_id))
    counts = Counter(first.tolist())
    outside = sum(counts[class_id] for class_id in unargmaxable)
    return Wins(len(features), counts, outside, tuple(found))


def _contest(head: Head, features: Matrix, never: Ids) -> tuple[Ids, Vector, Ids]:
    """The two leaders at each input (−1 where there is no second); and for each class of `never` how far it
    is behind where it is nearest to winning, and at which input that is."""
    leaders = np.empty((len(features), 2), np.intp)
    behind, nearest = np.full(len(never), np.inf), np.zeros(len(never), np.intp)
    for some in blocks(len(features), head.classes, _MOST_SCORES):
        scores = _scores(head, features[some])
        leaders[some] = _two_leaders(scores)
        best = scores[np.arange(len(scores)), leaders[some, 0]]
        gaps = best[:, None] - scores[:, never]
        for place, row in enumerate(gaps.argmin(axis=0).tolist() if len(never) else []):
            if gaps[row, place] < behind[place]:
                behind[place], nearest[place] = gaps[row, place], some.start + row
    return leaders, behind, nearest


def _two_leaders(scores: Matrix) -> Ids:
    """The classes with the two highest scores in each row, the first of equal ones before the others."""
    first = scores.argmax(axis=1)
    if scores.shape[1] == 1:
        return np.stack([first, np.full_like(first, -1)], axis=1)
    rows = np.arange(len(scores))
    without = scores.copy()
    without[rows, first] = -np.inf
    return np.stack([first, without.argmax(axis=1)], axis=1)


def _scores(head: Head, features: Matrix) -> Matrix:
    scores = np.empty((len(features), head.classes))
    for rows in row_blocks(head.classes, head.features):
        scores[:, rows] = features @ np.asarray(head.weight[rows], np.float64).T
    return scores if head.bias is None else scores + np.asarray(head.bias, np.float64)


def most_common(counts: Counter[int], most: int) -> Iterator[tuple[int, int]]:
    """The classes that occur most, those of lower number first among equals."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return iter(ranked[:most])
