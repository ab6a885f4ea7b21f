"""best_ranks: proven bounds on the best rank of every class that is never the argmax."""

from __future__ import annotations

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline, Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status, Verdict
from argmaxable.questions.argmax import DEFAULT_DOMAIN, verify
from argmaxable.questions.best_rank.descent import points_with_few_above
from argmaxable.questions.best_rank.search import RankSearch
from argmaxable.run.plan import DEFAULT_ENGINE, Engine

# Solves for each class at most; a round costs what a class of `verify` costs that needs a solve.
ROUNDS = 48


def best_ranks(
    head: Head | PreparedHead,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    result: Result | None = None,
    top_k: int | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> tuple[BestRank, ...]:
    """Bounds on the best rank of each class that is not argmaxable, in order.

    `result` is what `verify` found for this head and domain; without one the head is verified first. With
    `top_k` the search for a class ends once it is known whether it is ever among the first k. After
    `time_limit` seconds or Ctrl-C the classes left have the bounds their verdicts give. Raises InputError
    unless k ≥ 1, and for a result about another head or domain.
    """
    if top_k is not None and top_k < 1:
        raise InputError(f"top-k counts places and can't be {top_k}: expected 1 or more.")
    deadline = Deadline(time_limit)
    ready = prepared(head)
    head = ready.head
    if result is None:
        result = verify(head, domain, seed=seed, engine=engine, time_limit=time_limit, progress=progress)
    _require_same(result, ready, domain)
    never = [verdict for verdict in result.verdicts if verdict.status is not Status.ARGMAXABLE]
    if not never:
        return ()
    classes = np.array([verdict.class_id for verdict in never], np.intp)
    checker = Checker(ready, domain, centre=result.centre)
    search = RankSearch(checker, checker.prepared.twins, classes, seed)
    _learn_verdicts(search, never)
    points = points_with_few_above(coordinates_of(checker.prepared, domain), classes)
    found: list[BestRank] = []
    pace = Pace()
    try:
        for verdict, point in zip(never, points, strict=True):
            if deadline.has_passed:
                break
            starts = [point]
            if verdict.witness is not None:
                starts.append(checker.point(verdict.class_id, verdict.witness))
            found.append(
                search.best_rank(verdict.class_id, starts, stop_at=top_k, rounds=rounds, deadline=deadline)
            )
            done, total = len(found), len(never)
            progress(Progress("best ranks", done, total, pace.seconds_left(done, total)))
    except KeyboardInterrupt:
        pass  # what was proven stands
    return (*found, *(_not_searched(verdict, head.classes) for verdict in never[len(found) :]))


def _require_same(result: Result, ready: PreparedHead, domain: Domain) -> None:
    if result.head is not ready.head and result.facts.sha256 != ready.facts.sha256:
        raise InputError(f"the result is about another head than {ready.head.name}: verify that one.")
    if result.domain != domain:
        raise InputError(f"the result is about the domain {result.domain}, not {domain}: pass the same one.")


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


def _learn_verdicts(search: RankSearch, never: list[Verdict]) -> None:
    """Begin with the verdicts' own certificates; many classes share one."""
    seen: set[int] = set()
    for verdict in never:
        certificate = verdict.certificate
        if verdict.status is not Status.UNARGMAXABLE or certificate is None:
            continue
        if id(certificate) not in seen or verdict.class_id not in search.known:
            seen.add(id(certificate))
            search.learn(verdict.class_id, certificate)
