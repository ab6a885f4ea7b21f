"""How many labels rows near the trigonometric curve are proven for, against the bound in 300 bits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
import pytest

from argmaxable.exact.trigonometric import proven_active

PRECISION = 300


def rows_at(angles: Sequence[float], degree: int) -> np.ndarray:
    k = np.arange(1, degree + 1)
    turns = np.outer(angles, k)
    waves = np.stack([np.cos(turns), np.sin(turns)], axis=2).reshape(len(turns), -1)
    return np.hstack([np.ones((len(turns), 1)), waves])


def most_that_the_theorem_allows(rows: np.ndarray) -> int:
    """The largest m with μ/2 > η(μ/2 + √2·2^m) for every set of at most m labels, η and μ to 300 bits. The
    angle of a row is that of its first cosine and sine."""
    count, degree = len(rows), rows.shape[1] // 2
    with flint.ctx.workprec(PRECISION):
        unit = [[flint.arb(float(v)) / flint.arb(float(row[0])) for v in row] for row in rows]
        points = []
        for row in unit:
            length = (row[1] ** 2 + row[2] ** 2).sqrt()
            points.append(flint.acb(row[1] / length, row[2] / length))
        missed = [[abs(row[0] - 1)] for row in unit]
        for row, point, off in zip(unit, points, missed, strict=True):
            power = flint.acb(1)
            for k in range(1, degree + 1):
                power *= point
                off += [abs(row[2 * k - 1] - power.real), abs(row[2 * k] - power.imag)]
        between = [[1 - (p * q.conjugate()).real for q in points] for p in points]
        proven = 0
        for size in range(1, min(degree, count - 1) + 1):
            eta = max(float(off[j].upper()) for off in missed for j in range(2 * size + 1))
            least = min(
                float(np.prod([float(between[label][other].mid()) for other in chosen]))
                for label in range(count)
                for chosen in itertools.combinations([k for k in range(count) if k != label], size)
            )
            if not least / 2 > eta * (least / 2 + 2**0.5 * 2.0**size):
                return proven
            proven = size
    return proven


@pytest.mark.parametrize("seed", range(12))
def test_no_more_is_proven_than_the_theorem_allows_and_no_less_unless_it_is_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, degree = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    angles = np.sort(rng.uniform(0, 2 * np.pi, labels))
    noise = 10.0 ** rng.uniform(-9, -1)
    rows = rows_at(angles, degree) + noise * rng.uniform(-1, 1, (labels, 2 * degree + 1))
    found = proven_active(rows)
    assert found <= most_that_the_theorem_allows(rows)
    # With half of the distance off the curve again as much room is left.
    assert found >= min(
        most_that_the_theorem_allows(rows_at(angles, degree) + 2.5 * (rows - rows_at(angles, degree))),
        found + 1,
    )


@pytest.mark.parametrize("column", [3, 4, 5, 6])
def test_an_entry_off_the_curve_counts_from_the_size_on_that_uses_it(column: int) -> None:
    """A polynomial of degree m has 2m + 1 coefficients: later columns say nothing about m labels."""
    rows = rows_at(2 * np.pi * np.arange(8) / 8, 3)
    assert proven_active(rows) == 3
    rows[5, column] += 0.9
    assert proven_active(rows) == (column + 1) // 2 - 1


@pytest.mark.parametrize("labels", [2, 3, 4, 5, 8])
def test_labels_are_compared_with_all_others_where_they_are_few(labels: int) -> None:
    """Evenly spread, μ is the product of 1 − cos over the nearest; with as many sets as others, over all."""
    rows = rows_at(2 * np.pi * np.arange(labels) / labels, 3)
    assert proven_active(rows) == min(3, labels - 1)


def test_labels_in_any_order_are_proven_for_the_same() -> None:
    rng = np.random.default_rng(0)
    rows = rows_at(np.sort(rng.uniform(0, 2 * np.pi, 40)), 3).astype(np.float32).astype(np.float64)
    assert proven_active(rows) == proven_active(rows[rng.permutation(40)]) > 0


@pytest.mark.parametrize("scale", [1e-300, 0.25, 3.0, 1e300])
def test_a_positive_factor_of_a_row_changes_nothing(scale: float) -> None:
    rows = rows_at(2 * np.pi * np.arange(9) / 9, 2)
    rows[4] *= scale
    assert proven_active(rows) == 2


def test_rows_without_a_positive_first_entry_are_proven_for_nothing() -> None:
    rows = rows_at(2 * np.pi * np.arange(9) / 9, 2)
    for bad in (0.0, -1.0, np.nan, np.inf):
        spoiled = rows.copy()
        spoiled[4, 0] = bad
        assert proven_active(spoiled) == -1
    spoiled = rows.copy()
    spoiled[4, 3] = np.nan
    assert proven_active(spoiled) == -1


def test_rows_whose_first_wave_is_no_angle_switch_all_off_and_no_more() -> None:
    for length in (0.0, 0.4, 1.6, 1e9):
        rows = rows_at(2 * np.pi * np.arange(9) / 9, 2)
        rows[4, 1:3] *= length
        assert proven_active(rows) == 0


def test_rows_of_one_entry_switch_all_off_and_no_more() -> None:
    assert proven_active(np.ones((5, 1))) == 0
    assert proven_active(-np.ones((5, 1))) == -1


def test_two_labels_that_floats_hardly_tell_apart_are_proven_for_the_empty_set() -> None:
    """1 − cos of an angle ε is ε²/2, which the rounding of coordinates must not make larger."""
    for angle in (1e-15, 1e-12, 1e-9):
        assert proven_active(rows_at([0.0, angle, 2.0, 4.0], 1)) == 0
    assert proven_active(rows_at([0.0, 1e-6, 2.0, 4.0], 1)) == 1


def test_neighbours_across_the_cut_of_the_angle_are_neighbours() -> None:
    """π − ε and −π + ε are 2ε apart."""
    assert proven_active(rows_at([np.pi - 0.05, -np.pi + 0.05, 0.0, 1.5], 1)) == 1
    assert proven_active(rows_at([np.pi - 1e-9, -np.pi + 1e-9, 0.0, 1.5], 1)) == 0


@pytest.mark.parametrize(("off", "proven"), [(0.25, 1), (0.27, 0), (-0.25, 1), (-0.27, 0)])
def test_two_opposite_labels_stand_as_much_as_the_theorem_says(off: float, proven: int) -> None:
    """μ = 1 − cos π = 2 for one label of two: 1 > η (1 + 2√2) for η below 0.261."""
    rows = rows_at([0.0, np.pi], 1)
    rows[:, 1:] *= 1 + off
    assert proven_active(rows) == proven


@pytest.mark.parametrize(("off", "proven"), [(0.075, 3), (0.09, 2)])
def test_three_of_four_labels_stand_as_much_as_the_theorem_says(off: float, proven: int) -> None:
    """μ = 1 · 1 · 2 on a square: 1 > η (1 + 8√2) for η below 0.0811."""
    rows = rows_at(np.pi / 2 * np.arange(4), 3)
    rows[2, 5] += off
    assert proven_active(rows) == proven


# ---------------------------------------------------------------------- several circles


def coded(labels: int, prime: int, circles: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.arange(labels)
    places = np.stack([(numbers + k * (numbers // prime)) % prime for k in range(circles)], axis=1)
    turns = [rows_at(2 * np.pi * places[:, k] / prime, degree)[:, 1:] for k in range(circles)]
    return np.hstack([np.ones((labels, 1)), *turns]), places


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-3, 1e-2, 0.1])
def test_what_is_proven_on_several_circles_holds_exactly(noise: float) -> None:
    """By the polynomial of the proof, in rationals, for every set of a size that is proven."""
    rows, places = coded(12, 5, 3, 2)
    rows[:, 1:] += noise * np.random.default_rng(0).uniform(-1, 1, (12, 12))
    proven = proven_active(rows, places)
    assert proven <= 2
    assert (noise > 0) or proven == 2
    stored = [[Fraction(value) for value in row] for row in rows.tolist()]
    for size in range(1, proven + 1):
        for chosen in itertools.combinations(range(12), size):
            x = [Fraction(value) for value in proof_point(places, chosen, 5, 2)]
            scores = [sum(a * b for a, b in zip(row, x, strict=True)) for row in stored]
            assert all((score > 0) == (label in chosen) for label, score in enumerate(scores))


def proof_point(places: np.ndarray, chosen: tuple[int, ...], prime: int, degree: int) -> list[float]:
    """(q − m) μ / 2 − Σ over circles of Π over the set's places there of 1 − cos(θ − θ_i)."""
    angles = 2 * np.pi * np.arange(prime) / prime
    x, least = np.zeros(1 + 2 * degree * places.shape[1]), np.inf
    for circle in range(places.shape[1]):
        there = np.unique(places[list(chosen), circle])
        product = np.prod([1 - np.cos(angles - angles[place]) for place in there], axis=0)
        least = min(least, float(np.delete(product, there).min()))
        part = np.linalg.lstsq(rows_at(angles, degree), -product, rcond=None)[0]
        x[0] += part[0]
        x[1 + 2 * degree * circle : 1 + 2 * degree * (circle + 1)] = part[1:]
    x[0] += (places.shape[1] - len(chosen)) * least / 2
    return [float(value) for value in x]


