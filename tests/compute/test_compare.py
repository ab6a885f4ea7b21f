"""Products in blocks, on every backend, against scores written out in full."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from argmaxable.compute.backend import Backend, backend_of
from argmaxable.compute.compare import Best, best_at, best_at_own_rows
from argmaxable.compute.rows import Rows, StreamedRows, hold, lengths, scores_at
from argmaxable.core.errors import InputError

# More than one block of 2,048 in both directions, and no multiple of it.
CLASSES, FEATURES = 4500, 5
# Small integers: every product and sum is exact, so that results can be compared bit by bit.
ROWS = np.random.default_rng(0).integers(-8, 9, (CLASSES, FEATURES)).astype(np.float32)


def has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(
    params=[
        "numpy",
        "cpu",
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not has_cuda(), reason="this machine has no CUDA device")
        ),
    ]
)
def backend(request: pytest.FixtureRequest) -> Backend:
    return backend_of(request.param)


@pytest.fixture(params=["held", "streamed"])
def rows(request: pytest.FixtureRequest) -> Rows:
    streamed = StreamedRows(ROWS.shape, lambda ids: ROWS[ids])
    return streamed if request.param == "streamed" else hold(streamed)


def offsets_for(with_bias: bool) -> NDArray[np.float32] | None:
    return np.random.default_rng(1).integers(-9, 10, CLASSES).astype(np.float32) if with_bias else None


@dataclass(frozen=True, eq=False)
class Truth:
    """Points, a class for each, its score there, and the best of all others."""

    points: NDArray[np.float64]
    classes: NDArray[np.intp]
    own: NDArray[np.float64]
    highest: NDArray[np.float64]

    @staticmethod
    def of(points: NDArray[np.float64], classes: NDArray[np.intp], with_bias: bool) -> Truth:
        scores = points @ ROWS.astype(float).T + (
            0 if (offsets := offsets_for(with_bias)) is None else offsets
        )
        each = np.arange(len(classes))
        own = scores[each, classes].copy()
        scores[each, classes] = -np.inf
        return Truth(points, classes, own, scores.max(axis=1))

    def require(self, best: Best, offsets: NDArray[np.float32] | None, block: slice = slice(None)) -> None:
        """Both scores are these to the last bit, and the rival has the better one."""
        np.testing.assert_array_equal(best.own, self.own[block])
        np.testing.assert_array_equal(best.score, self.highest[block])
        of_rivals = np.einsum("ij,ij->i", self.points[block], ROWS[best.rival].astype(float))
        of_rivals += 0 if offsets is None else offsets[best.rival]
        np.testing.assert_array_equal(of_rivals, self.highest[block])
        assert (best.rival != self.classes[block]).all()


@functools.cache
def truth_at_points(with_bias: bool) -> Truth:
    generator = np.random.default_rng(2)
    points = generator.integers(-8, 9, (3000, FEATURES)).astype(float)
    return Truth.of(points, generator.integers(0, CLASSES, 3000), with_bias)


@functools.cache
def scales_and_truth_at_own_rows(with_bias: bool, share: float) -> tuple[NDArray[np.float32], Truth]:
    generator = np.random.default_rng(3)
    classes = np.flatnonzero(generator.random(CLASSES) <= share)
    scale = np.ldexp(np.float32(1), generator.integers(-3, 4, len(classes)))
    return scale, Truth.of(ROWS[classes].astype(float) * scale[:, None], classes, with_bias)


@pytest.mark.parametrize("with_bias", [False, True])
def test_the_best_rival_at_points_is_that_of_all_scores(
    backend: Backend, rows: Rows, with_bias: bool
) -> None:
    truth, offsets = truth_at_points(with_bias), offsets_for(with_bias)
    best = best_at(backend, rows, offsets, truth.points.astype(np.float32), truth.classes)
    truth.require(best, offsets)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_own_rows_meet_once_and_find_the_same_rivals(
    backend: Backend, rows: Rows, with_bias: bool, share: float
) -> None:
    (scale, truth), offsets = scales_and_truth_at_own_rows(with_bias, share), offsets_for(with_bias)
    seen = np.zeros(len(truth.classes), int)
    for block, best in best_at_own_rows(backend, rows, offsets, scale, truth.classes):
        seen[block] += 1
        truth.require(best, offsets, block)
    assert (seen == 1).all()


def test_scores_and_lengths_are_the_same_for_streamed_rows(rows: Rows) -> None:
    point = np.arange(FEATURES, dtype=np.float32)
    np.testing.assert_array_equal(scores_at(rows, point), rows[:] @ point)
    np.testing.assert_allclose(lengths(rows), np.linalg.norm(rows[:], axis=1), rtol=1e-6)


def test_the_only_class_has_no_rival(backend: Backend) -> None:
    (_, best), *more = best_at_own_rows(
        backend, np.ones((1, 2), np.float32), None, np.ones(1, np.float32), np.array([0])
    )
    assert not more
    assert (best.rival[0], best.own[0]) == (-1, 2)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no device 'nowhere'"):
        backend_of("nowhere")


def test_products_ignore_reduced_precision_set_by_the_user() -> None:
    import torch

    generator = np.random.default_rng(4)
    points, rows = (generator.standard_normal((64, 256)).astype(np.float32) for _ in range(2))
    exact = points.astype(float) @ rows.astype(float).T
    torch.set_float32_matmul_precision("medium")
    try:
        backend = backend_of("cpu")
        found = backend.products(backend.block(points, slice(None)), backend.block(rows, slice(None)))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    bound = 256 * 2.0**-24 * (np.abs(points).astype(float) @ np.abs(rows).astype(float).T)
    assert (np.abs(found.numpy() - exact) <= bound).all()
