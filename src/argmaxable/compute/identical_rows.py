"""Identical rows: classes with the same weight row. Only the one with the largest bias can win, and none
where that bias is shared. Exact, nearly free, and otherwise solvers stall on them at a margin of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids

if TYPE_CHECKING:
    from argmaxable.core.head import Head

_BLOCK_ROWS = 4096
# SplitMix64 (Steele, Lea & Flood 2014). NumPy's generators would do, but take 25 ms to load.
_SPACING, _MIXERS = 0x9E3779B97F4A7C15, ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


@dataclass(frozen=True, eq=False)
class IdenticalRows:
    """`beaten_by[c]` is the class that makes c lose or tie for good (−1: none); `ties` lists, by
    their first member, the groups with equal weights and bias; `tied_to[c]` is that first member."""

    beaten_by: Ids
    tied_to: Ids
    ties: dict[int, tuple[int, ...]]

    @property
    def ignored(self) -> Ids:
        """Classes that another one stands for."""
        return np.flatnonzero(self.beaten_by >= 0)


def find_identical_rows(head: Head) -> IdenticalRows:
    """Group equal rows: by hash first, then by exact comparison."""
    beaten_by, tied_to = np.full(head.classes, -1), np.full(head.classes, -1)
    ties: dict[int, tuple[int, ...]] = {}
    hashes = _row_hashes(head)
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order[0]] + np.uint64(1)))
    ends = np.append(starts[1:], head.classes)
    shared = ends - starts > 1
    for start, end in zip(starts[shared].tolist(), ends[shared].tolist(), strict=True):
        for group in _equal_rows(head, order[start:end]):
            by_bias = _by_bias(head, group)
            beaten_by[group] = by_bias[0][0]
            beaten_by[by_bias[0][0]] = -1
            for tied in (some for some in by_bias if len(some) > 1):
                tied_to[tied] = tied[0]
                ties[int(tied[0])] = tuple(tied.tolist())
    return IdenticalRows(beaten_by, tied_to, ties)


def _by_bias(head: Head, group: Ids) -> list[Ids]:
    """The members split by bias, largest bias first, each part in order."""
    biases = head.biases(group)
    return [np.sort(group[biases == bias]) for bias in np.unique(biases)[::-1]]


def _row_hashes(head: Head) -> NDArray[np.uint64]:
    width = head.weight.dtype.itemsize
    factors = _odd_numbers(head.features)
    hashes = np.empty(head.classes, np.uint64)
    for start in range(0, head.classes, _BLOCK_ROWS):
        rows = np.ascontiguousarray(head.weight[start : start + _BLOCK_ROWS]) + head.weight.dtype.type(0)
        bits = rows.view(f"u{width}").astype(np.uint64)  # adding 0 made −0 equal to 0
        hashes[start : start + len(rows)] = (bits * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _odd_numbers(count: int) -> NDArray[np.uint64]:
    """Odd numbers that look random, always the same ones."""
    numbers = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_SPACING)
    for shift, factor in _MIXERS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers | np.uint64(1)


def _equal_rows(head: Head, members: Ids) -> list[Ids]:
    """Groups of two or more members with exactly equal rows."""
    groups = []
    while len(members) > 1:
        same = (head.weight[members] == head.weight[members[0]]).all(axis=1)
        if same.sum() > 1:
            groups.append(members[same])
        members = members[~same]
    return groups
