"""One checker, several threads: each gets the answers it would get alone; and how many threads BLAS takes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

import argmaxable as am
from argmaxable.compute.backend import NumPy
from argmaxable.compute.threads import in_threads, one_thread, threads_for

THREADS, ROUNDS = 2, 40


def test_threads_have_memory_of_their_own() -> None:
    backend = NumPy()
    first = backend.products(np.ones((2, 3), np.float32), np.ones((4, 3), np.float32))
    with ThreadPoolExecutor(1) as other:
        second = other.submit(backend.products, np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))
        assert not np.shares_memory(first, second.result())
    assert (first == 3.0).all()


def test_one_thread_writes_over_its_last_products() -> None:
    backend = NumPy()
    points, rows = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    assert np.shares_memory(backend.products(points, rows), backend.products(points, rows))


def test_threads_that_share_a_checker_get_the_same_answers() -> None:
    rng = np.random.default_rng(0)
    head = am.Head(rng.standard_normal((600, 16)).astype(np.float32), rng.standard_normal(600))
    checker = am.Checker(head, am.Box(-1.0, 1.0))
    ids = np.arange(600)
    all_points = [rng.uniform(-1, 1, (600, 16)) for _ in range(THREADS)]
    alone = [checker.gaps(ids, points).lower for points in all_points]
    together = threading.Barrier(THREADS)

    def gaps_again(number: int) -> list[NDArray[np.float64]]:
        together.wait()
        return [checker.gaps(ids, all_points[number]).lower for _ in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        for number, found in enumerate(pool.map(gaps_again, range(THREADS))):
            assert all(np.array_equal(lower, alone[number]) for lower in found)


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_small_work_takes_one_thread_and_gives_the_others_back() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with threads_for(120):
            assert blas_threads() == {1}
            with one_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before
        with threads_for(4096):
            assert blas_threads() == before


def test_threads_are_given_back_after_an_error() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert blas_threads() == before


def test_tasks_are_done_once_each_with_one_thread_of_blas_where_there_are_more() -> None:
    done, seen = list[int](), set[int]()

    def task(number: int) -> None:
        done.append(number)
        seen.update(blas_threads())

    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        in_threads([partial(task, number) for number in range(20)])
        assert blas_threads() == before == {2}
    assert sorted(done) == list(range(20))
    assert seen == {1}


def test_the_failure_of_a_task_is_raised_in_the_end() -> None:

    def task(number: int) -> None:
        if number == 3:
            raise ValueError(number)

    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ValueError, match="3"):
            in_threads([partial(task, number) for number in range(20)])
        assert blas_threads() == before
