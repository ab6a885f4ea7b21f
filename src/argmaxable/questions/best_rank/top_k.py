"""best_ranks: proven bounds on the best rank of every class that is never the argmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from argmaxable.check.checker import Checker, require
from argmaxable.check.ranks import failed_ranks
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.compute.threads import one_thread
from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline, Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Certificate, Status, Verdict
from argmaxable.questions.argmax import DEFAULT_DOMAIN, verify
from argmaxable.questions.best_rank.descent import points_with_few_above
from argmaxable.questions.best_rank.search import RankSearch
from argmaxable.questions.best_rank.single_rivals import always_above, never_among
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.pool import Pool
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, make_plan

# Solves for each class at most; a round costs what a class of `verify` costs that needs a solve.
ROUNDS = 48
# Classes for which another process is worth its start; a search takes about as long as the start.
_WORTH_A_PROCESS = 4


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
    checker = Checker(ready, domain, centre=result.centre)
    found = {} if top_k is None else _never_among(checker, [each.class_id for each in never], top_k, seed)
    left = [verdict for verdict in never if verdict.class_id not in found]
    if left:
        workers = make_plan(head, domain, engine=engine).settings.workers or 1
        ranks = _search(checker, left, Limits(top_k, rounds, deadline), seed, workers, progress)
        found |= {left[number].class_id: rank for number, rank in ranks.items()}
    return tuple(found.get(verdict.class_id) or _not_searched(verdict, head.classes) for verdict in never)


def _never_among(checker: Checker, classes: list[int], k: int, seed: int) -> dict[int, BestRank]:
    """The classes that k rivals are above at every point of the domain."""
    ids = np.array(classes, np.intp)
    coordinates = coordinates_of(checker.prepared, checker.domain)
    above = zip(classes, always_above(checker, coordinates, ids, k, seed=seed), strict=True)
    claims = never_among(checker, {class_id: rivals for class_id, rivals in above if len(rivals) == k})
    _require_checked(checker, claims)
    return {claim.class_id: claim for claim in claims}


def _search(
    checker: Checker,
    never: list[Verdict],
    limits: Limits,
    seed: int,
    workers: int,
    progress: ProgressCallback,
) -> dict[int, BestRank]:
    """The best ranks found in time, by place."""
    classes = np.array([verdict.class_id for verdict in never], np.intp)
    search = RankSearch(checker, checker.prepared.twins, classes, seed)
    _learn_verdicts(search, never)
    with _pool(search, min(workers - 1, len(never) // _WORTH_A_PROCESS), limits) as pool:
        points = points_with_few_above(coordinates_of(checker.prepared, checker.domain), classes)
        items = [Item(verdict.class_id, [point]) for verdict, point in zip(never, points, strict=True)]
        for verdict, item in zip(never, items, strict=True):
            if verdict.witness is not None:
                item.starts.append(checker.point(item.class_id, verdict.witness))
        groups = sharing(never)
        found: dict[int, BestRank] = {}
        told = _Told(len(never), progress)
        for numbers in ([group[0] for group in groups], [each for group in groups for each in group[1:]]):
            answers = pool.answers([items[number] for number in numbers], answering_with(search, limits))
            with one_thread():  # each of the other processes has one too
                found |= {numbers[k]: rank for k, rank in _found(checker, answers, limits, told).items()}
            if told.is_interrupted or limits.deadline.has_passed:
                break
            if len(found) < len(never):
                _lend(checker, items, groups, found)
    return found


@dataclass(frozen=True)
class Limits:
    """Where the search for a class ends: at a k, after so many rounds, at a time."""

    top_k: int | None
    rounds: int
    deadline: Deadline


@dataclass(frozen=True, eq=False)
class Item:
    """A class, points to begin with, and certificates that have told enough about a class like it."""

    class_id: int
    starts: list[Vector]
    lent: list[Certificate] = field(default_factory=list)


def answering_with(search: RankSearch, limits: Limits) -> Callable[[Item], BestRank]:
    """The function from a class and points to begin with to its best rank."""

    def answer(item: Item) -> BestRank:
        return search.best_rank(
            item.class_id, item.starts, item.lent, stop_at=limits.top_k, rounds=limits.rounds,
            deadline=limits.deadline,
        )  # fmt: skip

    return answer


def answering(
    job: Job, extra: tuple[Ids, dict[int, list[Certificate]], Limits]
) -> Callable[[Item], BestRank]:
    """What a worker process does: best ranks of classes of the job's head."""
    classes, known, limits = extra
    checker = Checker(PreparedHead(job.head, centre=job.centre), job.domain)
    search = RankSearch(checker, checker.prepared.twins, classes, job.seed, known)
    return answering_with(search, limits)


def _pool(search: RankSearch, processes: int, limits: Limits) -> Pool[Item, BestRank]:
    checker = search.checker
    job = Job(
        head=Head(checker.head.weight, checker.head.bias), domain=checker.domain, centre=checker.centre,
        ignored=np.empty(0, np.intp), tied=frozenset(), score=np.empty(0), seed=search.seed, memory=None,
    )  # fmt: skip
    return Pool(processes, job, f"{__name__}:answering", (search.classes, search.known, limits))


class _Told:
    """What was told of the progress, and whether Ctrl-C ended it."""

    def __init__(self, total: int, progress: ProgressCallback) -> None:
        self.total, self.progress, self.done, self.pace = total, progress, 0, Pace()
        self.is_interrupted = False

    def one_more(self) -> None:
        self.done += 1
        left = self.pace.seconds_left(self.done, self.total)
        self.progress(Progress("best ranks", self.done, self.total, left))


def sharing(never: list[Verdict]) -> list[list[int]]:
    """The places of the verdicts, in groups whose certificates are on the same classes: they are much alike.
    What the search finds for the first of a group it tries on the rest."""
    groups: dict[int | bytes, list[int]] = {}
    for number, verdict in enumerate(never):
        key = number if verdict.certificate is None else verdict.certificate.classes.tobytes()
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def _lend(checker: Checker, items: list[Item], groups: list[list[int]], found: dict[int, BestRank]) -> None:
    """Give the certificates that bound a best rank to the classes of its group that they prove as well."""
    for first, *rest in groups:
        proof = found[first].proof_with_ties if rest and first in found else None
        for certificate in () if proof is None else proof.certificates:
            ids = np.array([items[number].class_id for number in rest], np.intp)
            for number, upper in zip(rest, checker.bounds(ids, certificate).tolist(), strict=True):
                if upper < 0:
                    items[number].lent.append(certificate)


def _found(
    checker: Checker, answers: Iterator[tuple[int, BestRank]], limits: Limits, told: _Told
) -> dict[int, BestRank]:
    """The answers that came in time, each checked here whoever found it."""
    found: dict[int, BestRank] = {}
    try:
        for number, rank in answers:
            _require_checked(checker, [rank])
            found[number] = replace(rank, label=checker.head.label(rank.class_id))
            told.one_more()
            if limits.deadline.has_passed:
                break
    except KeyboardInterrupt:  # what was proven stands
        told.is_interrupted = True
    return found


def _require_checked(checker: Checker, ranks: Sequence[BestRank]) -> None:
    for failure in failed_ranks(checker, ranks):
        require(False, f"The best rank of class {failure.key} failed its check: {failure.why}.")


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
        point=None, reason="the time limit passed",
    )  # fmt: skip


@one_thread()
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