def test_labels_that_share_two_places_prove_nothing() -> None:
    rows, places = coded(12, 5, 3, 2)
    assert proven_active(rows, places) == 2
    again = places.copy()
    again[7] = again[3]
    assert proven_active(rows, again) == 0


def test_no_more_labels_are_proven_than_circles_are_there_for() -> None:
    assert proven_active(*coded(20, 5, 3, 4)) == 2
    assert proven_active(*coded(20, 5, 4, 4)) == 3
    assert proven_active(*coded(20, 5, 2, 4)) == 1


def test_a_row_off_its_place_counts() -> None:
    rows, places = coded(12, 5, 3, 2)
    rows[7] = np.hstack([[1.0], *[rows_at(np.array([1.0]), 2)[0, 1:]] * 3])
    assert proven_active(rows, places) == 0


def most_on_circles(rows: np.ndarray, places: np.ndarray) -> int:
    """What the theorem allows on several circles, by its own sums over all sets and labels."""
    labels, circles = places.shape
    degree = (rows.shape[1] - 1) // (2 * circles)
    waves = rows[:, 1:].reshape(labels, circles, degree, 2)
    first = [[int(np.flatnonzero(column == place)[0]) for place in column] for column in places.T]
    angles = np.array([np.arctan2(waves[own, k, 0, 1], waves[own, k, 0, 0]) for k, own in enumerate(first)])
    turns = np.exp(1j * angles.T[:, :, None] * np.arange(1, degree + 1))
    missed = np.abs(waves - np.stack([turns.real, turns.imag], axis=3)).max(axis=(0, 1, 3))
    for size in range(1, degree + 1):
        mu = min(
            sum(
                np.prod([1 - np.cos(angles[k, label] - angle) for angle in {*angles[k, list(chosen)]}])
                for k in range(circles)
            )
            for chosen in itertools.combinations(range(labels), size)
            for label in set(range(labels)) - set(chosen)
        )
        eta = missed[:size].max()
        if not mu / 2 > eta * (mu / 2 + 2**0.5 * circles * 2.0**size):
            return size - 1
    return degree


