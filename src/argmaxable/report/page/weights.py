"""What a report shows of the weights themselves: the norm of each row, and the spectrum of W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from argmaxable.core.head import Head

# Rows turned into float64 at a time.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Weights:
    """Euclidean norms of the rows (classes), and singular values of W (features), largest first."""

    norms: NDArray[np.float64]
    spectrum: NDArray[np.float64]


def weights_of(head: Head) -> Weights:
    """Both in one pass over the rows.

    The spectrum comes from WᵀW, whose rounding hides singular values below √(dε) of the largest: these are
    left out. To draw the rest, that is plenty, and it takes memory for one block only.
    """
    norms = np.empty(head.classes)
    gram = np.zeros((head.features, head.features))
    for first in range(0, head.classes, _BLOCK):
        rows = head.rows(slice(first, first + _BLOCK))
        norms[first : first + _BLOCK] = np.linalg.norm(rows, axis=1)
        gram += rows.T @ rows
    squares = np.linalg.eigvalsh(gram)[::-1]
    smallest = head.features * np.finfo(np.float64).eps * squares[0]
    return Weights(norms, np.sqrt(squares[squares > smallest]))
