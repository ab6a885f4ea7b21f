"""Each method alone: what it says is true, what it can't say it leaves undecided, and no worker is needed."""

from __future__ import annotations

import functools
import math
import os
import signal
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy.optimize import linprog

from argmaxable import (
    Algorithm,
    Ball,
    Box,
    Certificate,
    Checker,
    Domain,
    DomainError,
    Everywhere,
    Head,
    InputError,
    LayerNorm,
    Method,
    Point,
    Progress,
    Result,
    RMSNorm,
    Status,
)
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.identical_rows import find_identical_rows
from argmaxable.prove.transfer import transfer
from argmaxable.questions.argmax import verify
from argmaxable.run.plan import ONE_PROCESS, Engine

BOX = Box(-100.0, 100.0)
DOMAINS: dict[str, Domain] = {
    "box": BOX,
    "box to one side": Box(0.0, 5.0),
    "everywhere": Everywhere(),
    "ball": Ball(10.0),
    "RMSNorm": RMSNorm(np.linspace(0.5, 2, 5)),
    "LayerNorm": LayerNorm(np.linspace(0.5, 2, 5), 0.1),
}
BOXES = {"box": BOX, "box to one side": Box(0.0, 5.0), "ranges": Box(-np.arange(1.0, 6), np.arange(2.0, 7))}
SEARCHES = (Algorithm.OWN_DIRECTION, Algorithm.REFLECTION)