def on_circles(
    places: list[list[int]], angles: list[list[float]], degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows at these places; each circle has angles of its own."""
    held = np.array(places)
    turns = [rows_at(np.array(own)[held[:, k]], degree)[:, 1:] for k, own in enumerate(angles)]
    return np.hstack([np.ones((len(held), 1)), *turns]), held


EVEN = [0.0, 1.2566, 2.5133, 3.7699, 5.0265]
UNEVEN = [0.0, 0.3, 2.0, 3.5, 5.0]
CODE = [[(a + k * b) % 5 for k in range(3)] for b in range(2) for a in range(5)]
LAYOUTS = {
    "apart on both": ([[k, 4 - k] for k in range(5)], [EVEN, UNEVEN]),
    "apart on the second": ([[0, 0], [1, 1], [2, 2], [3, 3], [3, 4]], [UNEVEN, EVEN]),
    "apart on the first": ([[0, 0], [1, 1], [2, 2], [3, 3], [4, 3]], [EVEN, EVEN]),
    "one shared": (CODE, [EVEN, UNEVEN, EVEN]),
    "one shared, near places": (CODE, [UNEVEN, UNEVEN, UNEVEN]),
}


@pytest.mark.parametrize("noisy", [0, 1, None], ids=["first", "second", "all"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_off_by_no_more_than_the_theorem_allows_on_several_circles(
    layout: str, noisy: int | None
) -> None:
    """As far off as anything is proven, the theorem's own sums allow it."""
    rows, places = on_circles(*LAYOUTS[layout], 2)
    noise = np.random.default_rng(1).uniform(-1, 1, rows.shape)
    noise[:, 0] = 0.0
    if noisy is not None:
        noise[:, : 1 + 4 * noisy] = noise[:, 5 + 4 * noisy :] = 0.0
    best = proven_active(rows, places)
    assert best >= 1
    for size in range(1, best + 1):
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if proven_active(rows + middle * noise, places) >= size else (low, middle)
            )
        assert low > 0
        assert most_on_circles(rows + low * noise, places) >= size


@pytest.mark.parametrize("last", [[0, 0, 3], [0, 3, 0], [3, 0, 0]])
def test_labels_that_share_two_of_three_places_prove_nothing(last: list[int]) -> None:
    """A label may then be off by no circle: here each of its places is one of the set's."""
    rows, places = on_circles([[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 3], last], [EVEN] * 3, 2)
    assert most_on_circles(rows, places) == 1
    assert proven_active(rows, places) == 0
