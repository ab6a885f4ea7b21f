"""The rank of a matrix of floats or integers taken literally, by elimination modulo a prime.

Floats are dyadic rationals, so a matrix of them is one of integers times a power of two. Its rank modulo
a prime is never above its rank, and below it only by an accident of about one in two thousand million: a
rank found so is proven as a lower bound. No tolerance is involved, however small the numbers'
differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.core.errors import InputError

# Mersenne's prime: products of two residues fit into 64 bits.
_PRIME = 2**31 - 1

Residues = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pivots:
    """Rows and columns whose square submatrix is regular: as many as the rank."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)


def exact_rank(matrix: ArrayLike) -> int:
    """The rank (proven from below) of a matrix of floats or of integers of any size."""
    return len(find_pivots(matrix))


def find_pivots(matrix: ArrayLike) -> Pivots:
    """A largest regular submatrix. Raises InputError unless the matrix holds finite numbers."""
    left = _residues(np.asarray(matrix))
    rows, columns = np.arange(len(left)), []
    rank = 0
    for column in range(left.shape[1]):
        candidates = np.flatnonzero(left[rank:, column])
        if not len(candidates):
            continue
        pivot = rank + int(candidates[0])
        left[[rank, pivot]], rows[[rank, pivot]] = left[[pivot, rank]], rows[[pivot, rank]]
        inverse = pow(int(left[rank, column]), -1, _PRIME)
        factors = left[rank + 1 :, column] * inverse % _PRIME
        left[rank + 1 :] = (left[rank + 1 :] - factors[:, None] * left[rank] % _PRIME) % _PRIME
        columns.append(column)
        rank += 1
        if rank == len(left):
            break
    return Pivots(rows[:rank], np.array(columns, dtype=np.intp))


def _residues(matrix: NDArray[Any]) -> Residues:
    if matrix.ndim != 2:
        raise InputError(f"expected a matrix, found shape {matrix.shape}.")
    if matrix.dtype.kind in "iuO":
        return (matrix % _PRIME).astype(np.int64)
    if matrix.dtype.kind != "f" or not np.isfinite(matrix).all():
        raise InputError("an exact rank needs finite numbers.")
    fractions, exponents = np.frexp(matrix.astype(np.float64))
    integers = np.ldexp(fractions, 53).astype(np.int64) % _PRIME
    used = exponents[fractions != 0]
    shifts = np.where(fractions != 0, exponents - used.min(initial=2**15), 0)
    powers = np.array([pow(2, k, _PRIME) for k in range(int(shifts.max(initial=0)) + 1)], dtype=np.int64)
    residues: Residues = integers * powers[shifts] % _PRIME
    return residues
