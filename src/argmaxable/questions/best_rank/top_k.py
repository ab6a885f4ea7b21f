"""best_ranks: proven bounds on the best rank of every class that is never the argmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.coordinates import chart_of
from argmaxable.compute.identical_rows import find_twins
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.core.errors import InputError
from argmaxable.core.progress import Deadline
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status, Verdict
from argmaxable.questions.best_rank.descent import points_with_few_above
from argmaxable.questions.best_rank.search import RankSearch

# Solves for each class at most; a round costs what a class of `verify` costs that needs a solve.
ROUNDS = 48


def best_ranks(
    result: Result,
    *,
    top_k: int | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BestRank, ...]:
    """Bounds on the best rank of each class of the result that is not argmaxable, in order.

    With `top_k` the search for a class ends once it is known whether it is ever among the first k. After
    `time_limit` seconds or Ctrl-C the classes left have the bounds their verdicts give. Raises InputError
    unless k ≥ 1.
    """
    if top_k is not None and top_k < 1:
        raise InputError(f"top-k counts places and can't be {top_k}: expected 1 or more.")
    deadline = Deadline(time_limit)
    asked = [verdict for verdict in result.verdicts if verdict.status is not Status.ARGMAXABLE]
    classes = np.array([verdict.class_id for verdict in asked], np.intp)
    if not asked:
        return ()
    checker = Checker(result.head, result.domain, centre=result.centre)
    search = RankSearch(checker, find_twins(result.head), classes, seed)
    _learn_verdicts(search, asked)
    points = points_with_few_above(chart_of(checker), classes)
    found: list[BestRank] = []
    try:
        for verdict, point in zip(asked, points, strict=True):
            if deadline.has_passed:
                break
            starts = [point]
            if verdict.witness is not None:
                starts.append(checker.point(verdict.class_id, verdict.witness))
            found.append(
                search.best_rank(verdict.class_id, starts, stop_at=top_k, rounds=rounds, deadline=deadline)
            )
            if progress is not None:
                progress(len(found), len(asked))
    except KeyboardInterrupt:
        pass  # what was proven stands
    return (*found, *(_not_searched(verdict, result.head.classes) for verdict in asked[len(found) :]))


def _not_searched(verdict: Verdict, classes: int) -> BestRank:
    """What a verdict alone says about the best rank."""
    proof = None
    if verdict.status is Status.UNARGMAXABLE and verdict.certificate is not None:
        proof = RankProof((verdict.certificate,), (1,))
    is_above = proof is not None and verdict.upper < 0
    return BestRank(
        class_id=verdict.class_id, label=verdict.label, lower=1 if proof is None else 2, upper=classes,
        lower_with_ties=2 if is_above else 1, proof=proof, proof_with_ties=proof if is_above else None,
        point=None, reason="the time was over",
    )  # fmt: skip


def _learn_verdicts(search: RankSearch, asked: list[Verdict]) -> None:
    """Begin with the verdicts' own certificates; many classes share one."""
    seen: set[int] = set()
    for verdict in asked:
        certificate = verdict.certificate
        if verdict.status is not Status.UNARGMAXABLE or certificate is None:
            continue
        if id(certificate) not in seen or verdict.class_id not in search.known:
            seen.add(id(certificate))
            search.learn(verdict.class_id, certificate)
