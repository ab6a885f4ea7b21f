"""Best ranks of small heads by brute force, sharing no code with the package.

Every region of the arrangement s_i = s_c is a set of classes below c. All of them are walked, one rival after
the other: below c, if some x of the domain has it so together with those before, or not. A linear programme
tells: HiGHS where its margin is far from 0, rationals where it is not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray
from oracles import dot, exact_differences, exact_margin, margin_by_highs, placed, rationals

import argmaxable as am

# HiGHS's margins are accurate to about 1e-9.
_CLEAR = 1e-6


def best_rank_by_force(head: am.Head, domain: am.Box | am.Everywhere, class_id: int) -> int:
    """1 + the least number of classes not below the class at any point of the domain."""
    rivals = [number for number in range(head.classes) if number != class_id]
    best = head.classes

    def walk(at: int, below: tuple[int, ...], not_below: int) -> None:
        nonlocal best
        if not_below + 1 >= best:
            return
        if at == len(rivals):
            best = not_below + 1
            return
        if _wins_over(head, domain, class_id, (*below, rivals[at])):
            walk(at + 1, (*below, rivals[at]), not_below)
        walk(at + 1, below, not_below + 1)

    walk(0, (), 0)
    return best


def _wins_over(head: am.Head, domain: am.Box | am.Everywhere, class_id: int, rivals: tuple[int, ...]) -> bool:
    """Whether the class is above all of these at some point."""
    kept = [class_id, *rivals]
    part = am.Head(head.weight[kept], None if head.bias is None else head.bias[kept])
    margin = margin_by_highs(part, domain, 0)
    return margin > 0 if abs(margin) > _CLEAR else exact_margin(part, domain, 0) > 0


def rank_at(head: am.Head, domain: am.Domain, class_id: int, z: NDArray[Any]) -> tuple[int, int]:
    """The class's rank at the point z by rationals: with ties counted against it, and in its favour."""
    x = placed(domain, rationals(z))
    assert x is not None, "the point is not in the domain"
    gaps, drops = exact_differences(head, class_id)
    scores: list[Fraction] = [dot(gap, x) + drop for gap, drop in zip(gaps, drops, strict=True)]
    return 1 + sum(score <= 0 for score in scores), 1 + sum(score < 0 for score in scores)
