"""Every set of at most k labels: proven, refuted by one of them, or open.

Two conditions prove it without looking at any set: independent rows over all of feature space, and rows of
small coherence (below). Otherwise few sets are all tried, and of many those that are most likely to fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.check.solutions import independent_rows
from argmaxable.compute.blocks import blocks
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.core.boxes import Everywhere
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Head
from argmaxable.core.label_sets import LabelSets, Members, SetClaim, SetKind, SetTest
from argmaxable.core.progress import Deadline, ProgressCallback, ignore_progress
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, gamma
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.questions.sets.sets import sets
from argmaxable.run.plan import DEFAULT_ENGINE, Engine

# Sets tried unless said otherwise, and how many at a time.
DEFAULT_TRIES, _BATCH = 10_000, 1_000
# Independence is decided modulo a prime, in seconds up to this many weights.
_LARGEST_EXACT = 1 << 22


class EveryStatus(StrEnum):
    """What is known about every set of at most k labels."""

    PROVEN = "proven"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, eq=False)
class EverySet:
    """The answer about every set of at most `active` labels, why it is so, and how many sets were tried.

    A refutation has the set that never comes out; `tried` are the sets that were asked about, for a bundle.
    """

    active: int
    status: EveryStatus
    why: str
    refuted_by: SetClaim | None = None
    tried: LabelSets | None = None


def every_set(
    head: Head | PreparedHead,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    active: int,
    kind: SetKind | str = SetKind.EXACTLY,
    thresholds: ArrayLike = 0.0,
    tries: int = DEFAULT_TRIES,
    seed: int = 0,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> EverySet:
    """Whether every set of at most `active` labels can come out; raises InputError.

    At most `tries` sets are tried. The empty set is one of them for "exactly".
    """
    ready, test = prepared(head), SetTest(kind, thresholds)
    test.require_labels(ready.head.classes)
    domain.require_features(ready.head.features)
    if not 1 <= active <= ready.head.classes:
        raise InputError(f"sets of at most {active} labels: expected 1 to {ready.head.classes}.")
    why = why_all_feasible(ready.head, domain, test, active)
    if why:
        return EverySet(active, EveryStatus.PROVEN, why)
    deadline = Deadline(time_limit)
    least = 0 if test.kind is SetKind.EXACTLY else 1
    total = sum(math.comb(ready.head.classes, size) for size in range(least, active + 1))
    chosen = (
        _all_sets(ready.head.classes, least, active)
        if total <= tries
        else likely_to_fail(ready.head, test, active, tries, seed)
    )
    found: list[LabelSets] = []
    for batch in _batches(chosen):
        if deadline.has_passed:
            break
        found.append(
            sets(ready, domain, batch, kind=kind, thresholds=thresholds, engine=engine, progress=progress,
                 time_limit=deadline.seconds_left)
        )  # fmt: skip
        never = found[-1].having(Feasibility.INFEASIBLE)
        if never or not found[-1].is_complete:
            break
    return _verdict(active, total, found)


def _verdict(active: int, total: int, found: list[LabelSets]) -> EverySet:
    if not found:
        return EverySet(active, EveryStatus.OPEN, "the time limit passed before any set was tried")
    claims = tuple(claim for one in found for claim in one.claims)
    tried = LabelSets(
        facts=found[0].facts, domain=found[0].domain, test=found[0].test, claims=claims,
        seconds=sum(one.seconds for one in found), is_complete=found[-1].is_complete,
    )  # fmt: skip
    never = tried.having(Feasibility.INFEASIBLE)
    feasible = len(tried.having(Feasibility.FEASIBLE))
    if never:
        worst = min(never, key=lambda claim: len(claim.members))
        return EverySet(active, EveryStatus.REFUTED, "this set can never be predicted", worst, tried)
    if feasible == total:
        return EverySet(active, EveryStatus.PROVEN, f"all {total:,} sets were tried", None, tried)
    why = f"{feasible:,} of {total:,} sets were shown to come out"
    undecided = len(tried.having(Feasibility.UNDECIDED))
    if undecided:
        why += f", {undecided:,} were tried and stay undecided"
    return EverySet(active, EveryStatus.OPEN, why, None, tried)


def _all_sets(labels: int, least: int, most: int) -> Iterator[Members]:
    return (members for size in range(least, most + 1) for members in combinations(range(labels), size))


def _batches(chosen: Iterator[Members]) -> Iterator[list[Members]]:
    batch: list[Members] = []
    for members in chosen:
        batch.append(members)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


# ---------------------------------------------------------------------- conditions that settle every set


def why_all_feasible(head: Head, domain: Domain, test: SetTest, active: int) -> str:
    """Why every set of at most `active` labels comes out, where a condition shows it; else "".

    Both conditions are about all of feature space.
    """
    if not isinstance(domain, Everywhere):
        return ""
    if are_independent(head, affinely=test.kind is SetKind.TOP):
        return "the rows are independent, so every set of labels can come out"
    if is_incoherent(head, test, active):
        return f"the rows are nearly orthogonal, so every set of at most {active} labels can come out"
    return ""


def are_independent(head: Head, *, affinely: bool) -> bool:
    """Whether the rows are linearly (affinely) independent, exactly: then scores (differences of scores) take
    any values at all."""
    if head.classes > head.features + affinely or head.weight.size > _LARGEST_EXACT:
        return False
    rows = Dyadic.of(head.rows(slice(None))).integers
    if affinely:
        rows = np.hstack([rows, np.full((len(rows), 1), 1, dtype=object)])
    return independent_rows(rows)


def is_incoherent(head: Head, test: SetTest, active: int) -> bool:
    """Whether x = α Σ_{i∈S} w_i makes every set S of at most k labels come out, for a suitable α > 0.

    With n the least ‖w_i‖², p and q the largest w_i·w_j and −w_i·w_j (i ≠ j; 0 at least), members score at
    least α (n − (k−1) q) over their biases there, other labels at most α k p. For the top k a large α will do
    if the first exceeds the second; otherwise one between what members need and what the others allow. Floats
    bound their own rounding.
    """
    least, above, below = _coherence(head)
    member, other = least - (active - 1) * below, active * above
    biases = head.biases() - test.of_labels(head.classes)
    slack = 4 * gamma(4) * (np.abs(head.biases()).max() + np.abs(test.thresholds).max())
    low, high = float(biases.min() - slack), float(biases.max() + slack)
    if test.kind is SetKind.TOP:
        return member > other * (1 + gamma(8)) and member > 0
    if not member > 0:
        return False
    needed = max(0.0, -low / member) * (1 + gamma(8))
    if test.kind is SetKind.AT_LEAST:
        return True
    # The empty set has x = 0 to itself: nothing is on there.
    return high < 0 and (other == 0 or needed < -high / other * (1 - gamma(8)))


def _coherence(head: Head) -> tuple[float, float, float]:
    """Bounds: the least ‖w_i‖² from below; the largest w_i·w_j and −w_i·w_j over i ≠ j from above."""
    least, above, below = math.inf, 0.0, 0.0
    rows = head.rows(slice(None))
    sizes = np.sqrt((rows * rows).sum(axis=1))
    # A product of d terms is within γ_d ‖w_i‖ ‖w_j‖ of the exact one, and underflow takes TINY off each.
    error = gamma(head.features + 8) * float(sizes.max()) ** 2 + 2 * (head.features + 8) * TINY
    for block in blocks(head.classes, head.classes):
        products = rows[block] @ rows.T
        diagonal = np.arange(block.start, block.stop)
        least = min(least, float(products[diagonal - block.start, diagonal].min()) - error)
        products[diagonal - block.start, diagonal] = 0.0
        above, below = max(above, float(products.max())), max(below, float(-products.min()))
    return least, above + error if head.classes > 1 else 0.0, below + error if head.classes > 1 else 0.0


# ---------------------------------------------------------------------- sets that are likely to fail


def likely_to_fail(head: Head, test: SetTest, active: int, tries: int, seed: int) -> Iterator[Members]:
    """Different sets of at most `active` labels: single labels first, then labels that together come close to
    the row of another label, which is then hard to leave out, and sets at random."""
    generator = np.random.default_rng(seed)
    seen: set[Members] = set()

    def candidates() -> Iterator[Members]:
        if test.kind is SetKind.EXACTLY:
            yield ()
        for label in generator.permutation(head.classes)[: tries // 4].tolist():
            yield (label,)
        if active > 1:
            for label in generator.permutation(head.classes)[: tries // 2].tolist():
                yield _neighbours(head, label, active)
        for _ in range(4 * tries):
            yield tuple(sorted(generator.choice(head.classes, active, replace=False).tolist()))

    for members in candidates():
        if members not in seen:
            seen.add(members)
            yield members
        if len(seen) >= tries:
            return


def _neighbours(head: Head, label: int, most: int) -> Members:
    """Labels whose rows, added up, point the way of this label's row: chosen one by one, each for what is
    left of it."""
    own = head.rows(np.array([label]))[0]
    left, chosen = own.copy(), list[int]()
    for _ in range(min(most, head.classes - 1)):
        gains = np.asarray(head.weight[:] @ left.astype(head.weight.dtype), np.float64)
        gains[[label, *chosen]] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        row = head.rows(np.array([best]))[0]
        left = left - row * (float(row @ left) / max(float(row @ row), 1e-300))
    return tuple(sorted(chosen))
