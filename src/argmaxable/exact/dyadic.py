"""Exact arithmetic on arrays of floats: every float is an integer times a power of two."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Left shifts up to here keep a 53-bit mantissa inside int64.
_SAFE_SHIFT = 9


@dataclass(frozen=True, eq=False)
class Dyadic:
    """An array of exact numbers: Python integers times one common power of two."""

    integers: NDArray[Any]
    exponent: int

    @staticmethod
    def of(values: ArrayLike) -> Dyadic:
        """The finite floats themselves, without rounding."""
        array = np.asarray(values, dtype=np.float64)
        mantissa, exponent = np.frexp(array)
        whole = np.asarray((mantissa * 2.0**53).astype(np.int64))
        used = whole != 0
        if not used.any():
            return _dyadic(whole, 0)
        # frexp of the lowest set bit (an exact power of two) counts the trailing zeros.
        trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
        lowest = int((exponent + trailing)[used].min())
        shift = np.where(used, exponent - lowest, 0)
        whole = whole >> np.maximum(-shift, 0)
        left = np.maximum(shift, 0)
        if left.max() <= _SAFE_SHIFT:
            return _dyadic(whole << left, lowest - 53)
        return _dyadic(whole.astype(object) << left.astype(object), lowest - 53)

    def __add__(self, other: Dyadic) -> Dyadic:
        exponent = min(self.exponent, other.exponent)
        return _dyadic(self._scaled_to(exponent) + other._scaled_to(exponent), exponent)

    def __sub__(self, other: Dyadic) -> Dyadic:
        return self + other * -1

    def __mul__(self, other: Dyadic | int) -> Dyadic:
        if isinstance(other, int):
            return _dyadic(self.integers * other, self.exponent)
        return _dyadic(self.integers * other.integers, self.exponent + other.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        return _dyadic(self.integers @ other.integers, self.exponent + other.exponent)

    def __getitem__(self, key: Any) -> Dyadic:
        return _dyadic(self.integers[key], self.exponent)

    def sum(self) -> Dyadic:
        return _dyadic(self.integers.sum(), self.exponent)

    def sign(self) -> NDArray[np.int8]:
        """−1, 0 or 1 for every element."""
        return np.asarray(self.integers > 0, np.int8) - np.asarray(self.integers < 0, np.int8)

    def fraction(self) -> Fraction:
        """A single number as a rational."""
        return Fraction(int(self.integers[()])) * Fraction(2) ** self.exponent

    def _scaled_to(self, exponent: int) -> NDArray[Any]:
        return np.asarray(self.integers * (1 << (self.exponent - exponent))).astype(object)


def _dyadic(integers: Any, exponent: int) -> Dyadic:
    # NumPy hands single objects back bare; keep them arrays without dimensions. astype makes Python
    # integers of NumPy's, which would wrap.
    return Dyadic(np.asarray(integers).astype(object), exponent)


def round_down(value: Fraction) -> float:
    """The largest float that is not above the value."""
    nearest = _to_float(value)
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


def round_up(value: Fraction) -> float:
    """The smallest float that is not below the value."""
    return -round_down(-value) + 0.0  # never −0


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
