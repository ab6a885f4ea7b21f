"""verify(head, domain): every class gets a proven verdict.

Cheap searches first (own direction, reflection), then a solve for each class left, whose proofs
are tried on the others. Each answer passes the checker before it counts, so the order of work, the
seed and the number of processes can change the evidence but never a status.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from argmaxable.chart import Chart
from argmaxable.check import Bound, Checker, require
from argmaxable.domain import Box, Domain
from argmaxable.errors import InputError
from argmaxable.head import Head
from argmaxable.ledger import Ledger, own_directions, points_as_witnesses
from argmaxable.prove.chebyshev import chebyshev_centre, require_box
from argmaxable.prove.lazy import Answer
from argmaxable.prove.prover import Prover, Settled
from argmaxable.prove.transfer import transfer
from argmaxable.prove.twins import find_twins
from argmaxable.result import Cost, Result
from argmaxable.run.pool import Pool
from argmaxable.run.progress import Deadline, Progress, ProgressCallback
from argmaxable.run.worker import Assignment, Report, lay_out
from argmaxable.search.own_direction import own_exponents
from argmaxable.search.reflection import reflect
from argmaxable.verdict import Method, Strength

Ids = NDArray[np.intp]

DEFAULT_DOMAIN = Box(-100.0, 100.0)
# Reflection steps at most before solving starts; it stops earlier when solving is cheaper.
_PATIENCE_BEFORE_SOLVING = 30
# The paper's patience, where reflection has to do without a solver.
_PATIENCE_ALONE = 2500
# Scores in one block of the first phase: often enough for a progress bar, large enough for BLAS.
_BLOCK_SCORES = 1 << 25
# Rough price of a solve, in units of one feature squared: decides when reflection stops paying
# and whether other processes are worth their start-up. Measured on the OCR heads (d = 64 to 120).
_SOLVE_SECONDS = 6e-3 / 120**2
_WORTH_A_PROCESS = 0.4


class Algorithm(StrEnum):
    """Which methods to use: all of them, or one alone to see how far it gets."""

    AUTO = "auto"
    OWN_DIRECTION = "own-direction"
    REFLECTION = "reflection"
    INTERIOR_POINT = "interior-point"
    CHEBYSHEV = "chebyshev"


@dataclass(frozen=True)
class Settings:
    """How to go about it; with the default algorithm none of these can change a status."""

    algorithm: Algorithm
    patience: int
    workers: int
    seed: int


@dataclass(eq=False)
class _Run:
    """A run in progress."""

    ledger: Ledger
    prover: Prover
    settings: Settings
    deadline: Deadline
    progress: ProgressCallback
    phases: dict[str, float] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)

    @property
    def checker(self) -> Checker:
        return self.ledger.checker

    @property
    def chart(self) -> Chart:
        return self.prover.chart


class _Stop(Exception):
    """The time limit has passed."""


def verify(
    head: Head,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    only: Iterable[int] | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    patience: int | None = None,
    workers: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> Result:
    """Decide for every class (or those in `only`) whether some input of the domain makes it the
    strict argmax, with evidence for each answer.

    `workers` processes share the work (default: one per core). After `time_limit` seconds or Ctrl-C
    the result holds what was proven so far, with `is_complete` False. `method` runs one algorithm
    alone, `patience` is the number of reflection steps. Raises InputError when the domain does not
    fit the head or a class does not exist.
    """
    start = time.perf_counter()
    settings = _settings(method, patience, workers, seed, time_limit)
    domain.require_features(head.features)
    if settings.algorithm is Algorithm.CHEBYSHEV:
        require_box(domain)
    wanted = wanted_classes(head, only)
    checker = Checker(head, domain)
    twins = find_twins(head)
    ledger = Ledger(checker, twins, wanted)
    prover = Prover(checker, ignored=twins.ignored, tied=frozenset(twins.ties), score=None, seed=seed)
    run = _Run(ledger, prover, settings, Deadline(time_limit), progress or (lambda _: None))
    run.phases["set-up"] = time.perf_counter() - start
    is_complete = _settle_all(run)
    verdicts = ledger.verdicts()
    return Result(head, domain, checker.centre, verdicts, _cost(run, start), is_complete)


def _settings(
    method: Algorithm | str, patience: int | None, workers: int | None, seed: int, time_limit: float | None
) -> Settings:
    try:
        algorithm = Algorithm(method)
    except ValueError:
        raise InputError(f"no method '{method}': choose one of {', '.join(Algorithm)}.") from None
    if patience is None:
        patience = _PATIENCE_ALONE if algorithm is Algorithm.REFLECTION else _PATIENCE_BEFORE_SOLVING
    if patience < 0:
        raise InputError(f"patience counts steps of reflection and can't be {patience}.")
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if workers < 1:
        raise InputError(f"workers counts processes, this one included, and can't be {workers}.")
    if seed < 0:
        raise InputError(f"a seed can't be negative, found {seed}.")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit must be above 0 seconds, found {time_limit}.")
    return Settings(algorithm, patience, workers, seed)


def wanted_classes(head: Head, only: Iterable[int] | None) -> Ids:
    """The chosen class ids, sorted, each once."""
    if only is None:
        return np.arange(head.classes)
    wanted = np.unique(np.fromiter(only, np.intp))
    if len(wanted) == 0:
        raise InputError("no classes chosen: `only` is empty.")
    if wanted[0] < 0 or wanted[-1] >= head.classes:
        stray = int(wanted[0] if wanted[0] < 0 else wanted[-1])
        raise InputError(f"class {stray} does not exist: the head has classes 0 to {head.classes - 1}.")
    return wanted


def _settle_all(run: _Run) -> bool:
    """Work through the phases of the algorithm; False when interrupted."""
    work = {
        Algorithm.AUTO: _by_all_methods,
        Algorithm.OWN_DIRECTION: lambda run: _timed(run, "own direction", _try_own_directions),
        Algorithm.REFLECTION: lambda run: _timed(run, "reflection", _reflect_alone),
        Algorithm.INTERIOR_POINT: lambda run: _solve_with_pool(run),
        Algorithm.CHEBYSHEV: lambda run: _timed(run, "chebyshev", _solve_by_chebyshev),
    }[run.settings.algorithm]
    why, finished = f"not settled by {run.settings.algorithm} alone", True
    try:
        work(run)
    except (_Stop, KeyboardInterrupt):
        why, finished = "interrupted", False
    for class_id in run.ledger.open_ids.tolist():
        run.ledger.entries[class_id].reason = why
    return finished


def _by_all_methods(run: _Run) -> None:
    _timed(run, "own direction", _try_own_directions)
    _solve_with_pool(run)


def _solve_with_pool(run: _Run) -> None:
    """Start other processes, reflect while they get ready, then solve what is left."""
    with Pool(_useful_workers(run)) as pool:
        if pool.has_workers:
            _start_workers(run, pool)
        if run.settings.algorithm is Algorithm.AUTO:
            _timed(run, "reflection", _try_reflections)
        with threadpool_limits(limits=1, user_api="blas"):
            _timed(run, "solving", lambda run: _solve_rest(run, pool))


def _timed(run: _Run, phase: str, work: Callable[[_Run], None]) -> None:
    started = time.perf_counter()
    try:
        work(run)
    finally:
        run.phases[phase] = time.perf_counter() - started


def _report(run: _Run, phase: str, seconds_left: float | None = None) -> None:
    if run.deadline.has_passed:
        raise _Stop
    ledger = run.ledger
    run.progress(Progress(phase, len(ledger.entries), ledger.found, ledger.lost, seconds_left))


def _try_own_directions(run: _Run) -> None:
    ids = run.ledger.open_ids
    step = max(1, _BLOCK_SCORES // run.checker.head.classes)
    started = time.perf_counter()
    for first in range(0, len(ids), step):
        classes = ids[first : first + step]
        exponents = own_exponents(run.checker, classes)
        gaps = run.checker.gaps(classes, run.checker.rebuild(classes, exponents))
        method = Method.OWN_DIRECTION if run.checker.head.classes > 1 else Method.ONLY_CLASS
        settled = run.ledger.enter_gaps(classes, gaps, own_directions(exponents), method)
        run.prover.solver.blockers.saw(gaps.rival[~settled], 1e-3)
        done = first + len(classes)
        _report(run, "own direction", (time.perf_counter() - started) * (len(ids) - done) / done)


def _try_reflections(run: _Run) -> None:
    """Reflect all open classes until a step finds fewer than solving would in the same time."""
    ids = run.ledger.open_ids
    start = run.checker.rebuild(ids, own_exponents(run.checker, ids))[:, run.chart.kept]
    price = _SOLVE_SECONDS * run.chart.size**2 / run.settings.workers
    _reflect(run, ids, start, lambda number, found, seconds: number > 2 and found * price < seconds)


def _reflect_alone(run: _Run) -> None:
    """Braid Reflect as the paper has it: from x = w_c, for as long as patience lasts."""
    ids = run.ledger.open_ids
    _reflect(run, ids, run.checker.head.rows(ids)[:, run.chart.kept], lambda number, found, seconds: False)


def _reflect(
    run: _Run, ids: Ids, start: NDArray[np.float64], is_enough: Callable[[int, int, float], bool]
) -> None:
    if not len(ids) or not run.settings.patience:
        return
    began = time.perf_counter()
    for number, step in enumerate(reflect(run.chart, ids, start.astype(np.float32))):
        found = 0
        if len(step.classes):
            points = run.chart.to_point(step.points.astype(np.float64))
            gaps = run.checker.gaps(step.classes, points)
            witnesses = points_as_witnesses(points)
            found = int(run.ledger.enter_gaps(step.classes, gaps, witnesses, Method.REFLECTION).sum())
            for class_id in step.classes.tolist():
                run.ledger.entries[class_id].steps = number
        run.prover.solver.blockers.saw(step.winners, 1e-3)
        _report(run, "reflection")
        seconds, began = time.perf_counter() - began, time.perf_counter()
        if number >= run.settings.patience or is_enough(number, found, seconds):
            return


def _solve_by_chebyshev(run: _Run) -> None:
    ids, started = run.ledger.open_ids, time.perf_counter()
    for done, class_id in enumerate(ids.tolist()):
        _report(
            run, "chebyshev", (time.perf_counter() - started) * (len(ids) - done) / done if done else None
        )
        begin = time.perf_counter()
        centre = chebyshev_centre(run.chart, run.checker, class_id)
        answer = Answer(
            class_id, centre.point, centre.certificate, 0, run.checker.head.classes, 0, centre.reason
        )
        _enter(run, Report(Settled(answer, Method.CHEBYSHEV), time.perf_counter() - begin), share=False)
        run.ledger.entries[class_id].radius = centre.radius


def _useful_workers(run: _Run) -> int:
    """Other processes to start: none where the work is done before they are."""
    expected = run.ledger.open.sum() * _SOLVE_SECONDS * run.chart.size**2
    return run.settings.workers - 1 if expected > _WORTH_A_PROCESS else 0


def _start_workers(run: _Run, pool: Pool) -> None:
    checker, prover = run.checker, run.prover
    layout = lay_out(checker.head, checker.domain, pool.folder)
    pool.start(
        Assignment(
            **layout,
            centre=checker.centre,
            ignored=prover.ignored,
            tied=prover.solver.tied,
            score=prover.solver.blockers.score,
            seed=run.settings.seed,
        )
    )


def _solve_rest(run: _Run, pool: Pool) -> None:
    """This process solves from the middle of the open classes, the others from the outside: the
    middle ones tend to be lost and their proofs transfer, the outer ones tend to be found."""
    todo = deque(_from_the_middle(run.chart, run.ledger.open_ids).tolist())
    total, started = len(todo), time.perf_counter()
    while todo or pool.pending:
        _feed(run, pool, todo)
        mine = _next(run, todo.popleft) if todo else None
        if mine is not None:
            begin = time.perf_counter()
            settled = run.prover.settle(mine)
            _enter(run, Report(settled, time.perf_counter() - begin))
        reports, orphans = pool.collect(wait=0.0 if mine is not None else 0.05)
        for report in reports:
            _enter(run, report)
        todo.extend(orphans)
        done = total - len(todo) - pool.pending
        left = (time.perf_counter() - started) * (total - done) / done if done else None
        _report(run, "solving", left)


def _next(run: _Run, pop: Callable[[], int]) -> int | None:
    """The next class still open, or None at the end."""
    while True:
        try:
            class_id = pop()
        except IndexError:
            return None
        if run.ledger.open[class_id]:
            return class_id


def _feed(run: _Run, pool: Pool, todo: deque[int]) -> None:
    for worker in pool.idle():
        share = max(1, min(8, len(todo) // (4 * run.settings.workers)))
        batch = [class_id for _ in range(share) if (class_id := _next(run, todo.pop)) is not None]
        if batch:
            pool.submit(worker, batch)


def _from_the_middle(chart: Chart, ids: Ids) -> Ids:
    rows = chart.rows32[ids]
    if not len(ids):
        return ids
    return ids[np.argsort(((rows - rows.mean(axis=0)) ** 2).sum(axis=1))]


def _enter(run: _Run, report: Report, *, share: bool = True) -> None:
    """Put an answer into the ledger, checked again by this process, and try its proof on others."""
    settled, ledger, checker = report.settled, run.ledger, run.checker
    answer = settled.answer
    run.reports.append(report)
    ledger.enter_cost(
        answer.class_id, steps=answer.steps, rows=answer.rows, seconds=report.seconds, reason=answer.reason
    )
    if not ledger.open[answer.class_id]:
        return  # settled meanwhile by another's proof
    if answer.point is not None:
        ids = np.array([answer.class_id])
        gaps = checker.gaps(ids, answer.point[None])
        accepted = ledger.enter_gaps(ids, gaps, points_as_witnesses(answer.point[None]), settled.method)
        require(bool(accepted[0]), f"The witness for class {answer.class_id} failed its check.")
    elif answer.certificate is not None:
        bound = checker.bound(answer.class_id, answer.certificate)
        require(bound.upper <= 0, f"The certificate for class {answer.class_id} failed its check.")
        ledger.enter_bound(answer.class_id, bound, answer.certificate, settled.method)
        if share:
            _transfer(run, settled)
    else:
        ledger.open[answer.class_id] = False  # tried and undecided: its reason is entered


def _transfer(run: _Run, settled: Settled) -> None:
    certificate = settled.answer.certificate
    assert certificate is not None
    moved, uppers = transfer(run.chart, run.checker, certificate, run.ledger.open_ids)
    for class_id, upper in zip(moved.tolist(), uppers.tolist(), strict=True):
        run.ledger.enter_bound(class_id, Bound(upper, Strength.FLOAT64), certificate, Method.TRANSFER)


def _cost(run: _Run, start: float) -> Cost:
    answers = [report.settled.answer for report in run.reports]
    return Cost(
        seconds=time.perf_counter() - start,
        phases=run.phases,
        solves=len(answers),
        mean_steps=float(np.mean([answer.steps for answer in answers])) if answers else 0.0,
        mean_rows=float(np.mean([answer.rows for answer in answers])) if answers else 0.0,
    )
