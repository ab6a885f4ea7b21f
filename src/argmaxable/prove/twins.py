"""Twins: classes with the same weight row. Only the one with the largest bias can win, and none
where that bias is shared. Exact, nearly free, and otherwise solvers stall on them at a margin of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxable.head import Head

Ids = NDArray[np.intp]

_BLOCK_ROWS = 4096
_HASH_SEED = 2022


@dataclass(frozen=True, eq=False)
class Twins:
    """`beaten_by[c]` is the class that makes c lose or tie for good (−1: none); `ties` lists, by
    their first member, the groups with equal weights and bias."""

    beaten_by: Ids
    ties: dict[int, tuple[int, ...]]

    @property
    def ignored(self) -> Ids:
        """Classes that another one stands for."""
        return np.flatnonzero(self.beaten_by >= 0)


def find_twins(head: Head) -> Twins:
    """Group equal rows: by hash first, then by exact comparison."""
    beaten_by = np.full(head.classes, -1)
    ties: dict[int, tuple[int, ...]] = {}
    hashes = _row_hashes(head)
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order[0]] + np.uint64(1)))
    for members in np.split(order, starts[1:]):
        if len(members) > 1:
            for group in _equal_rows(head, members):
                _rank_group(head, group, beaten_by, ties)
    return Twins(beaten_by, ties)


def _rank_group(head: Head, group: Ids, beaten_by: Ids, ties: dict[int, tuple[int, ...]]) -> None:
    biases = head.biases(group)
    tied = np.sort(group[biases == biases.max()])
    best = int(tied[0])
    beaten_by[group[group != best]] = best
    if len(tied) > 1:
        ties[best] = tuple(int(member) for member in tied)


def _row_hashes(head: Head) -> NDArray[np.uint64]:
    width = head.weight.dtype.itemsize
    factors = np.random.default_rng(_HASH_SEED).integers(
        1, 2**63, head.features, dtype=np.uint64
    ) * np.uint64(2)
    factors += np.uint64(1)
    hashes = np.empty(head.classes, np.uint64)
    for start in range(0, head.classes, _BLOCK_ROWS):
        rows = np.ascontiguousarray(head.weight[start : start + _BLOCK_ROWS]) + head.weight.dtype.type(0)
        bits = rows.view(f"u{width}").astype(np.uint64)  # adding 0 made −0 equal to 0
        hashes[start : start + len(rows)] = (bits * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _equal_rows(head: Head, members: Ids) -> list[Ids]:
    """Groups of two or more members with exactly equal rows."""
    groups = []
    while len(members) > 1:
        same = (head.weight[members] == head.weight[members[0]]).all(axis=1)
        if same.sum() > 1:
            groups.append(members[same])
        members = members[~same]
    return groups
