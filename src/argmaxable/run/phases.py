"""The phases of a run: searches over all open classes at once, then a solve for each one left."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Bound
from argmaxable.compute.blocks import blocks
from argmaxable.compute.threads import one_thread
from argmaxable.core.progress import Pace, TimeIsOver
from argmaxable.core.verdict import Algorithm, Method, Strength
from argmaxable.prove.attempt import Answer
from argmaxable.prove.chebyshev import chebyshev_centre
from argmaxable.prove.prover import Settled
from argmaxable.prove.shared_rows import prove_together
from argmaxable.run.engines.engine import Job, Report, Workers, settle_each
from argmaxable.run.engines.in_process import InProcess
from argmaxable.run.engines.processes import Processes
from argmaxable.run.reflecting import reflect_alone, reflect_while_it_pays
from argmaxable.run.session import Session
from argmaxable.run.settled_classes import own_directions, points_as_witnesses
from argmaxable.search.corners import corner_winners
from argmaxable.search.own_direction import far_points, own_exponents

if TYPE_CHECKING:
    from collections.abc import Callable

    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids
    from argmaxable.run.plan import Settings

# Rough price of a solve, in units of one feature squared: decides when reflection stops paying
# and whether other processes are worth their start-up. Measured on the OCR heads (d = 64 to 120).
_SOLVE_SECONDS = 6e-3 / 120**2
# A class that turns out argmaxable looks at all rows about four times, besides: a second for so many weights.
_LOOK_SECONDS = 1e-9
_WORTH_A_PROCESS = 0.4
# Processes are started before it is known how many classes the first phase leaves open, unless they would be
# worth it only if it left more than this share.
_LEFT_OPEN = 0.1
# Reflection waits for proofs that settle at least so many classes each; it begins after so many that do not.
_MANY_AT_ONCE, _FEW_IN_A_ROW = 8, 8
# Classes that a process settles at a time, or is sent.
_BATCH = 8


def early_processes(settings: Settings, classes: int, features: int) -> Processes:
    """Processes to share the work; where they are likely to be needed they start at once, and load while the
    head is prepared. Use as a context manager."""
    processes = Processes((settings.workers or 1) - 1)
    solves = settings.algorithm in (Algorithm.AUTO, Algorithm.INTERIOR_POINT) and settings.ray is None
    if solves and _solve_seconds(classes, features) * _LEFT_OPEN >= _WORTH_A_PROCESS:
        processes.spawn()
    return processes


def _solve_seconds(classes: int, features: int) -> float:
    return classes * _SOLVE_SECONDS * features**2


def settle_all(session: Session) -> bool:
    """Work through the phases of the algorithm; False when interrupted."""
    why, finished = f"not settled by {session.settings.algorithm} alone", True
    try:
        _PHASES[session.settings.algorithm](session)
    except (TimeIsOver, KeyboardInterrupt):
        why, finished = "interrupted", False
    session.settled_classes.explain_open(why, finished=finished)
    return finished


def _by_all_methods(session: Session) -> None:
    session.timed("own direction", partial(_try_own_directions, session))
    _solve(session)


def _solve(session: Session) -> None:
    """Start the others, reflect while they get ready, then solve what is left."""
    started = time.perf_counter()
    with _engine(session) as engine:
        session.phases["engine"] = time.perf_counter() - started
        if engine.size:
            engine.start(_job(session))
        if session.settings.algorithm is Algorithm.AUTO:
            session.timed("first proofs", partial(_prove_from_the_middle, session))
            session.timed("reflection", partial(_try_reflections, session, engine))
            session.timed("shared rows", partial(_prove_together, session))
        with one_thread():  # each of the other processes has one too
            try:
                session.timed("solving", partial(_solve_rest, session, engine))
            finally:
                session.enter_placed()


def _by_own_direction(session: Session) -> None:
    session.timed("own direction", partial(_try_own_directions, session))


def _by_reflection(session: Session) -> None:
    session.timed("reflection", partial(reflect_alone, session))


def _by_chebyshev(session: Session) -> None:
    session.timed("chebyshev", partial(_solve_by_chebyshev, session))


_PHASES: dict[Algorithm, Callable[[Session], None]] = {
    Algorithm.AUTO: _by_all_methods,
    Algorithm.OWN_DIRECTION: _by_own_direction,
    Algorithm.REFLECTION: _by_reflection,
    Algorithm.INTERIOR_POINT: _solve,
    Algorithm.CHEBYSHEV: _by_chebyshev,
}


def _try_own_directions(session: Session) -> None:
    ids, checker = session.settled_classes.open_ids, session.checker
    if not checker.domain.has_features:
        _try_corners(session) if session.coordinates.corners is not None else _try_far_points(session, ids)
        return
    exponents = own_exponents(checker, ids)
    method = Method.OWN_DIRECTION if checker.head.classes > 1 else Method.ONLY_CLASS
    pace, done = Pace(), 0
    for some, gaps in checker.own_gaps(ids, exponents):
        settled = session.settled_classes.enter_gaps(ids[some], gaps, own_directions(exponents[some]), method)
        session.rivals[ids[some]] = gaps.rival
        session.prover.solver.blockers.saw(gaps.rival[~settled], 1e-3)
        done += len(some)
        session.report("own direction", pace.seconds_left(done, len(ids)))


def _try_corners(session: Session) -> None:
    """Over a hull, whoever wins at one of the given vectors; the others have no direction of their own."""
    classes, corners = corner_winners(session.coordinates)
    is_open = session.settled_classes.open[classes]
    classes, corners = classes[is_open], corners[is_open]
    for block in blocks(len(classes), session.checker.domain.point_size(session.checker.head.features)):
        points = session.coordinates.corner_points(corners[block])
        gaps = session.checker.gaps(classes[block], points)
        session.settled_classes.enter_gaps(classes[block], gaps, points_as_witnesses(points), Method.CORNER)
        session.report("corners")


def _try_far_points(session: Session, ids: Ids) -> None:
    """Where z is not of feature space: each class at the point of the domain that favours its own row
    most."""
    for block in blocks(len(ids), max(1, session.coordinates.size)):
        points = session.coordinates.to_point(far_points(session.coordinates, ids[block]))
        gaps = session.checker.gaps(ids[block], points)
        witnesses = points_as_witnesses(points)
        settled = session.settled_classes.enter_gaps(ids[block], gaps, witnesses, Method.OWN_DIRECTION)
        session.prover.solver.blockers.saw(gaps.rival[~settled], 1e-3)
        session.report("own direction")


def _prove_from_the_middle(session: Session) -> None:
    """Classes in the middle, as long as each proof settles many: reflection can't settle those, and a step of
    it takes as much longer as there are more of them.

    Rows that training hardly touched lie close together, and one proof may settle them all. Where they are
    many, the median is among them; from the mean it took dozens of proofs to come across the first.
    """
    if not session.coordinates.is_bounded:
        return  # no proof transfers
    misses = 0
    ids = _from_the_middle(session.coordinates, session.settled_classes.open_ids, _median)
    with one_thread():
        for class_id in ids.tolist():
            if not session.settled_classes.open[class_id]:
                continue
            before = session.settled_classes.unargmaxable
            _settle_here(session, [class_id])
            session.report("first proofs")
            is_many = session.settled_classes.unargmaxable - before >= _MANY_AT_ONCE
            misses = 0 if is_many else misses + 1
            if misses == _FEW_IN_A_ROW:
                return


def _try_reflections(session: Session, engine: Workers) -> None:
    """Reflect all open classes until a step finds fewer than solving would in the same time."""
    size, classes = session.coordinates.size, session.checker.head.classes
    price = (_solve_seconds(1, size) + _LOOK_SECONDS * classes * size) / (engine.size + 1)
    reflect_while_it_pays(session, price)


def _prove_together(session: Session) -> None:
    """Classes deep inside the hull, all over the same rows of classes that have won."""
    settled_classes, checker = session.settled_classes, session.checker
    winners = np.setdiff1d(session.coordinates.usable, settled_classes.open_ids, assume_unique=True)
    for found in prove_together(
        session.coordinates, settled_classes.open_ids, winners, seed=session.settings.seed
    ):
        uppers = checker.bounds_together(found.classes, found.certificates).tolist()
        for class_id, certificate, upper in zip(
            found.classes.tolist(), found.certificates, uppers, strict=True
        ):
            if upper <= 0:
                settled_classes.enter_bound(
                    class_id, Bound(upper, Strength.INTERVAL), certificate, Method.SHARED_ROWS
                )
        session.report("shared rows")


def _solve_by_chebyshev(session: Session) -> None:
    ids, pace = session.settled_classes.open_ids, Pace()
    for done, class_id in enumerate(ids.tolist()):
        session.report("chebyshev", pace.seconds_left(done, len(ids)))
        begin = time.perf_counter()
        centre = chebyshev_centre(
            session.coordinates, session.checker, class_id, tied=class_id in session.prover.solver.tied
        )
        answer = Answer(
            class_id, centre.point, centre.certificate, 0, session.checker.head.classes, 0, centre.reason
        )
        session.enter(Report(Settled(answer, Method.CHEBYSHEV), time.perf_counter() - begin), share=False)
        session.settled_classes.enter_radius(class_id, centre.radius)


def _engine(session: Session) -> Workers:
    """Who shares the work: nobody where it is done before other processes have started."""
    workers, address = session.settings.workers, session.settings.ray
    if address is not None:
        from argmaxable.run.engines.ray import RayWorkers  # imports what few runs need

        return RayWorkers(address, workers)
    expected = _solve_seconds(int(session.settled_classes.open.sum()), session.coordinates.size)
    if session.processes.size and expected >= _WORTH_A_PROCESS:
        return session.processes
    session.processes.close()  # started too soon
    return InProcess()


def _job(session: Session) -> Job:
    checker, prover = session.checker, session.prover
    return Job(
        head=checker.head,
        domain=checker.domain,
        centre=checker.centre,
        ignored=prover.ignored,
        tied=prover.solver.tied,
        score=prover.solver.blockers.score,
        seed=session.settings.seed,
        memory=session.settings.compute.memory,
    )


def _solve_rest(session: Session, engine: Workers) -> None:
    """This process solves from the middle of the open classes, the others from the outside: the
    middle ones tend to be unargmaxable, with proofs that transfer, the outer ones argmaxable."""
    todo = deque(_from_the_middle(session.coordinates, session.settled_classes.open_ids).tolist())
    total, pace = len(todo), Pace()
    while todo or engine.pending:
        _feed(session, engine, todo)
        mine = _some(session, todo.popleft, min(_share(engine, todo), session.prover.together))
        _settle_here(session, mine)
        reports, orphans = engine.collect(wait=0.0 if mine else 0.05)
        session.enter_others(reports)
        todo.extend(orphans)
        done = total - len(todo) - engine.pending
        session.report("solving", pace.seconds_left(done, total))


def _settle_here(session: Session, classes: list[int]) -> None:
    for report in settle_each(session.prover, classes):
        session.enter_own(report)


def _next(session: Session, pop: Callable[[], int]) -> int | None:
    """The next class still open, or None at the end."""
    while True:
        try:
            class_id = pop()
        except IndexError:
            return None
        if session.settled_classes.open[class_id]:
            return class_id


def _feed(session: Session, engine: Workers, todo: deque[int]) -> None:
    # Classes settled side by side are done at the same time: those that come next have to be there by then.
    share = _share(engine, todo)
    for worker in engine.idle(left=min(share, session.prover.together)):
        batch = _some(session, todo.pop, share)
        if batch:
            engine.submit(worker, batch)


def _share(engine: Workers, todo: deque[int]) -> int:
    """How many classes to settle next: few when there are few left, so that all finish together."""
    return max(1, min(_BATCH, len(todo) // (4 * (engine.size + 1))))


def _some(session: Session, pop: Callable[[], int], count: int) -> list[int]:
    """The next classes still open, as many as are left of these."""
    return [class_id for _ in range(count) if (class_id := _next(session, pop)) is not None]


def _median(rows: NDArray[np.float32], *, axis: int) -> NDArray[np.float32]:
    """The upper median; NumPy's own loads masked arrays, which takes 25 ms."""
    middle = rows.shape[axis] // 2
    return np.asarray(np.partition(rows, middle, axis=axis).take(middle, axis=axis))


def _from_the_middle(
    coordinates: Coordinates, ids: Ids, middle: Callable[..., NDArray[np.float32]] = np.mean
) -> Ids:
    if not len(ids):
        return ids
    rows = coordinates.rows32[ids]
    with np.errstate(over="ignore", invalid="ignore"):
        return ids[np.argsort(((rows - middle(rows, axis=0)) ** 2).sum(axis=1))]
