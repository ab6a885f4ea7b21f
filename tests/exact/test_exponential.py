"""Bounds on the exponential, against arithmetic of 200 bits."""

from __future__ import annotations

import math

import flint
import numpy as np
import pytest

from argmaxable.exact.exponential import exp_bounds


@pytest.mark.parametrize("seed", range(3))
def test_the_bounds_enclose_the_exponential(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = np.concatenate([rng.uniform(-80, 700, 2000), rng.normal(size=2000), rng.normal(size=500) * 1e-9])
    low, high = exp_bounds(v)
    with flint.ctx.workprec(200):
        for value, below, above in zip(v, low, high, strict=True):
            true = flint.arb(float(value)).exp()
            assert flint.arb(float(below)) <= true
            assert math.isinf(above) or true <= flint.arb(float(above))


def test_the_bounds_are_tight_from_minus_60_to_680() -> None:
    low, high = exp_bounds(np.linspace(-60, 680, 5000))
    assert (high / low - 1).max() < 2.0**-43


def test_halves_of_log_2_where_the_reduction_switches_are_enclosed() -> None:
    v = np.concatenate([np.nextafter(np.arange(-80, 900) * math.log(2) / 2, sign) for sign in (-1e9, 1e9)])
    low, high = exp_bounds(v)
    with flint.ctx.workprec(200):
        for value, below, above in zip(v, low, high, strict=True):
            assert flint.arb(float(below)) <= flint.arb(float(value)).exp() <= flint.arb(float(above))


def test_the_floats_next_to_the_ends_of_the_range_are_enclosed() -> None:
    v = np.array([np.nextafter(end, towards) for end in (-60.0, 680.0) for towards in (-1e9, end, 1e9)])
    low, high = exp_bounds(v)
    with flint.ctx.workprec(200):
        for value, below, above in zip(v, low, high, strict=True):
            assert flint.arb(float(below)) <= flint.arb(float(value)).exp()
            assert math.isinf(above) or flint.arb(float(value)).exp() <= flint.arb(float(above))


def test_what_is_below_minus_60_is_between_0_and_its_exponential() -> None:
    low, high = exp_bounds(np.array([-1e300, -np.inf, -61.0]))
    assert (low == 0).all()
    assert (high > 8.75e-27).all()
    assert (high < 8.76e-27).all()


def test_what_is_above_680_has_no_upper_bound() -> None:
    low, high = exp_bounds(np.array([681.0, 1e300, np.inf]))
    assert np.isinf(high).all()
    assert (low > 1e295).all()
    assert np.isfinite(low).all()


def test_nan_says_nothing() -> None:
    low, high = exp_bounds(np.array([np.nan]))
    assert (low[0], high[0]) == (0.0, np.inf)
