"""Pointwise functions: each theorem of section 4 of Ganea et al. 2019, shown on matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from argmaxable.core.errors import InputError
from argmaxable.theory.exact_rank import exact_rank, find_pivots
from argmaxable.theory.pointwise import (
    PiecewiseLinear,
    approximate,
    approximation_bound,
    increasing_like,
    indicator,
    log_emphasis,
    power_rank_bound,
    random_of_rank,
    separating_contexts,
    squares_to_full_rank,
)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)


# ---------------------------------------------------------------------- exact ranks


@pytest.mark.parametrize("rank", [0, 1, 4, 9])
def test_the_exact_rank_is_that_of_the_construction(rank: int, generator: np.random.Generator) -> None:
    matrix = random_of_rank((12, 9), rank, generator)
    assert exact_rank(matrix) == exact_rank(matrix.astype(float)) == rank


def test_the_exact_rank_sees_the_last_bit() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)]])
    assert exact_rank(matrix) == 2
    assert exact_rank(matrix * 2.0**-900) == 2
    assert np.linalg.matrix_rank(matrix) == 1


def test_the_exact_rank_of_wide_scales_is_right() -> None:
    assert exact_rank(np.diag([1e-300, 1.0, 1e300, 0.0])) == 3


def test_pivots_are_a_regular_submatrix(generator: np.random.Generator) -> None:
    matrix = random_of_rank((10, 8), 5, generator)
    pivots = find_pivots(matrix)
    assert exact_rank(matrix[np.ix_(pivots.rows, pivots.columns)]) == len(pivots) == 5


@pytest.mark.parametrize("matrix", [[1.0, 2.0], [[np.nan]], [["a"]]], ids=str)
def test_what_has_no_rank_is_refused(matrix: list[object]) -> None:
    with pytest.raises(InputError):
        exact_rank(np.array(matrix))


# ---------------------------------------------------------------------- Theorem 3


@pytest.mark.parametrize(
    "function",
    [np.cos, np.square, lambda x: np.sign(x), lambda x: (x > 40) * 1.0],
    ids=["cos", "square", "sign", "step"],
)
@pytest.mark.parametrize("rank", [1, 3])
def test_an_increasing_bijection_lifts_the_rank_as_far_as_any_function(
    function: Callable[[np.ndarray], np.ndarray], rank: int, generator: np.random.Generator
) -> None:
    matrix = random_of_rank((11, 10), rank, generator, largest=9).astype(float)
    g = increasing_like(matrix, function)
    assert exact_rank(g(matrix)) >= exact_rank(function(matrix))
    assert g(np.array([-1e6, 1e6])).tolist() == [-1e6, 1e6]
    x = np.sort(generator.uniform(matrix.min() - 5, matrix.max() + 5, 1000))
    assert (np.diff(g(x)) > 0).all()
    assert g.inverse()(g(x)) == pytest.approx(x, abs=1e-9)


def test_a_function_that_makes_everything_zero_asks_for_nothing() -> None:
    g = increasing_like(np.ones((2, 2)), lambda x: 0 * x)
    assert g([-3.0, 0.5, 7.0]).tolist() == [-3.0, 0.5, 7.0]


def test_entries_one_bit_apart_are_refused() -> None:
    matrix = np.array([[1.0, np.nextafter(1.0, 2.0)], [2.0, 1.0]])
    with pytest.raises(InputError, match="leave no room"):
        increasing_like(matrix, np.square)


# ---------------------------------------------------------------------- Lemma 4


def test_logits_of_a_generic_head_can_be_separated(generator: np.random.Generator) -> None:
    logits = generator.standard_normal((30, 2)) @ generator.standard_normal((2, 12))
    contexts = separating_contexts(logits)
    assert contexts is not None
    assert len(set(contexts.tolist())) == 12
    chosen = logits[contexts, np.arange(12)]
    assert all((logits == value).sum() == 1 for value in chosen)
    function = indicator(chosen)
    assert exact_rank(function(logits)) == 12
    assert exact_rank(increasing_like(logits, function)(logits)) == 12


def test_a_class_whose_logits_all_occur_elsewhere_can_not_be_separated(
    generator: np.random.Generator,
) -> None:
    logits = generator.standard_normal((30, 5))
    logits[:, 3] = logits[:, 1]
    assert separating_contexts(logits) is None


def test_each_class_needs_a_context_of_its_own() -> None:
    # Both classes have their only rare logit in the first context.
    assert separating_contexts(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])) is None
    found = separating_contexts(np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]))
    assert found is not None
    assert found.tolist() == [0, 1]


def test_fewer_contexts_than_classes_are_never_enough(generator: np.random.Generator) -> None:
    assert separating_contexts(generator.standard_normal((4, 5))) is None


# ---------------------------------------------------------------------- Theorems 5 and 6


@pytest.mark.parametrize("power", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_powers_of_a_generic_matrix_have_the_rank_of_aminis_bound(
    rank: int, power: int, generator: np.random.Generator
) -> None:
    matrix = random_of_rank((14, 12), rank, generator)
    assert exact_rank(matrix) == rank
    assert exact_rank(matrix**power) == power_rank_bound(rank, power, (14, 12))


def test_aminis_bound_is_a_binomial_or_the_size() -> None:
    assert power_rank_bound(400, 2, (10_000, 50_000)) == 10_000
    assert power_rank_bound(100, 2, (10_000, 50_000)) == 5050
    assert power_rank_bound(0, 3, (5, 5)) == 0
    with pytest.raises(InputError):
        power_rank_bound(3, 0, (5, 5))


@pytest.mark.parametrize("size", [3, 4, 7, 20])
def test_squaring_lifts_rank_n_minus_1_to_n(size: int, generator: np.random.Generator) -> None:
    assert all(squares_to_full_rank(size, generator) for _ in range(30))


def test_squaring_never_lifts_two_by_two_matrices(generator: np.random.Generator) -> None:
    assert not any(squares_to_full_rank(2, generator) for _ in range(30))


# ---------------------------------------------------------------------- equation 9


def test_an_error_in_a_small_probability_costs_most() -> None:
    x = np.logspace(-8, 0, 50)
    for error in (1e-9, 1e-3, 0.5):
        found = log_emphasis(x, error)
        assert (found.below < found.change).all()
        assert (found.change < found.above).all()
        assert (np.diff(found.change) < 0).all()


def test_probability_zero_has_no_logarithm() -> None:
    with pytest.raises(InputError):
        log_emphasis([0.0, 0.5], 0.1)


# ---------------------------------------------------------------------- Theorem 7

# Each row: an increasing function, and its largest slope on [−10, 10].
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "sigsoftmax": (lambda x: 2 * x - np.logaddexp(0, x), 2.0),
    "tanh": (np.tanh, 1.0),
    "cube": (lambda x: x**3 + x, 301.0),
    "waves": (lambda x: x + 0.9 * np.sin(x), 1.9),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_plifs_with_more_bins_come_as_near_as_the_bound_says(name: str) -> None:
    function, steepest = FUNCTIONS[name]
    x = np.linspace(-10, 10, 20_001)
    errors = []
    for bins in (16, 256, 4096):
        plif = approximate(function, reach=10.0, bins=bins)
        errors.append(float(np.abs(plif(x) - function(x)).max()))
        assert errors[-1] <= approximation_bound(steepest, reach=10.0, bins=bins)
        assert plif(plif.knots) == pytest.approx(function(plif.knots), abs=1e-12)
        assert (plif.slopes > 0).all()
    assert errors[2] < errors[1] / 100 < errors[0] / 1000


def test_the_end_slopes_go_on_so_that_it_is_a_bijection() -> None:
    plif = approximate(np.tanh, reach=2.0, bins=8)
    assert plif(np.array([-1e9, 1e9])) == pytest.approx([-1e9 * plif.left, 1e9 * plif.right], rel=1e-6)
    x = np.linspace(-50, 50, 1001)
    assert plif.inverse()(plif(x)) == pytest.approx(x)


def test_a_function_that_falls_is_refused() -> None:
    with pytest.raises(InputError, match="does not increase from 0 to"):
        approximate(lambda x: x - 2 * np.maximum(x, 0), reach=1.0, bins=10)
    with pytest.raises(InputError):
        PiecewiseLinear(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1.0, 1.0)


def test_a_bound_for_no_bins_is_refused() -> None:
    with pytest.raises(InputError, match="needs a bin"):
        approximation_bound(2, reach=1, bins=0)
