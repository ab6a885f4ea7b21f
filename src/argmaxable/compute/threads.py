"""How many threads the arithmetic takes: large products all that BLAS has, small dense work one.

The threads of a BLAS wait for each other by spinning. On matrices of a few hundred rows they spin longer than
they work, and on a busy machine much longer: an explanation of one class took 41 CPU seconds with two threads
and 4 with one. So whatever makes many small products one after another does it under `one_thread`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from argmaxable.compute import lapack

# Work on matrices of this many columns is worth more than one thread, unless other processes share the cores.
_MANY_FEATURES = 512
# More threads would wait for each other's Python, and each needs memory for its products.
_MOST_THREADS = 8


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread, in this process and until the end of the block or function."""
    before = [(library, library.num_threads) for library in _libraries()]
    changed = [(library, count) for library, count in before if count != 1]
    try:
        for library, _ in changed:
            library.set_num_threads(1)
        yield
    finally:
        for library, count in changed:
            library.set_num_threads(count)


def threads_for(features: int) -> AbstractContextManager[None]:
    """For dense work on rows of this length: one thread if they are short, otherwise all threads."""
    return one_thread() if features < _MANY_FEATURES else nullcontext()


def in_threads(tasks: Sequence[Callable[[], None]]) -> None:
    """Do tasks that are large products and passes over them, in as many threads as BLAS takes now. A product
    takes one of them then: BLAS shares out products, but not what is done with them."""
    count = min(len(tasks), _MOST_THREADS, max((library.num_threads for library in _libraries()), default=1))
    left, failures, lock = iter(tasks), list[BaseException](), threading.Lock()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    task = next(left, None)
                if task is None:
                    return
                task()
        except BaseException as failure:
            failures.append(failure)

    helpers = [threading.Thread(target=work) for _ in range(count - 1)]
    with one_thread() if helpers else nullcontext():
        for helper in helpers:
            helper.start()
        try:
            work()
        finally:
            for helper in helpers:
                helper.join()
    if failures:
        raise failures[0]


@cache
def _libraries() -> tuple[Any, ...]:
    """The BLAS libraries of this process; found once, which takes longer than a small solve."""
    assert lapack.dpotrf  # SciPy brings its own, which has to be loaded to be found
    return tuple(each for each in ThreadpoolController().lib_controllers if each.user_api == "blas")