def random_head(*, bias: bool, classes: int = 24, features: int = 5) -> Head:
    generator = np.random.default_rng(11)
    weight = generator.normal(size=(classes, features)).astype(np.float32)
    weight[: classes // 10] = weight[classes // 3 :].mean(axis=0)
    weight[: classes // 10] += 0.01 * generator.normal(size=(classes // 10, features)).astype(np.float32)
    return Head(weight, generator.normal(size=classes).astype(np.float32) if bias else None)


def tied_head(*, bias: bool) -> Head:
    """IdenticalRows of the outermost class, of one inside, and in pairs that differ by their bias alone."""
    head = random_head(bias=bias)
    weight, biases = np.array(head.weight), np.array(head.biases(), np.float32)
    outermost = int(np.abs(weight).sum(axis=1).argmax())
    weight[outermost] *= 2
    weight[10:13], biases[10:13] = weight[outermost], biases[outermost]
    weight[1], biases[1] = weight[0], biases[0]
    weight[15] = weight[16]
    return Head(weight, biases if bias else None)


HEADS: dict[str, Callable[[], Head]] = {
    "with bias": functools.partial(random_head, bias=True),
    "without bias": functools.partial(random_head, bias=False),
    "with ties and bias": functools.partial(tied_head, bias=True),
    "with ties": functools.partial(tied_head, bias=False),
    "of few classes": functools.partial(random_head, bias=False, classes=7),
    "of one class": lambda: Head(np.ones((1, 5))),
    "of one row": lambda: Head(np.ones((4, 5)), [0.0, 1.0, 1.0, 0.5]),
    "of zeros": lambda: Head(np.zeros((3, 5))),
}


@functools.cache
def by_all_methods(head_name: str, domain_name: str) -> Result:
    return verify(HEADS[head_name](), (DOMAINS | BOXES)[domain_name], engine=ONE_PROCESS)


def statuses(result: Result) -> list[Status]:
    return [verdict.status for verdict in result.verdicts]


# ---------------------------------------------------------------------- soundness of every method


@functools.cache
def by_one_method(head_name: str, domain_name: str, method: Algorithm) -> Result:
    together = by_all_methods(head_name, domain_name)
    return verify(together.head, together.domain, method=method, patience=40, engine=ONE_PROCESS)


@pytest.mark.parametrize("method", [*SEARCHES, Algorithm.INTERIOR_POINT])
@pytest.mark.parametrize("domain_name", DOMAINS)
@pytest.mark.parametrize("head_name", HEADS)
def test_a_method_alone_never_contradicts_all_of_them(
    head_name: str, domain_name: str, method: Algorithm
) -> None:
    together = by_all_methods(head_name, domain_name)
    alone = by_one_method(head_name, domain_name, method)
    for one, all_ in zip(alone.verdicts, together.verdicts, strict=True):
        assert one.status in (all_.status, Status.UNDECIDED)
        assert one.lower <= all_.upper
        assert all_.lower <= one.upper


@pytest.mark.parametrize("domain_name", DOMAINS)
@pytest.mark.parametrize("head_name", HEADS)
def test_all_methods_together_leave_nothing_undecided(head_name: str, domain_name: str) -> None:
    assert not by_all_methods(head_name, domain_name).undecided


@pytest.mark.parametrize("domain_name", ["box", "everywhere", "ball", "RMSNorm", "LayerNorm"])
@pytest.mark.parametrize("head_name", HEADS)
def test_the_interior_point_alone_decides_every_class(head_name: str, domain_name: str) -> None:
    together = by_all_methods(head_name, domain_name)
    alone = by_one_method(head_name, domain_name, Algorithm.INTERIOR_POINT)
    assert statuses(alone) == statuses(together)


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("head_name", ["with bias", "without bias"])
def test_a_search_never_says_unargmaxable(head_name: str, method: Algorithm) -> None:
    result = verify(HEADS[head_name](), method=method, patience=40, engine=ONE_PROCESS)
    assert not result.unargmaxable
    assert result.argmaxable
    assert result.undecided


@pytest.mark.parametrize("method", SEARCHES)
def test_a_class_left_undecided_says_why(method: Algorithm) -> None:
    for verdict in verify(HEADS["with bias"](), method=method, engine=ONE_PROCESS, patience=5).undecided:
        assert verdict.reason == f"not settled by {method} alone"


@pytest.mark.parametrize(
    ("method", "found_by"),
    [
        (Algorithm.OWN_DIRECTION, Method.OWN_DIRECTION),
        (Algorithm.REFLECTION, Method.REFLECTION),
        (Algorithm.CHEBYSHEV, Method.CHEBYSHEV),
    ],
)
def test_a_method_alone_signs_what_it_found(method: Algorithm, found_by: Method) -> None:
    result = verify(HEADS["with bias"](), method=method, engine=ONE_PROCESS)
    assert {verdict.method for verdict in result.argmaxable} == {found_by}


def test_methods_may_be_named_by_text() -> None:
    assert statuses(verify(HEADS["with bias"](), method="chebyshev")) == statuses(
        verify(HEADS["with bias"](), method=Algorithm.CHEBYSHEV)
    )


def test_an_unknown_method_is_an_input_error() -> None:
    with pytest.raises(InputError, match="choose one of"):
        verify(HEADS["with bias"](), method="magic")


# ---------------------------------------------------------------------- reflection


def test_reflection_without_patience_decides_nothing() -> None:
    result = verify(HEADS["with bias"](), method=Algorithm.REFLECTION, patience=0, engine=ONE_PROCESS)
    assert len(result.undecided) == result.head.classes


def test_more_patience_loses_no_class() -> None:
    found = [
        {
            verdict.class_id
            for verdict in verify(
                HEADS["with bias"](), method=Algorithm.REFLECTION, patience=patience, engine=ONE_PROCESS
            ).argmaxable
        }
        for patience in (0, 1, 2, 5, 20, 200)
    ]
    for less, more in pairwise(found):
        assert less <= more
    assert len(found[1]) < len(found[-1])


def test_reflection_takes_no_more_steps_than_its_patience() -> None:
    result = verify(HEADS["with bias"](), method=Algorithm.REFLECTION, patience=3, engine=ONE_PROCESS)
    assert max(verdict.steps for verdict in result.argmaxable) <= 3
    assert result.undecided


@pytest.mark.parametrize("patience", [0, 1, 30])
def test_patience_changes_no_status_when_a_solver_follows(patience: int) -> None:
    together = by_all_methods("with bias", "box")
    assert statuses(verify(together.head, BOX, patience=patience, engine=ONE_PROCESS)) == statuses(together)


# ---------------------------------------------------------------------- the Chebyshev centre


@functools.cache
def by_chebyshev(head_name: str, box_name: str) -> Result:
    return verify(HEADS[head_name](), BOXES[box_name], method=Algorithm.CHEBYSHEV, engine=ONE_PROCESS)


@pytest.mark.parametrize("box_name", BOXES)
@pytest.mark.parametrize("head_name", HEADS)
def test_chebyshev_agrees_with_all_methods(head_name: str, box_name: str) -> None:
    alone = by_chebyshev(head_name, box_name)
    assert statuses(alone) == statuses(by_all_methods(head_name, box_name))


@pytest.mark.parametrize("head_name", ["with ties and bias", "with ties"])
def test_chebyshev_tells_ties_from_other_losses(head_name: str) -> None:
    tied, tied_by_all = (
        [verdict.class_id for verdict in result.tied]
        for result in (by_chebyshev(head_name, "box"), by_all_methods(head_name, "box"))
    )
    assert tied == tied_by_all != []


@pytest.mark.parametrize("box_name", BOXES)
@pytest.mark.parametrize("head_name", ["with bias", "without bias", "of few classes"])
def test_a_radius_is_positive_where_and_only_where_a_class_is_argmaxable(
    head_name: str, box_name: str
) -> None:
    for verdict in by_chebyshev(head_name, box_name).verdicts:
        assert verdict.radius is not None
        # A class whose region is a cone with an empty inside has radius 0, up to HiGHS's tolerance.
        assert (verdict.radius > 1e-9) == (verdict.status is Status.ARGMAXABLE)


@pytest.mark.parametrize("box_name", BOXES)
@pytest.mark.parametrize("head_name", ["with bias", "without bias", "of few classes"])
def test_a_radius_is_the_optimum_of_the_paper_s_programme(head_name: str, box_name: str) -> None:
    result = by_chebyshev(head_name, box_name)
    rows, biases = result.head.rows(slice(None)), result.head.biases()
    bounds = [*zip(*BOXES[box_name].bounds(result.head.features), strict=True), (None, None)]
    for verdict in result.verdicts[::5]:
        normals = np.delete(rows - rows[verdict.class_id], verdict.class_id, axis=0)
        limits = np.delete(biases[verdict.class_id] - biases, verdict.class_id)
        lengths = np.sqrt((normals * normals).sum(axis=1, keepdims=True))
        cost = np.append(np.zeros(result.head.features), -1.0)
        optimum = linprog(cost, np.hstack([normals, lengths]), limits, bounds=bounds)
        assert verdict.radius == pytest.approx(-optimum.fun, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("box_name", BOXES)
def test_a_class_wins_in_the_whole_ball_around_its_witness(box_name: str) -> None:
    result = by_chebyshev("with bias", box_name)
    rows, biases = result.head.rows(slice(None)), result.head.biases()
    for verdict in result.argmaxable:
        assert isinstance(verdict.witness, Point)
        assert verdict.radius is not None
        ahead = np.delete(rows[verdict.class_id] - rows, verdict.class_id, axis=0)
        gaps = ahead @ verdict.witness.values + np.delete(biases[verdict.class_id] - biases, verdict.class_id)
        distances = gaps / np.sqrt((ahead * ahead).sum(axis=1))
        assert distances.min() == pytest.approx(verdict.radius, rel=1e-6, abs=1e-8)


def test_the_only_class_has_an_infinite_radius() -> None:
    assert [verdict.radius for verdict in by_chebyshev("of one class", "box").verdicts] == [math.inf]


@pytest.mark.parametrize("head_name", ["with bias", "without bias"])
def test_no_other_method_reports_a_radius(head_name: str) -> None:
    assert {verdict.radius for verdict in by_all_methods(head_name, "box").verdicts} == {None}


@pytest.mark.parametrize(
    "domain",
    [Everywhere(), Ball(3.0), RMSNorm(1.0), LayerNorm(1.0), Box(0.0, math.inf), Box(-math.inf, math.inf)],
    ids=str,
)
def test_chebyshev_refuses_a_domain_that_is_no_bounded_box(domain: Domain) -> None:
    with pytest.raises(DomainError, match="box with finite bounds"):
        verify(HEADS["with bias"](), domain, method=Algorithm.CHEBYSHEV)


# ---------------------------------------------------------------------- twins


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_equal_rows_are_twins_in_every_dtype(dtype: Any) -> None:
    weight = np.random.default_rng(0).normal(size=(50, 7)).astype(dtype)
    weight[[8, 31]] = weight[4]
    twins = find_identical_rows(Head(weight))
    assert twins.ties == {4: (4, 8, 31)}
    assert twins.ignored.tolist() == [8, 31]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_zeros_of_either_sign_are_equal(dtype: Any) -> None:
    twins = find_identical_rows(Head(np.array([[0.0, 1], [2, 2], [-0.0, 1]], dtype)))
    assert twins.ties == {0: (0, 2)}


def test_biases_of_zero_of_either_sign_are_equal() -> None:
    assert find_identical_rows(Head(np.ones((2, 3)), np.array([-0.0, 0.0]))).ties == {0: (0, 1)}


def test_a_twin_with_less_bias_loses_to_the_one_with_most() -> None:
    twins = find_identical_rows(Head(np.ones((4, 2)), [1.0, 3, 2, 3]))
    assert twins.ties == {1: (1, 3)}
    assert twins.beaten_by.tolist() == [1, -1, 1, 1]


def test_rows_that_differ_in_the_last_bit_are_no_twins() -> None:
    weight = np.ones((2, 64), np.float32)
    weight[1, 63] = np.nextafter(np.float32(1), np.float32(2))
    assert not find_identical_rows(Head(weight)).ties


def test_permuted_rows_are_no_twins() -> None:
    weight = np.tile(np.arange(6.0), (6, 1))
    for shift in range(6):
        weight[shift] = np.roll(weight[shift], shift)
    assert not find_identical_rows(Head(weight)).ties


def test_all_of_many_groups_of_twins_are_found() -> None:
    distinct = np.random.default_rng(0).integers(-2, 3, size=(400, 3)).astype(np.float16)
    twins = find_identical_rows(Head(distinct))
    rows, counts = np.unique(distinct, axis=0, return_counts=True)
    assert sorted(map(len, twins.ties.values())) == sorted(counts[counts > 1].tolist())
    assert len(twins.ignored) == 400 - len(rows)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_twins_tie_at_best(dtype: Any) -> None:
    weight = np.random.default_rng(0).normal(size=(30, 4)).astype(dtype)
    weight[7] *= 4
    weight[3] = weight[7]
    result = verify(Head(weight), engine=ONE_PROCESS)
    assert [verdict.class_id for verdict in result.tied] == [3, 7]
    for verdict in result.tied:
        assert (verdict.lower, verdict.upper, verdict.method) == (0, 0, Method.TWIN)


@pytest.mark.parametrize("method", Algorithm)
@pytest.mark.parametrize("shift", [0.0, 0.25])
def test_twins_that_others_dominate_do_not_count_as_tied(method: Algorithm, shift: float) -> None:
    # Two zero rows in the middle of a square; at x = 0 they tie with everyone, which proves nothing.
    corners = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    head = Head(np.vstack([corners, np.zeros((2, 2))]) + shift)
    result = verify(head, method=method, patience=30, engine=ONE_PROCESS)
    assert [verdict.status for verdict in result.verdicts[4:]] == [Status.UNARGMAXABLE] * 2
    assert not result.tied


# ---------------------------------------------------------------------- transfer


def clustered_head() -> Head:
    """200 rows that differ by 10⁻⁴, far below a simplex: a proof for one of them fits the others."""
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(260, 6))
    weight[60:] = weight[:60].mean(axis=0) + 1e-4 * generator.normal(size=(200, 6))
    return Head(weight, np.where(np.arange(260) < 60, 0.0, -50.0))


def test_one_proof_settles_a_cluster() -> None:
    result = verify(clustered_head(), engine=ONE_PROCESS)
    cluster = result.verdicts[60:]
    assert {verdict.status for verdict in cluster} == {Status.UNARGMAXABLE}
    assert sum(verdict.method is Method.TRANSFER for verdict in cluster) >= 190
    assert len({id(verdict.certificate) for verdict in cluster}) <= 10


def test_classes_settled_by_transfer_are_solved_by_the_others_too() -> None:
    head = clustered_head()
    assert (
        statuses(verify(head, method=Algorithm.CHEBYSHEV, only=range(60, 75))) == [Status.UNARGMAXABLE] * 15
    )


def test_a_proof_transfers_to_what_it_dominates_and_to_nothing_else() -> None:
    head = clustered_head()
    checker = Checker(head, BOX)
    certificate = Certificate(np.arange(60), np.ones(60))
    moved, uppers = transfer(
        coordinates_of(checker.prepared, checker.domain), checker, certificate, np.arange(60, 260)
    )
    proven = [checker.bound(class_id, certificate).upper <= 0 for class_id in range(60, 260)]
    assert moved.tolist() == (60 + np.flatnonzero(proven)).tolist()
    assert len(moved) == 200
    assert (uppers <= 0).all()


def test_a_proof_does_not_transfer_to_the_classes_it_is_made_of() -> None:
    head = clustered_head()
    checker = Checker(head, BOX)
    certificate = Certificate(np.arange(80), np.ones(80))
    moved, _ = transfer(
        coordinates_of(checker.prepared, checker.domain), checker, certificate, np.arange(260)
    )
    assert not set(moved.tolist()) & set(range(80))


def test_a_proof_with_a_basis_does_not_transfer() -> None:
    checker = Checker(clustered_head(), BOX)
    certificate = Certificate(np.arange(60), np.ones(60), basis=7)
    moved, uppers = transfer(
        coordinates_of(checker.prepared, checker.domain), checker, certificate, np.arange(60, 260)
    )
    assert len(moved) == len(uppers) == 0


# ---------------------------------------------------------------------- workers


def wide_head() -> Head:
    """550 classes found at once and 450 to solve, enough for a second process to be worth its start."""
    generator = np.random.default_rng(2)
    weight = generator.normal(size=(1000, 48)).astype(np.float32)
    weight[:450] *= 0.3
    return Head(weight, np.where(np.arange(1000) < 450, -2, 0).astype(np.float32))


def children() -> set[int]:
    """Processes that any thread of this one has started and not yet waited for."""
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        found.update(map(int, path.read_text().split()))
    return found


@pytest.fixture(scope="module")
def by_one_process() -> list[Status]:
    return statuses(verify(wide_head(), engine=ONE_PROCESS))


def test_two_processes_reach_the_same_verdicts_as_one(by_one_process: list[Status]) -> None:
    before, during = children(), set()

    def watch(progress: Progress) -> None:
        during.update(children() - before)

    assert statuses(verify(wide_head(), engine=Engine(workers=2), progress=watch)) == by_one_process
    assert len(during) == 1
    assert children() == before


def test_a_killed_worker_loses_nothing(by_one_process: list[Status]) -> None:
    before, solving, killed = children(), threading.Event(), []

    def watch(progress: Progress) -> None:
        # In the middle of the solves: the worker has classes of which nothing is heard yet.
        if progress.done >= 700:
            solving.set()

    def kill() -> None:
        solving.wait()
        for child in children() - before:
            os.kill(child, signal.SIGKILL)
            killed.append(child)

    killer = threading.Thread(target=kill)
    killer.start()
    result = verify(wide_head(), engine=Engine(workers=2), progress=watch)
    solving.set()
    killer.join()
    assert len(killed) == 1
    assert statuses(result) == by_one_process
    assert result.is_complete
    assert children() == before


def test_an_interruption_leaves_no_worker_behind() -> None:
    before = children()

    def interrupt(progress: Progress) -> None:
        if progress.phase == "solving":
            raise KeyboardInterrupt

    result = verify(wide_head(), engine=Engine(workers=2), progress=interrupt)
    assert not result.is_complete
    assert result.argmaxable
    assert {verdict.reason for verdict in result.undecided} == {"interrupted"}
    assert children() == before
