"""Best ranks of small heads by brute force, sharing no code with the package.

Every region of the arrangement s_i = s_c is a set of classes not below c: the smallest set without which c is
the strict argmax somewhere, by a linear programme for each set, smallest sets first: HiGHS where its margin is
far from 0, rationals where it is not.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from oracles import dot, exact_differences, exact_margin, margin_by_highs, placed, rationals

import argmaxable as am

# HiGHS's margins are accurate to about 1e-9.
_CLEAR = 1e-6


def best_rank_by_force(head: am.Head, domain: am.Box | am.Everywhere, class_id: int) -> int:
    """1 + the least number of classes not below the class at any point of the domain."""
    rivals = [number for number in range(head.classes) if number != class_id]
    return next(
        size + 1
        for size in range(head.classes)
        for gone in itertools.combinations(rivals, size)
        if _wins_without(head, domain, class_id, gone)
    )


def _wins_without(
    head: am.Head, domain: am.Box | am.Everywhere, class_id: int, gone: tuple[int, ...]
) -> bool:
    kept = [number for number in range(head.classes) if number not in gone]
    part = am.Head(head.weight[kept], None if head.bias is None else head.bias[kept])
    margin = margin_by_highs(part, domain, kept.index(class_id))
    return margin > 0 if abs(margin) > _CLEAR else exact_margin(part, domain, kept.index(class_id)) > 0


def rank_at(head: am.Head, domain: am.Domain, class_id: int, z: np.ndarray) -> tuple[int, int]:
    """The class's rank at the point z by rationals: with ties counted against it, and in its favour."""
    x = placed(domain, rationals(z))
    assert x is not None, "the point is not in the domain"
    gaps, drops = exact_differences(head, class_id)
    scores: list[Fraction] = [dot(gap, x) + drop for gap, drop in zip(gaps, drops, strict=True)]
    return 1 + sum(score <= 0 for score in scores), 1 + sum(score < 0 for score in scores)
