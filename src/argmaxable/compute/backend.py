"""What the batched phases ask of a library that multiplies matrices: NumPy by default, PyTorch for other
devices. Products are float32, each entry within γ_d of the exact one in any order of summation, or the
backend says that they are not (`keeps_bounds`), and then its word counts as a guess only.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from argmaxable.compute.rows import Ids, Matrix32, Rows, Vector32

Block = Any  # a matrix where the backend keeps it


class Backend(Protocol):
    """Products of points with rows, and the best of them. Blocks are the backend's own arrays."""

    keeps_bounds: bool

    def settle_in(self, rows: Rows) -> Rows:
        """The rows where this backend reads them best, if they fit there."""

    def block(self, rows: Rows | Matrix32, ids: Ids | slice) -> Block:
        """Some of the rows."""

    def products(self, points: Block, rows: Block) -> Block:
        """Every point times every row (points × rows)."""

    def shift(self, products: Block, scale: Vector32 | None, offsets: Vector32 | None) -> Block:
        """The products, each line times its `scale`, plus `offsets` for the columns."""

    def shift_transposed(self, products: Block, scale: Vector32 | None, offsets: Vector32 | None) -> Block:
        """The products, each column times its `scale`, plus `offsets` for the lines."""

    def take_out(self, scores: Block, lines: Ids, columns: Ids) -> Vector32:
        """The scores at these places, which are −∞ from then on."""

    def best_in_lines(self, scores: Block) -> tuple[Ids, Vector32]:
        """For each line the column of its largest score, and that score."""

    def better_in_columns(self, scores: Block, floor: Vector32) -> tuple[Ids, Ids, Vector32]:
        """The columns with a score above their floor, the line of the largest, and that score."""


class NumPy:
    """The processor, by way of NumPy's BLAS."""

    keeps_bounds = True

    def settle_in(self, rows: Rows) -> Rows:
        return rows

    def block(self, rows: Rows | Matrix32, ids: Ids | slice) -> Matrix32:
        return np.asarray(rows[ids])

    def products(self, points: Matrix32, rows: Matrix32) -> Matrix32:
        return np.asarray(points @ rows.T)

    def shift(self, products: Matrix32, scale: Vector32 | None, offsets: Vector32 | None) -> Matrix32:
        if scale is not None:
            products = products * scale[:, None]
        if offsets is not None:
            products = products + offsets
        return products

    def shift_transposed(
        self, products: Matrix32, scale: Vector32 | None, offsets: Vector32 | None
    ) -> Matrix32:
        if scale is not None:
            products = products * scale
        if offsets is not None:
            products = products + offsets[:, None]
        return products

    def take_out(self, scores: Matrix32, lines: Ids, columns: Ids) -> Vector32:
        taken = scores[lines, columns]
        scores[lines, columns] = -np.inf
        return np.asarray(taken)

    def best_in_lines(self, scores: Matrix32) -> tuple[Ids, Vector32]:
        best = scores.argmax(axis=1)
        return best, scores[np.arange(len(best)), best]

    def better_in_columns(self, scores: Matrix32, floor: Vector32) -> tuple[Ids, Ids, Vector32]:
        highest = scores.max(axis=0)
        is_better = ~(highest <= floor)
        # Looking for the few maxima that matter is four times as fast as argmax down the columns.
        places = np.flatnonzero(scores == np.where(is_better, highest, np.inf))
        lines = np.zeros(scores.shape[1], np.intp)
        lines[places % scores.shape[1]] = places // scores.shape[1]
        better = np.flatnonzero(is_better)
        return better, lines[better], highest[better]


def backend_of(device: str) -> Backend:
    """The backend of a device: "numpy", or one of PyTorch's such as "cpu", "cuda" and "mps"."""
    if device == "numpy":
        return NumPy()
    from argmaxable.compute.torch_backend import Torch  # loads PyTorch

    return Torch(device)
