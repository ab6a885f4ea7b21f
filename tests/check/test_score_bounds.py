"""The bounds on rounding that gaps at points rest on, term by term: no smaller than the formula that the
documentation derives, and hardly larger. Each case makes one term large and the others vanish."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.witnesses import _DOUBLE, _SINGLE, Gaps, Scores, _unclear_rivals
from argmaxable.compute.backend import NumPy
from argmaxable.compute.compare import Best
from argmaxable.compute.prepared import prepared
from argmaxable.core.verdict import Strength

INF = math.inf
SINGLE, DOUBLE = (2.0**-24, 2.0**-125), (2.0**-53, 2.0**-1021)
FORMATS = [(_SINGLE, *SINGLE), (_DOUBLE, *DOUBLE)]
every_format = pytest.mark.parametrize(("floats", "unit", "tiny"), FORMATS, ids=["float32", "float64"])


def gamma(count: int, unit: float) -> float:
    return count * unit / (1 - count * unit)


def scores_of(rows: Any, biases: Any = None, domain: am.Domain | None = None, without: Any = None) -> Scores:
    head = am.Head(np.array(rows, float), None if biases is None else np.array(biases, float))
    return Scores(prepared(head, np.zeros(head.features)), domain or am.Everywhere(), without)


def along(length: float, features: int = 3) -> list[float]:
    """A vector of this length."""
    return [length, *[0.0] * (features - 1)]


def is_just(found: Any, expected: float) -> bool:
    """No less, and no more than a millionth more."""
    return bool(np.all((np.asarray(found) >= expected * (1 - 1e-12)) & (found <= expected * (1 + 1e-6))))


# ---------------------------------------------------------------------- errors of scores


@every_format
@pytest.mark.parametrize("features", [1, 3, 40])
def test_a_score_is_off_by_its_sums_and_ten_roundings_more(
    features: int, floats: Any, unit: float, tiny: float
) -> None:
    x = np.vstack([np.full(features, -2.0), along(5.0, features)])
    error = scores_of([along(1.0, features)])._score_error(x, np.zeros_like(x), floats)
    relative, norms = gamma(features + 10, unit), np.array([0.0, 1.0, 7.0])
    for k, length in enumerate((2 * math.sqrt(features), 5.0)):
        for norm, found in zip(norms, error(norms, 0.0, k), strict=True):
            assert is_just(found, relative * norm * length) or norm == 0
        assert is_just(error(0.0, 3.0, k), relative * 3)
        assert is_just(error(2.0, 3.0, k), relative * (2 * length + 3))
    assert is_just(error(np.ones(2), np.zeros(2)) / [2 * math.sqrt(features), 5.0], relative)


@every_format
def test_a_point_that_is_misplaced_moves_a_score_by_the_row_times_that(
    floats: Any, unit: float, tiny: float
) -> None:
    misplaced = np.array([[3.0, -4.0], [0.0, 1.0]])
    error = scores_of([[1.0, 0.0]])._score_error(np.zeros((2, 2)), misplaced, floats)
    assert is_just(error(6.0, 0.0, 0), 30.0)
    assert is_just(error(6.0, 0.0, 1), 6.0)


@every_format
def test_what_underflows_is_counted_for_every_product(floats: Any, unit: float, tiny: float) -> None:
    """Without rows and biases nothing else is left."""
    x = np.array([[2.0, -8.0, 1.0], [0.5, 0.0, 0.0]])
    error = scores_of([along(1.0)])._score_error(x, np.zeros_like(x), floats)
    assert is_just(error(0.0, 0.0, 0), 2 * 3 * tiny * 9)
    assert is_just(error(0.0, 0.0, 1), 2 * 3 * tiny * 1.5)


def test_what_underflows_in_float32_grows_with_the_row() -> None:
    error = scores_of([along(1.0)])._score_error(np.zeros((1, 3)), np.zeros((1, 3)), _SINGLE)
    assert is_just(error(6.0, 0.0, 0), 2 * 3 * SINGLE[1] * 7)


# Powers of two: of a row (None: a row of zeros), of a bias, of a point. The first format ends at 2^126, the
# second at 2^1022, and a partial sum may have as much again added.
OVERFLOWS = [
    (_SINGLE, 96, None, 25, True),
    (_SINGLE, 96, None, 31, False),
    (_SINGLE, 124.7, None, -5, True),
    (_SINGLE, 125.5, None, -5, False),  # a short point does not make a row shorter
    (_SINGLE, 60, 125.5, -5, False),  # the bias alone
    (_SINGLE, 60, 124.5, -5, True),
    (_SINGLE, None, None, 126.5, False),  # the point alone
    (_SINGLE, None, None, 125.5, True),
    (_DOUBLE, 500, None, 511, True),
    (_DOUBLE, 511.5, None, 511.5, False),
    (_DOUBLE, 60, 1021.5, -5, False),
    (_DOUBLE, 60, 1020.5, -5, True),
]


def largest_bias(size: float) -> list[float]:
    """Biases of three classes, 0 on average, so that nothing is taken off them."""
    return [-size, size / 2, size / 2]


@pytest.mark.parametrize(("floats", "row", "bias", "x", "is_finite"), OVERFLOWS)
@pytest.mark.parametrize("is_first", [True, False])
def test_where_a_sum_could_overflow_nothing_is_known(
    floats: Any, row: float | None, bias: float | None, x: float, is_finite: bool, is_first: bool
) -> None:
    rows = [along(0.0 if row is None else 2.0**row), along(0.0), along(0.0)]
    biases = None if bias is None else largest_bias(2.0**bias)
    if not is_first:
        rows, biases = rows[::-1], None if biases is None else biases[::-1]
    error = scores_of(rows, biases)._score_error(np.array([along(2.0**x)]), np.zeros((1, 3)), floats)
    assert bool(np.isfinite(error(1.0, 0.0, 0))) is is_finite


def test_one_point_that_overflows_leaves_others_alone() -> None:
    x = np.array([along(2.0**127), along(1.0)])
    error = scores_of([along(1.0)])._score_error(x, np.zeros_like(x), _SINGLE)
    assert np.isfinite(error(np.ones(2), np.zeros(2))).tolist() == [False, True]


# ---------------------------------------------------------------------- errors at own directions

ROWS = [along(1.0), along(4.0), along(0.5)]
RELATIVE, TINY = gamma(13, SINGLE[0]), SINGLE[1]


def own_slack(scores: Scores, exponent: int) -> np.ndarray:
    count = scores.head.classes
    return scores._own_slack(np.arange(count), np.full(count, exponent))


@pytest.mark.parametrize("exponent", [-7, 0, 9])
def test_products_of_rows_are_off_by_their_roundings_and_scaled(exponent: int) -> None:
    for own, found in zip((1.0, 4.0, 0.5), own_slack(scores_of(ROWS), exponent), strict=True):
        assert is_just(found, 2.0**exponent * RELATIVE * own * (own + 4))


def test_biases_are_not_scaled() -> None:
    found = own_slack(scores_of(np.zeros((3, 3)), [1.0, -8.0, 7.0]), 20)
    assert is_just(found / (np.array([1.0, 8.0, 7.0]) + 8), RELATIVE)


def test_both_are_added() -> None:
    found = own_slack(scores_of(ROWS, [1.0, -8.0, 7.0]), 1)
    expected = [2 * RELATIVE * own * (own + 4) + RELATIVE * (bias + 8) for own, bias in
                ((1.0, 1.0), (4.0, 8.0), (0.5, 7.0))]  # fmt: skip
    assert is_just(found / expected, 1.0)


@pytest.mark.parametrize("exponent", [-9, 0, 9])
def test_products_that_underflow_are_scaled_too(exponent: int) -> None:
    found = own_slack(scores_of(np.zeros((2, 3))), exponent)
    assert is_just(found, 2.0**exponent * (2 * 3 * TINY) * 2 + 4 * TINY)


@pytest.mark.parametrize(
    ("row", "largest", "bias", "exponent", "is_finite"),
    [
        (0, 100, None, 0, True),
        (0, 100, None, 24, True),
        (0, 100, None, 30, False),  # at the point
        (63.5, 63.5, None, -60, False),  # in the product, before it is scaled down
        (-20, 125.5, None, 0, False),  # a score of a unit vector, twice
        (-1, 124.7, None, 0, True),
        (0, 3, 126.2, 0, False),
        (0, 3, 125.5, 0, True),
        (0, 3, None, 100, True),
        (0, 3, None, 101, False),
        (0, 3, None, -100, True),
        (0, 3, None, -101, False),
    ],
)
def test_where_own_directions_could_overflow_nothing_is_known(
    row: float, largest: float, bias: float | None, exponent: int, is_finite: bool
) -> None:
    rows = [along(2.0**row), along(2.0**largest), along(0.0)]
    found = own_slack(scores_of(rows, None if bias is None else largest_bias(2.0**bias)), exponent)
    assert bool(np.isfinite(found[0])) is is_finite


class Guessing(NumPy):
    """A backend that does not keep to the bounds of its format."""

    keeps_bounds = False


def test_a_backend_that_guesses_is_not_believed() -> None:
    for kind, strength in ((NumPy, Strength.FLOAT32), (Guessing, Strength.FLOAT64)):
        scores = scores_of(ROWS, [-1.0, -1.0, 2.0])
        scores.backend = kind()
        assert np.isinf(own_slack(scores, 0)).all() == (kind is Guessing)
        gaps = scores.gaps(np.array([1]), np.array([along(1.0)]))
        assert list(Strength)[gaps.strength[0]] is strength
        assert 0.49 < gaps.lower[0] <= 0.5


# ---------------------------------------------------------------------- what float32 found


def entered(own: float, rival: float, claim: float | None = None, slack: float = 0.25) -> tuple[Gaps, bool]:
    """What a gap of float32 makes of unknown gaps, and whether more exact arithmetic is asked for."""
    gaps = Gaps.unknown(1)
    best = Best(np.array([own], np.float32), np.array([3]), np.array([rival], np.float32))
    unclear = gaps.enter(best, np.array([slack]), None if claim is None else np.array([claim]))
    assert gaps.rival.tolist() == [3]
    assert np.array_equal(gaps.lower, gaps.apart, equal_nan=True)
    return gaps, bool(len(unclear))


def test_nothing_is_known_at_first() -> None:
    gaps = Gaps.unknown(2)
    assert gaps.lower.tolist() == gaps.apart.tolist() == [-INF, -INF]
    assert gaps.rival.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("own", "rival", "lower", "is_unclear"),
    [
        (3.0, 1.0, 1.25, False),  # claimed three slacks below, so that anybody can prove it again
        (1.0, 3.0, -2.75, False),  # a clear loss is an answer too
        (1.5, 1.0, -0.25, True),
        (1.75, 1.0, 0.0, True),
        (1.0, 1.5, -1.25, True),
        (1.0, 1.0, -0.75, True),
    ],
)
def test_a_gap_without_a_claim_is_clear_beyond_three_slacks(
    own: float, rival: float, lower: float, is_unclear: bool
) -> None:
    gaps, unclear = entered(own, rival)
    assert gaps.lower[0] == lower
    assert unclear is is_unclear


@pytest.mark.parametrize(
    ("own", "rival", "claim", "is_unclear"),
    [
        (3.0, 1.0, 1.75, False),
        (3.0, 1.0, 1.8, True),
        (3.0, 1.0, 2.25, True),
        (3.0, 1.0, 2.3, False),  # it is false: the gap is at most 2.25
        (1.0, 3.0, -2.25, False),
        (1.0, 3.0, -2.2, True),
        (1.0, 3.0, 0.0, False),
        (1.2, 1.0, -1.0, True),  # the claim holds, but not the sign
        (1.25, 1.0, -1.0, True),
        (1.5, 1.0, 0.0, False),
    ],
)
def test_a_claim_is_clear_where_one_slack_decides_it_and_the_sign(
    own: float, rival: float, claim: float, is_unclear: bool
) -> None:
    gaps, unclear = entered(own, rival, claim)
    assert gaps.lower[0] == float(np.float32(own)) - rival - 0.25
    assert unclear is is_unclear


def test_scores_that_overflow_are_unclear() -> None:
    assert entered(INF, INF)[1]
    assert entered(1.0, 0.0, slack=INF)[1]


@pytest.mark.parametrize(
    ("lower", "apart", "wins", "wins_tied"),
    [
        (0.5, 0.5, True, True),
        (0.0, 0.5, False, True),
        (0.0, 0.0, False, False),
        (0.0, -1.0, False, False),
        (-1.0, 2.0, False, False),
        (-1.0, -1.0, False, False),
        (-INF, -INF, False, False),
    ],
)
def test_who_wins_strictly_or_but_for_a_tie(lower: float, apart: float, wins: bool, wins_tied: bool) -> None:
    gaps = Gaps(np.array([lower] * 2), np.array([apart] * 2), np.zeros(2, int), np.zeros(2, np.uint8))
    assert gaps.settle(np.array([False, True])).tolist() == [wins, wins_tied]


# ---------------------------------------------------------------------- who is looked at again


def test_exact_gaps_of_the_unclear_rivals_decide_sign_and_claim() -> None:
    """Whatever the gaps are within their bounds."""
    rng = np.random.default_rng(0)
    seen = {True: 0, False: 0}
    for _ in range(3000):
        gaps = rng.integers(-2, 5, 3).astype(float)
        low, high = gaps - rng.integers(0, 3, 3), gaps + rng.integers(0, 3, 3)
        claim = float(rng.choice([-INF, -1.0, 0.0, 1.0, 2.0]))
        unclear = _unclear_rivals(low.copy(), high, claim)
        known = low.copy()
        known[unclear] = gaps[unclear]
        assert (known.min() > 0) == (gaps.min() > 0)
        assert (known.min() >= claim) == (gaps.min() >= claim)
        seen[bool(len(unclear))] += 1
        is_clear = (low.min() > 0 or high.min() < 0) and (low.min() >= claim or high.min() < claim)
        assert (len(unclear) == 0) == is_clear
    assert min(seen.values()) > 300


@pytest.mark.parametrize(
    ("low", "high", "claim", "unclear"),
    [
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], -INF, []),
        ([-1.0, 2.0, 3.0], [2.0, 3.0, 4.0], -INF, [0]),
        ([-1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 2.0, [0, 1]),  # one that may decide the claim, too
        ([-1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 1.9, [0]),
        ([0.0, 2.0, 3.0], [0.0, 3.0, 4.0], 0.0, [0]),  # a tie is not above
        ([-2.0, 2.0, 0.5], [-1.0, 3.0, 0.6], -INF, []),
        ([-2.0, 2.0, -1.4], [-1.0, 3.0, 0.6], -1.5, [0]),
        ([-2.0, 2.0, -1.5], [-1.0, 3.0, 0.6], -1.5, [0]),
        ([-2.0, 2.0, -1.6], [-1.0, 3.0, 0.6], -1.5, [0, 2]),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 1.5, [0]),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 1.0, []),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 2.0, [0]),
        ([1.0, 1.5, 3.0], [2.0, 3.0, 4.0], 2.5, []),  # false by the first
        ([math.nan, 2.0, 3.0], [math.nan, 3.0, 4.0], -INF, [0]),
    ],
)
def test_only_rivals_that_may_decide_are_looked_at_again(
    low: list[float], high: list[float], claim: float, unclear: list[int]
) -> None:
    with np.errstate(invalid="ignore"):
        assert _unclear_rivals(np.array(low), np.array(high), claim).tolist() == unclear
